//! What a place sends, and what it does with what `proto` says: ask, bid again, win or leave.

use crate::{
    network::Requests,
    queue_model::{
        requests::{Kind, Request},
        rules::{Broken, Rules},
        state::{Answer, Phase, Place, State},
    },
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
        self.queues(place, rules).for_each(|(_, queue)| queue.push(request));
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
            let granted = |voter: usize| self.has_granted(place, voter, *heard);
            may_time_out && (is_fixed || !rules.decide(place, granted))
                || self.is_refused(place, *heard, rules)
        };
        let mut losses = Vec::new();
        for heard in heard.filter(is_lost) {
            losses.push(Loss { heard, undo_last: false });
            let again = !is_fixed && self.lost_bid(place, heard, rules).again;
            if again && rules.voters_of(place).any(|voter| heard >> voter & 1 == 0) {
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
        let unheard = rules.voters_of(place).filter(|voter| loss.heard >> voter & 1 == 0);
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
        for (at, queue) in self.queues(place, rules) {
            if granted[at] || !only_granted {
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
            voter.lines[client].cut(false);
        }
    }

    pub(crate) fn end(&mut self, place: usize) {
        self.places[place] = Place::GONE;
        self.forget_answers(place);
        self.forget_order_of(place);
    }

    fn undo(&mut self, place: usize, bid: u8, voters: &[usize], rules: &Rules) {
        for (at, queue) in self.queues(place, rules) {
            if voters.contains(&at) {
                queue.push(Request { kind: Kind::Undo, place, bid, ticket: 0 });
            }
        }
    }

    /// Those to its voters, each with the place of the voter.
    pub(crate) fn queues(
        &mut self,
        place: usize,
        rules: &Rules,
    ) -> impl Iterator<Item = (usize, &mut Requests<Request>)> {
        let (client, voters) = (rules.client_of(place), rules.voters_of(place));
        let queues = self.voters.iter_mut().map(move |voter| &mut voter.lines[client].queue);
        queues.enumerate().filter(move |(at, _)| voters.contains(at))
    }

    pub(crate) fn answers(&self, place: usize) -> impl Iterator<Item = Option<Answer>> {
        self.voters.iter().map(move |voter| voter.answers[place])
    }

    pub(crate) fn forget_answers(&mut self, place: usize) {
        self.voters.iter_mut().for_each(|voter| voter.answers[place] = None);
    }

    fn has_granted(&self, place: usize, voter: usize, heard: u8) -> bool {
        let answer = self.voters[voter].answers[place];
        heard >> voter & 1 > 0 && answer.is_some_and(Answer::counts)
    }
}

fn bits(voters: impl Iterator<Item = bool>) -> u8 {
    voters.zip(0..).map(|(is_in, at)| u8::from(is_in) << at).sum()
}
