//! What a place sends, and what it does with what the engine says: ask, bid again, win or leave.

use crate::queue_model::{
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
            // What was granted and not heard is no better than what was not granted.
            let grants = self.count_granted(place, *heard);
            may_time_out && (is_fixed || grants < rules.quorum())
                || self.is_refused(place, *heard, rules)
        };
        let mut losses = Vec::new();
        for heard in heard.filter(is_lost) {
            losses.push(Loss { heard, undo_last: false });
            let again = !is_fixed && self.lost_bid(place, heard, rules).again;
            if again && heard + 1 < 1 << rules.voters() {
                losses.push(Loss { heard, undo_last: true });
            }
        }
        losses
    }

    /// The bid is lost, its votes are given back, and its ticket may be fixed.
    pub(crate) fn lose(&mut self, place: usize, loss: Loss, rules: &Rules) {
        if !self.is_refused(place, loss.heard, rules) {
            self.budget.timeouts -= 1;
        }
        let lost = self.lost_bid(place, loss.heard, rules);
        let bid = self.places[place].bids;
        let unheard = (0..rules.voters()).filter(|voter| loss.heard >> voter & 1 == 0);
        let unheard: Vec<usize> = unheard.collect();
        self.forget_answers(place);
        self.undo(place, bid, &lost.give_back, rules);
        if !loss.undo_last {
            self.undo(place, bid, &unheard, rules);
        }
        let it = &mut self.places[place];
        it.phase = Phase::Waiting;
        it.ticket = lost.ticket;
        if rules.only_tries(place) {
            self.end(place);
        } else if lost.again {
            self.bid(place, rules);
        }
        if loss.undo_last {
            self.undo(place, bid, &unheard, rules);
        }
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
        for place in rules.places().filter(|place| rules.client_of(*place) == client) {
            self.dead[place] = true;
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

    fn undo(&mut self, place: usize, bid: u8, voters: &[usize], rules: &Rules) {
        for (queue, at) in self.queues(place, rules).zip(0..) {
            if voters.contains(&at) {
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

    fn count_granted(&self, place: usize, heard: u8) -> usize {
        let granted = |(at, it): (usize, Option<Answer>)| {
            heard >> at & 1 > 0 && it.is_some_and(Answer::counts)
        };
        self.answers(place).enumerate().filter(|it| granted(*it)).count()
    }
}

fn bits(voters: impl Iterator<Item = bool>) -> u8 {
    voters.zip(0..).map(|(is_in, at)| u8::from(is_in) << at).sum()
}
