//! One bid from a place in a queue: the request to all voters, and the wait until the next one.

use std::{mem, time::Duration};

use super::{Cause, Loss, Moment, Quorum, Rules, Verdict, Votes, Wait, Wake};

/// A waiter's number in the queue of a lock. Once it is fixed, it is the same on every voter.
///
/// The queue is ordered by ticket, then by place. A ticket never changes once it is fixed: if it
/// were raised later, later callers would pass this waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BidNext {
    /// Nothing before this moment, unless an answer or a wake-up comes.
    Wait(Moment),
    /// A majority granted.
    Won,
    /// Give the votes of these voters back, and keep the place.
    GiveBack(Vec<usize>),
    /// A majority has answered, and it is another waiter's or holder's turn. Returned once: from
    /// now on the bid waits for its turn.
    Refused,
    /// The bid is over: the next one may be granted, or the limit has come. With what ended the
    /// sleep, if there was one.
    End(Option<Wake>),
    /// Too few voters gave a usable answer, or a majority granted too late. Give back all votes
    /// that voters may have given, and pause before the next bid.
    Silent,
    /// Like `Silent`, and the place no longer leads to the lock: leave the queue on these voters,
    /// and enter it again behind all others.
    Leave(Vec<usize>),
}

/// A bid from its first request on.
///
/// A bid that cannot win gives back its votes at once and keeps its place: the voters agree who is
/// first, and wake that waiter once they are free.
// A waiter that kept its votes could keep the one that a holder needs. With one of three voters
// stopped, the holder renews on one, the waiter has the vote of the other, and the lock is lost.
#[derive(Debug)]
pub struct Bid {
    rules: Rules,
    quorum: Quorum,
    votes: Votes,
    /// The ticket in its requests.
    ticket: Option<Ticket>,
    voters: Vec<BidVoter>,
    started: Moment,
    due: Moment,
    refresh: Moment,
    lost_at: Option<Moment>,
    too_late: bool,
    has_reported_refusal: bool,
    first_wake_up: Option<Moment>,
}

/// What one voter has answered to a bid.
#[derive(Clone, Copy, Debug)]
struct BidVoter {
    /// When the hold or place in the way ends unless it asks again.
    ends: Option<Moment>,
    /// It may have given a vote that was not given back.
    owed: bool,
    // The first that it named. By the time it is asked again, it may have taken the place out of
    // its queue, and would name another.
    ticket: Option<Ticket>,
    /// The place is in its queue with this ticket.
    stands: bool,
}

impl BidVoter {
    fn stands_at(&self, ticket: Ticket) -> bool {
        self.stands && self.ticket == Some(ticket)
    }
}

impl Bid {
    // At the first wake-up the other voters may not have the release yet, and would refuse. But
    // wake-ups get lost, so a waiter does not hold out for a majority of them.
    /// How long after the first wake-up the bid waits for further ones.
    const WAKE_UPS: Duration = Duration::from_millis(5);
    // A voter shows and ends leases in whole milliseconds: a question at the shown end would often
    // be refused once more.
    /// How long after the shown end of a lease its voter is asked.
    const EXPIRY: Duration = Duration::from_millis(2);

    pub fn start(
        quorum: Quorum,
        rules: Rules,
        ticket: Option<Ticket>,
        wait: &mut Wait,
        now: Moment,
    ) -> Self {
        let (due, limit) = (now + rules.voter_deadline, wait.start_attempt(now));
        // A voter that has not answered yet may be free, and may have given its vote.
        let unheard = BidVoter { ends: Some(now), owed: true, ticket: None, stands: false };
        Self {
            rules,
            quorum,
            votes: Votes::new(quorum),
            ticket,
            voters: vec![unheard; quorum.voters()],
            started: now,
            due: limit.map_or(due, |limit| limit.min(due)),
            refresh: now + wait.refresh,
            lost_at: None,
            too_late: false,
            has_reported_refusal: false,
            first_wake_up: None,
        }
    }

    pub fn heard(&mut self, voter: usize, verdict: Verdict, ticket: Option<Ticket>, now: Moment) {
        let granted = verdict == Verdict::Granted;
        let known = &mut self.voters[voter];
        if known.ticket.is_none() && ticket.is_some() {
            // A voter grants a free lock with an empty queue without an entry (`bid` in
            // `lua/lib.lua`), unless the request carries a ticket.
            (known.ticket, known.stands) = (ticket, !granted || self.ticket.is_some());
        }
        // The request may have run, and only its reply was lost. A vote that is not given back then
        // keeps the lock from everybody until its lease ends (law 6).
        let is_doubtful =
            matches!(&verdict, Verdict::Unknown(why) if !matches!(why, Cause::Unreachable(_)));
        known.owed = granted || is_doubtful && !crate::mutant!("undoes_known_grants");
        known.ends = match verdict.obstacle() {
            Some((_, ttl)) => ttl.map(|ttl| now + ttl + Self::EXPIRY),
            // Our own vote is in nobody's way: this moment has passed.
            None if granted => Some(self.started),
            None => None,
        };
        self.votes.record(voter, verdict);
    }

    /// Whether a voter may have given a vote that was not given back.
    pub fn owes(&self, voter: usize) -> bool {
        self.voters[voter].owed
    }

    /// The ticket of the place, once it is fixed.
    pub fn ticket(&self) -> Option<Ticket> {
        // A voter that forgot the place names a higher number when the place comes back. If the
        // place took that, all who came after it would pass it on the other voters (law 4).
        if crate::mutant!("ticket_is_raised") {
            return self.fixed_ticket().max(self.ticket);
        }
        self.ticket.or_else(|| self.fixed_ticket())
    }

    /// The lowest number that is the highest of some majority of the answers.
    fn fixed_ticket(&self) -> Option<Ticket> {
        // Not lower: whoever stood on a majority before has a lower ticket, as the two majorities
        // share a voter, which named its number after that. Not the highest of all: if a majority
        // named the same number, the place is already there, ahead of all later callers (design 8).
        let said = |voter: usize| self.voters[voter].ticket;
        let is_highest = crate::mutant!("ticket_is_raised");
        if is_highest || crate::mutant!("highest_ticket_is_fixed") {
            let decided = self.quorum.reached(|voter| said(voter).is_some());
            return (0..self.voters.len()).filter_map(said).max().filter(|_| decided);
        }
        self.quorum.lowest(said)
    }

    /// Whether the place is in the queues of a majority with this ticket.
    fn stands_at(&self, ticket: Ticket) -> bool {
        self.quorum.reached(|voter| self.voters[voter].stands_at(ticket))
    }

    /// Whether all voters that have answered have the place in their queues with this ticket.
    fn all_agree_on(&self, ticket: Ticket) -> bool {
        self.voters.iter().all(|voter| voter.ticket.is_none() || voter.stands_at(ticket))
    }

    /// Whether a majority has answered, and it was another waiter's or holder's turn.
    pub fn is_refused(&self) -> bool {
        // Only a majority says whose turn it is (law 9). Without one there is nothing to wait for
        // but the voters themselves.
        self.lost_at.is_some() && !self.too_late && self.votes.may_spare_the_silent()
    }

    /// Why the bid was lost. `None` while too few voters have answered to say.
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

    /// `called`: the voters that have sent a wake-up since it started. `wait`: the wait of which
    /// this bid is an attempt.
    pub fn next(&mut self, now: Moment, called: &[bool], wait: &mut Wait) -> BidNext {
        match self.judge(now, called) {
            BidNext::Won => {
                wait.note_answer(self.started);
                BidNext::Won
            }
            BidNext::Silent => {
                // A voter that no bid from this place can have reached has nothing to take out.
                let was_sent =
                    |voter: &usize| wait.answered.is_some() || self.votes.was_reached(*voter);
                let sent = (0..self.voters.len()).filter(was_sent).collect();
                let has_ended = wait.place_has_ended(self.votes.are_given(), now);
                if has_ended { BidNext::Leave(sent) } else { BidNext::Silent }
            }
            // The caller subscribes to wake-ups only now: a lock that is free costs no
            // subscription.
            BidNext::Wait(_)
                if self.is_refused() && !mem::replace(&mut self.has_reported_refusal, true) =>
            {
                BidNext::Refused
            }
            BidNext::Wait(until) if self.is_refused() => {
                wait.await_turn(until, now).map_or_else(BidNext::End, BidNext::Wait)
            }
            next => next,
        }
    }

    /// What follows from the answers and wake-ups alone, without the limit of the wait.
    fn judge(&mut self, now: Moment, called: &[bool]) -> BidNext {
        if now >= self.due {
            // A silent voter is no longer taken for free. Otherwise, with one voter granting, one
            // refusing and one silent, bid would follow bid without a pause.
            for voter in self.votes.unheard() {
                self.voters[voter].ends = None;
            }
            self.votes.close(self.due.since(self.started));
        }
        // A bid that is lost stays lost. Its votes are being given back, so a late grant must not
        // make a majority with them (law 1).
        if self.lost_at.is_none() {
            if self.votes.is_won() && self.rules.is_in_time(self.started, now) {
                let waits = crate::mutant!("waits_for_all_grants") && self.votes.is_open();
                return if waits { BidNext::Wait(self.due) } else { BidNext::Won };
            }
            self.too_late = self.votes.is_won();
            if !self.votes.is_hopeless() && !self.too_late {
                return BidNext::Wait(self.due);
            }
            self.lost_at = Some(now);
        }
        let owed = self.take_owed();
        if !owed.is_empty() {
            return BidNext::GiveBack(owed);
        }
        self.wait_for_next(now, called)
    }

    /// The voters that have granted, or will not say any more whether they have.
    fn take_owed(&mut self) -> Vec<usize> {
        // A voter that has not answered may refuse: an undo for nothing. If it grants, `heard` has
        // it owe again.
        let open = self.votes.unheard();
        let owed = |voter: &usize| self.voters[*voter].owed && !open.contains(voter);
        let owed: Vec<usize> = (0..self.voters.len()).filter(owed).collect();
        for voter in &owed {
            self.voters[*voter].owed = false;
        }
        owed
    }

    /// Until when the lost bid waits, or that the next one may follow.
    fn wait_for_next(&mut self, now: Moment, called: &[bool]) -> BidNext {
        let open = self.votes.is_open();
        let is_called = called.contains(&true);
        let again = BidNext::End(Some(if is_called { Wake::Message } else { Wake::Timer }));
        // As long again as the deciding answers took: the others are probably about to come.
        let linger = self.lost_at.map_or(self.due, |lost| lost + lost.since(self.started));
        let linger = linger.min(self.due);
        if self.too_late || self.votes.lacks_quorum() {
            // The error names every voter's cause, so voters that may still answer are waited for.
            let until = if self.too_late { linger } else { self.due };
            return if open && now < until { BidNext::Wait(until) } else { BidNext::Silent };
        }
        let Some(ticket) = self.ticket() else { return BidNext::Wait(self.due) };
        if self.ticket.is_none() {
            // A late answer can still lower the ticket, until a majority has the place with it.
            if open && now < linger && !self.stands_at(ticket) {
                return BidNext::Wait(linger);
            }
            // The next bid carries the ticket. Until the voters that named another number store it,
            // a later caller can be behind us there and before us elsewhere (law 4).
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

    /// When the next bid follows: after enough wake-ups, when a majority can be free, and in time
    /// to keep the place.
    fn again_at(&mut self, now: Moment, called: &[bool]) -> Moment {
        if self.votes.has_enough_wake_ups(called) {
            return now;
        }
        if self.votes.has_wake_up(called) {
            self.first_wake_up.get_or_insert(now);
        }
        let called = self.first_wake_up.map(|first| first + Self::WAKE_UPS);
        let free = self.quorum.lowest(|voter| self.voters[voter].ends);
        [called, free].into_iter().flatten().fold(self.refresh, Moment::min)
    }
}

#[cfg(test)]
#[path = "bid_tests.rs"]
mod tests;
