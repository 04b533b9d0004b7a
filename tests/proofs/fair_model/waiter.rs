//! What a place does: ask, fix its ticket, bid again, win or leave. The model of
//! read/write locks does so too, by this file.

use super::{
    kind::Kind,
    requests::{Request, Requests},
    rules::{Broken, Rules},
    state::{Answer, Phase, Place, State},
};

/// How a bid is lost. Voters are told by bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    /// The answers that were heard.
    pub(crate) heard: u8,
    /// The next bid follows at once, and what the other voters may have granted is given back
    /// after it.
    pub(crate) undo_last: bool,
}

impl State {
    /// The first request to all. From here on the law counts.
    pub(crate) fn call(&mut self, place: usize, rules: &Rules) {
        self.remember_who_stands_before(place, rules);
        self.bid(place, rules);
    }

    pub(crate) fn may_bid_again(&self, place: usize, rules: &Rules) -> bool {
        let it = &self.places[place];
        it.phase == Phase::Waiting && it.bids < rules.bounds.bids[place]
    }

    pub(crate) fn bid(&mut self, place: usize, rules: &Rules) {
        let it = &mut self.places[place];
        it.phase = Phase::Bidding;
        it.bids += 1;
        let ticket = if rules.breaks(Broken::OrderOfArrival) { 0 } else { it.ticket };
        let kind = if rules.only_tries(place) { Kind::Try } else { Kind::Bid };
        let request = Request { kind, place, bid: it.bids, ticket };
        self.queues(place, rules).for_each(|queue| queue.push(request));
    }

    pub(crate) fn may_win(&self, place: usize, rules: &Rules) -> bool {
        let enough = if rules.breaks(Broken::WonByAMinority) { 1 } else { rules.quorum() };
        let granted = self.answers(place).flatten().filter(|answer| answer.counts());
        self.places[place].phase == Phase::Bidding && granted.count() >= enough
    }

    pub(crate) fn win(&mut self, place: usize) {
        self.overtaken |= self.voters.iter().any(|voter| voter.stood[place] > 0);
        self.places[place].phase = Phase::Holding;
        self.forget_answers(place);
        self.forget_order_of(place);
    }

    /// All ways in which the bid of this place can be lost now.
    pub(crate) fn losses(&self, place: usize, rules: &Rules) -> Vec<Loss> {
        if self.places[place].phase != Phase::Bidding {
            return Vec::new();
        }
        let all = bits(self.answers(place).map(|it| it.is_some()));
        let is_fixed = self.places[place].ticket > 0 || rules.only_tries(place);
        // What is given back where nothing was granted is void, and nothing else depends on what
        // was heard of a bid that does not fix the ticket.
        let heard = (0..=all).filter(|heard| heard & !all == 0 && (!is_fixed || *heard == all));
        let may_time_out = self.budget.timeouts > 0;
        let is_lost = |heard: &u8| {
            let grants = self.count(place, *heard, true);
            may_time_out && (is_fixed || grants < rules.quorum())
                || self.is_refused(place, *heard, rules)
        };
        let mut losses = Vec::new();
        for heard in heard.filter(is_lost) {
            losses.push(Loss { heard, undo_last: false });
            let (ticket, differ) = self.ticket_told(place, heard, rules);
            if !is_fixed && ticket > 0 && differ && heard + 1 < 1 << rules.voters() {
                losses.push(Loss { heard, undo_last: true });
            }
        }
        losses
    }

    /// The bid is lost, its votes are given back, and its ticket is fixed by a majority of answers.
    pub(crate) fn lose(&mut self, place: usize, loss: Loss, rules: &Rules) {
        if !self.is_refused(place, loss.heard, rules) {
            self.budget.timeouts -= 1;
        }
        let (ticket, differ) = self.ticket_told(place, loss.heard, rules);
        let lost = self.places[place].bids;
        let granted = bits(self.answers(place).map(|it| it.is_some_and(|it| it.granted)));
        let unheard = !loss.heard;
        self.forget_answers(place);
        self.undo(place, lost, loss.heard & granted, rules);
        if !loss.undo_last {
            self.undo(place, lost, unheard, rules);
        }
        let it = &mut self.places[place];
        it.phase = Phase::Waiting;
        let raised = rules.breaks(Broken::TicketRaised) && ticket > it.ticket;
        let fixed = it.ticket == 0 && ticket > 0;
        if fixed || raised {
            it.ticket = ticket;
        }
        if rules.only_tries(place) {
            self.end(place);
        } else if fixed && differ {
            self.bid(place, rules);
        }
        if loss.undo_last {
            self.undo(place, lost, unheard, rules);
        }
    }

    /// The highest ticket of the majority that said the lowest ones, if enough have answered; and
    /// whether some of all have it not in their queue.
    fn ticket_told(&self, place: usize, heard: u8, rules: &Rules) -> (u8, bool) {
        let enough = if rules.breaks(Broken::TicketOfAMinority) { 1 } else { rules.quorum() };
        let told = || self.heard(place, heard);
        let mut tickets: Vec<u8> = told().map(|answer| answer.ticket).collect();
        tickets.sort_unstable();
        let Some(&ticket) = tickets.get(enough - 1) else { return (0, false) };
        (ticket, told().any(|answer| answer.ticket != ticket || !answer.stands))
    }

    /// Gives up or releases; a try is only given back.
    pub(crate) fn leave(&mut self, place: usize, rules: &Rules) {
        let bid = self.places[place].bids;
        let kind = if rules.only_tries(place) { Kind::Undo } else { Kind::Leave };
        let only_granted = rules.breaks(Broken::LeavesWhereGranted);
        let granted = self.voters.map(|voter| voter.is_held_by(place, bid));
        for (queue, granted) in self.queues(place, rules).zip(granted) {
            if granted || !only_granted {
                queue.push(Request { kind, place, bid, ticket: 0 });
            }
        }
        self.end(place);
    }

    /// The client and all its places. What it had sent may arrive.
    pub(crate) fn die(&mut self, client: usize, rules: &Rules) {
        self.dead[client] = true;
        for place in rules.places().filter(|place| rules.client_of(*place) == client) {
            self.end(place);
        }
        for voter in &mut self.voters {
            voter.lines[client].cut();
            voter.lines[client].queue = Requests::default();
        }
    }

    pub(crate) fn end(&mut self, place: usize) {
        self.places[place] = Place::GONE;
        self.forget_answers(place);
        self.forget_order_of(place);
    }

    fn undo(&mut self, place: usize, bid: u8, voters: u8, rules: &Rules) {
        for (queue, at) in self.queues(place, rules).zip(0..) {
            if voters >> at & 1 > 0 {
                queue.push(Request { kind: Kind::Undo, place, bid, ticket: 0 });
            }
        }
    }

    pub(crate) fn queues(
        &mut self,
        place: usize,
        rules: &Rules,
    ) -> impl Iterator<Item = &mut Requests> {
        let client = rules.client_of(place);
        let voters = self.voters.iter_mut().take(rules.voters());
        voters.map(move |voter| &mut voter.lines[client].queue)
    }

    pub(crate) fn answers(&self, place: usize) -> impl Iterator<Item = Option<Answer>> {
        self.voters.iter().map(move |voter| voter.answers[place])
    }

    pub(crate) fn forget_answers(&mut self, place: usize) {
        self.voters.iter_mut().for_each(|voter| voter.answers[place] = None);
    }

    fn heard(&self, place: usize, heard: u8) -> impl Iterator<Item = Answer> {
        let is_heard = move |at: usize| heard >> at & 1 > 0;
        self.answers(place).enumerate().filter_map(move |(at, it)| it.filter(|_| is_heard(at)))
    }

    fn count(&self, place: usize, heard: u8, counts: bool) -> usize {
        self.heard(place, heard).filter(|answer| answer.counts() == counts).count()
    }

    /// So many that there is no majority any more.
    fn is_refused(&self, place: usize, heard: u8, rules: &Rules) -> bool {
        self.count(place, heard, false) > rules.voters() - rules.quorum()
    }
}

fn bits(voters: impl Iterator<Item = bool>) -> u8 {
    voters.zip(0..).map(|(is_in, at)| u8::from(is_in) << at).sum()
}
