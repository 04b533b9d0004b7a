//! One bid from a place in a queue: the request to all voters, and the wait until the next one.

use std::{mem, time::Duration};

use super::{Cause, Loss, Moment, Quorum, Rules, Verdict, Votes, Wait, Wake};

/// A waiter's number in the queue of a lock: the same on every voter, once it is fixed.
///
/// It orders the queue, and where two are equal the places do. It never changes once it is fixed:
/// raised later, it would let those pass who came after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BidNext {
    /// Nothing before this moment, unless a verdict or a call comes.
    Wait(Moment),
    /// A majority granted.
    Won,
    /// Give the votes of these voters back, and keep the place.
    GiveBack(Vec<usize>),
    /// A majority has answered, and it is another's turn. Said once: from now on the turn is waited
    /// for.
    Refused,
    /// The bid is over: the next one may be granted, or the limit has come. With what ended a sleep.
    End(Option<Wake>),
    /// Too few voters gave a usable answer, or too late: give back what there may be, and pause
    /// before the next bid.
    Silent,
    /// The same, and the place does not lead to the lock any more: leave the queue on these voters,
    /// and enter it again behind all others.
    Leave(Vec<usize>),
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
    /// What is known of each voter.
    known: Vec<Known>,
    started: Moment,
    due: Moment,
    refresh: Moment,
    lost: Option<Moment>,
    too_late: bool,
    /// Its caller knows that it was refused.
    said_refused: bool,
    first_call: Option<Moment>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    /// When its obstacle ends unless that asks again.
    ends: Option<Moment>,
    /// It may have given a vote that was not given back.
    owed: bool,
    /// What it said first; one that is asked again may have taken the place out meanwhile.
    ticket: Option<Ticket>,
    /// The place stands in its queue with this ticket.
    stands: bool,
}

impl Known {
    fn stands_at(&self, ticket: Ticket) -> bool {
        self.stands && self.ticket == Some(ticket)
    }
}

impl Bid {
    /// How long after the first call the others are waited for: some may have been lost.
    const CALLS: Duration = Duration::from_millis(5);
    /// A voter's expiry has a resolution of a millisecond.
    const EXPIRY: Duration = Duration::from_millis(2);

    /// The next attempt of the caller who waits so.
    pub fn start(
        quorum: Quorum,
        rules: Rules,
        ticket: Option<Ticket>,
        wait: &mut Wait,
        now: Moment,
    ) -> Self {
        let (due, limit) = (now + rules.voter_deadline, wait.start_attempt(now));
        // One that has not been heard may be free.
        let unheard = Known { ends: Some(now), owed: true, ticket: None, stands: false };
        Self {
            rules,
            quorum,
            votes: Votes::new(quorum),
            ticket,
            known: vec![unheard; quorum.voters()],
            started: now,
            due: limit.map_or(due, |limit| limit.min(due)),
            refresh: now + wait.refresh,
            lost: None,
            too_late: false,
            said_refused: false,
            first_call: None,
        }
    }

    pub fn heard(&mut self, voter: usize, verdict: Verdict, ticket: Option<Ticket>, now: Moment) {
        let granted = verdict == Verdict::Granted;
        let known = &mut self.known[voter];
        if known.ticket.is_none() && ticket.is_some() {
            // A grant to one without a ticket may have left no entry.
            (known.ticket, known.stands) = (ticket, !granted || self.ticket.is_some());
        }
        // It may have run, unless nothing was sent.
        let is_doubtful =
            matches!(&verdict, Verdict::Unknown(why) if !matches!(why, Cause::Unreachable(_)));
        known.owed = granted || is_doubtful && !crate::mutant!("undoes_known_grants");
        known.ends = match verdict.obstacle() {
            Some((_, ttl)) => ttl.map(|ttl| now + ttl + Self::EXPIRY),
            None if granted => Some(self.started),
            None => None,
        };
        self.votes.record(voter, verdict);
    }

    /// Whether a voter may have given a vote that was not given back.
    pub fn owes(&self, voter: usize) -> bool {
        self.known[voter].owed
    }

    /// The ticket of the place, once it is fixed.
    pub fn ticket(&self) -> Option<Ticket> {
        if crate::mutant!("ticket_is_raised") {
            return self.fixed_ticket().max(self.ticket);
        }
        self.ticket.or_else(|| self.fixed_ticket())
    }

    /// The highest that a majority said, of all majorities that have answered the one with the
    /// lowest. Whoever stood on a majority before has a lower one: the two majorities share a
    /// voter, which gave its ticket after that. And where a majority said the same, it is that: the
    /// place stands there already, ahead of whoever has asked since.
    fn fixed_ticket(&self) -> Option<Ticket> {
        // Why not the highest of all: decision 8 of `docs/design.md`.
        let said = |voter: usize| self.known[voter].ticket;
        let is_highest = crate::mutant!("ticket_is_raised");
        if is_highest || crate::mutant!("highest_ticket_is_fixed") {
            let decided = self.quorum.reached(|voter| said(voter).is_some());
            return (0..self.known.len()).filter_map(said).max().filter(|_| decided);
        }
        self.quorum.lowest(said)
    }

    /// Whether the place stands with this ticket on a majority.
    fn stands_at(&self, ticket: Ticket) -> bool {
        self.quorum.reached(|voter| self.known[voter].stands_at(ticket))
    }

    /// Whether everybody who was heard has the place in the queue, with this ticket.
    fn all_agree_on(&self, ticket: Ticket) -> bool {
        self.known.iter().all(|known| known.ticket.is_none() || known.stands_at(ticket))
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

    /// `called`: the voters that called since it started. `wait`: of which it is an attempt.
    pub fn next(&mut self, now: Moment, called: &[bool], wait: &mut Wait) -> BidNext {
        match self.judge(now, called) {
            BidNext::Won => {
                wait.answer(self.started);
                BidNext::Won
            }
            BidNext::Silent => {
                // Nothing is to be called back where nothing was sent.
                let was_sent =
                    |voter: &usize| wait.answered.is_some() || self.votes.was_reached(*voter);
                let sent = (0..self.known.len()).filter(was_sent).collect();
                let has_ended = wait.place_has_ended(self.votes.are_given(), now);
                if has_ended { BidNext::Leave(sent) } else { BidNext::Silent }
            }
            BidNext::Wait(_)
                if self.is_refused() && !mem::replace(&mut self.said_refused, true) =>
            {
                BidNext::Refused
            }
            BidNext::Wait(until) if self.is_refused() => {
                wait.await_turn(until, now).map_or_else(BidNext::End, BidNext::Wait)
            }
            next => next,
        }
    }

    /// The same for one that may wait for ever, and is told nothing.
    fn judge(&mut self, now: Moment, called: &[bool]) -> BidNext {
        if now >= self.due {
            for voter in self.votes.unheard() {
                self.known[voter].ends = None;
            }
            self.votes.close(self.due.since(self.started));
        }
        // A bid that is lost stays lost. Its votes are being given back, so a late grant must not
        // make a majority with them (law 1).
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
        self.rest(now, called)
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

    fn rest(&mut self, now: Moment, called: &[bool]) -> BidNext {
        let open = self.votes.is_open();
        let is_called = called.contains(&true);
        let again = BidNext::End(Some(if is_called { Wake::Called } else { Wake::Timer }));
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
            if open && now < linger && !self.stands_at(ticket) {
                return BidNext::Wait(linger);
            }
            // The next bid carries the ticket. Until voters that said a lower one hear it, later
            // callers may be behind us on them and before us elsewhere (law 4).
            if !self.all_agree_on(ticket) {
                return again;
            }
        }
        let until = self.again_at(now, called);
        if now >= until {
            return again;
        }
        BidNext::Wait(if open { until.min(self.due) } else { until })
    }

    fn again_at(&mut self, now: Moment, called: &[bool]) -> Moment {
        if self.votes.have_called(called) {
            return now;
        }
        if self.votes.has_called(called) {
            self.first_call.get_or_insert(now);
        }
        let called = self.first_call.map(|call| call + Self::CALLS);
        let free = self.quorum.lowest(|voter| self.known[voter].ends);
        [called, free].into_iter().flatten().fold(self.refresh, Moment::min)
    }
}

#[cfg(test)]
#[path = "bid_tests.rs"]
mod tests;
