//! One bid from a place in a queue: the request to all voters, and the wait until the next one.

use std::time::Duration;

use super::{
    Loss, Quorum, Rules, Votes,
    ticket::{Ticket, Tickets},
};
use crate::proto::{Cause, Moment, Verdict};

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BidNext {
    /// Nothing before this moment, unless a verdict or a call comes.
    Wait(Moment),
    /// A majority granted.
    Won,
    /// Give the votes of these voters back, and keep the place.
    GiveBack(Vec<usize>),
    /// Make the next bid.
    Again,
    /// Too few voters gave a usable answer, or too late: pause before the next bid.
    Silent,
}

/// What is to come before the next bid.
#[derive(Clone, Copy, Debug)]
pub struct Until {
    /// The place is to be told to the voters again.
    pub refresh: Duration,
    /// The caller gives up.
    pub limit: Option<Moment>,
}

/// A bid from its first request on.
///
/// Nobody keeps votes that are not a majority: the voters agree who is first, and call that one as
/// soon as they are free.
#[derive(Debug)]
pub struct Bid {
    rules: Rules,
    quorum: Quorum,
    votes: Votes,
    /// The ticket that it carries.
    ticket: Option<Ticket>,
    tickets: Tickets,
    /// What is known of each voter.
    known: Vec<Known>,
    started: Moment,
    due: Moment,
    refresh: Moment,
    lost: Option<Moment>,
    too_late: bool,
    first_call: Option<Moment>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    /// When its obstacle ends unless that asks again.
    ends: Option<Moment>,
    /// It may have given a vote that was not given back.
    owed: bool,
}

impl Bid {
    /// How long after the first call the others are waited for: some may have been lost.
    const CALLS: Duration = Duration::from_millis(5);
    /// A voter's expiry has a resolution of a millisecond.
    const EXPIRY: Duration = Duration::from_millis(2);

    pub fn start(
        quorum: Quorum,
        rules: Rules,
        ticket: Option<Ticket>,
        until: Until,
        now: Moment,
    ) -> Self {
        let due = now + rules.voter_deadline;
        Self {
            rules,
            quorum,
            votes: Votes::new(quorum),
            ticket,
            tickets: Tickets::new(quorum),
            // One that has not been heard may be free.
            known: vec![Known { ends: Some(now), owed: true }; quorum.voters()],
            started: now,
            due: until.limit.map_or(due, |limit| limit.min(due)),
            refresh: now + until.refresh,
            lost: None,
            too_late: false,
            first_call: None,
        }
    }

    pub fn heard(&mut self, voter: usize, verdict: Verdict, ticket: Option<Ticket>, now: Moment) {
        let granted = verdict == Verdict::Granted;
        if let Some(ticket) = ticket {
            // A grant to one without a ticket may have left no entry.
            self.tickets.heard(voter, ticket, !granted || self.ticket.is_some());
        }
        let is_doubtful = matches!(&verdict, Verdict::Unknown(why) if may_have_run(why));
        let owed = granted || is_doubtful && !crate::mutant!("undoes_known_grants");
        let ends = match verdict.obstacle() {
            Some((_, ttl)) => ttl.map(|ttl| now + ttl + Self::EXPIRY),
            None if granted => Some(self.started),
            None => None,
        };
        self.known[voter] = Known { ends, owed };
        self.votes.record(voter, verdict);
    }

    /// Whether a voter may have given a vote that was not given back.
    pub fn owes(&self, voter: usize) -> bool {
        self.known[voter].owed
    }

    /// The ticket of the place, once it is fixed.
    pub fn ticket(&self) -> Option<Ticket> {
        if crate::mutant!("ticket_is_raised") {
            return self.tickets.fixed().max(self.ticket);
        }
        self.ticket.or_else(|| self.tickets.fixed())
    }

    /// Whether a majority has answered, and it is another's turn or was: only then there is a turn
    /// to wait for.
    pub fn is_refused(&self) -> bool {
        self.lost.is_some() && !self.too_late && self.votes.may_spare_the_silent()
    }

    /// What it was lost by. `None` while too few voters have answered to say.
    pub fn loss(&self) -> Option<Loss> {
        let is_busy = crate::mutant!("no_quorum_is_busy") && self.votes.lacks_quorum();
        if self.is_refused() || is_busy {
            return Some(Loss::Held);
        }
        (self.too_late || self.votes.lacks_quorum()).then_some(Loss::NoQuorum)
    }

    pub fn started(&self) -> Moment {
        self.started
    }

    pub fn votes(&self) -> &Votes {
        &self.votes
    }

    pub fn into_votes(self) -> Votes {
        self.votes
    }

    /// `called`: the voters that called since it started.
    pub fn next(&mut self, now: Moment, called: &[bool]) -> BidNext {
        if now >= self.due {
            for voter in self.votes.unheard() {
                self.known[voter].ends = None;
            }
            self.votes.close(self.due.since(self.started));
        }
        if self.lost.is_none() {
            if self.votes.is_won() && self.rules.is_in_time(self.started, now) {
                let waits = crate::mutant!("waits_for_all_grants") && self.votes.is_open();
                return if waits { BidNext::Wait(self.due) } else { BidNext::Won };
            }
            self.too_late = self.votes.is_won();
            if !self.votes.is_hopeless() && !self.too_late {
                return BidNext::Wait(self.due);
            }
            self.lost = Some(now);
        }
        let owed = self.take_owed();
        if !owed.is_empty() {
            return BidNext::GiveBack(owed);
        }
        self.wait(now, called)
    }

    /// What is known to be granted, and what is unknown for good.
    fn take_owed(&mut self) -> Vec<usize> {
        let open = self.votes.unheard();
        let owed = |voter: &usize| self.known[*voter].owed && !open.contains(voter);
        let owed: Vec<usize> = (0..self.known.len()).filter(owed).collect();
        for voter in &owed {
            self.known[*voter].owed = false;
        }
        owed
    }

    fn wait(&mut self, now: Moment, called: &[bool]) -> BidNext {
        let open = self.votes.is_open();
        // As long again as it took: the answers under way are worth that.
        let linger = self.lost.map_or(self.due, |lost| lost + lost.since(self.started));
        let linger = linger.min(self.due);
        if self.too_late || self.votes.lacks_quorum() {
            // The error names every voter's cause: those that may still answer are waited for.
            let until = if self.too_late { linger } else { self.due };
            return if open && now < until { BidNext::Wait(until) } else { BidNext::Silent };
        }
        let Some(ticket) = self.ticket() else { return BidNext::Wait(self.due) };
        if self.ticket.is_none() {
            if open && now < linger && !self.tickets.stand_at(ticket) {
                return BidNext::Wait(linger);
            }
            if !self.tickets.agree_on(ticket) {
                return BidNext::Again;
            }
        }
        let again = self.again_at(now, called);
        if now >= again {
            return BidNext::Again;
        }
        BidNext::Wait(if open { again.min(self.due) } else { again })
    }

    fn again_at(&mut self, now: Moment, called: &[bool]) -> Moment {
        let awaited = self.votes.awaited();
        if awaited.have_called(called) {
            return now;
        }
        if awaited.has_called(called) {
            self.first_call.get_or_insert(now);
        }
        let called = self.first_call.map(|call| call + Self::CALLS);
        let free = self.quorum.lowest(|voter| self.known[voter].ends);
        [called, free].into_iter().flatten().fold(self.refresh, Moment::min)
    }
}

fn may_have_run(why: &Cause) -> bool {
    !matches!(why, Cause::Unreachable(_))
}

#[cfg(test)]
#[path = "bid_tests.rs"]
mod tests;
