//! Keeping a hold: when to renew, and when trust ends.

use std::time::Duration;

use super::{Backoff, Quorum, Terms, Votes};
use crate::proto::{Moment, Verdict};

/// What a hold's keeper has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    /// Nothing before this moment.
    Sleep(Moment),
    /// Ask all voters to renew.
    Renew,
    /// Trust has ended.
    Lost,
}

/// For how long a hold may be held, however often it is renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldLimit {
    pub at_most: Duration,
    ends: Moment,
}

impl HoldLimit {
    pub fn new(at_most: Duration, granted: Moment) -> Self {
        Self { at_most, ends: granted + at_most }
    }
}

/// The lease of one hold. Nothing but a renewal that a majority granted before the deadline puts
/// the deadline off, and nothing puts off the end of the limit.
#[derive(Debug)]
pub struct Lease {
    terms: Terms,
    /// When the votes are not to be trusted any more.
    votes_end: Moment,
    limit: Option<HoldLimit>,
    /// `None` for a fixed lease.
    renew_at: Option<Moment>,
    retry: Backoff,
}

impl Lease {
    pub fn new(terms: Terms, started: Moment, renewed: bool, limit: Option<HoldLimit>) -> Self {
        let shortest = Duration::from_millis(5).min(terms.lease / 100);
        Self {
            terms,
            votes_end: terms.deadline(started),
            limit,
            renew_at: (renewed && !crate::mutant!("renews_never"))
                .then(|| started + terms.lease / 3),
            retry: Backoff::new(shortest, terms.lease / 20),
        }
    }

    pub fn duty(&self, now: Moment) -> Duty {
        let deadline = self.deadline();
        match self.renew_at {
            _ if now >= deadline => Duty::Lost,
            Some(renew_at) if now >= renew_at => Duty::Renew,
            Some(renew_at) => Duty::Sleep(renew_at.min(deadline)),
            None => Duty::Sleep(deadline),
        }
    }

    /// A majority granted a renewal for `terms` whose first request was sent at `started`. Says
    /// whether that came in time; the deadline never moves back.
    pub fn renewed(&mut self, terms: Terms, started: Moment, now: Moment) -> bool {
        if now >= self.deadline() {
            return false;
        }
        self.votes_end = self.votes_end.max(terms.deadline(started));
        self.renew_at = self.renew_at.map(|_| started + terms.lease / 3);
        self.retry.reset();
        true
    }

    /// A round failed: the next one follows after a short pause.
    pub fn failed(&mut self, now: Moment, chance: u32) {
        let pause = self.retry.pause(chance);
        self.renew_at = self.renew_at.map(|_| now + pause);
    }

    /// There is a reason not to wait for the next renewal.
    pub fn renew_now(&mut self, now: Moment) {
        self.renew_at = self.renew_at.map(|renew_at| renew_at.min(now));
    }

    /// So much of it passed while the client stood still.
    pub fn shorten(&mut self, by: Duration) {
        self.votes_end = self.votes_end - by;
        if let Some(limit) = &mut self.limit {
            limit.ends = limit.ends - by;
        }
    }

    /// Another entry was granted with these terms: the longer lease is kept from now on, and a
    /// fixed lease becomes a renewed one if it asks for that. Never shortens anything.
    pub fn widen(&mut self, terms: Terms, renewed: bool, now: Moment) {
        self.terms = self.terms.longer(terms);
        if renewed && self.renew_at.is_none() {
            self.renew_at = Some(now + self.terms.lease / 3);
        }
    }

    pub fn terms(&self) -> Terms {
        self.terms
    }

    /// Whether it is renewed at all.
    pub fn is_fixed(&self) -> bool {
        self.renew_at.is_none()
    }

    /// Whether a renewal is due before trust ends.
    pub fn renews_before_it_ends(&self) -> bool {
        self.renew_at.is_some_and(|renew_at| renew_at < self.deadline())
    }

    /// Trust ends now: the votes are given back, or known to be another's.
    pub fn end(&mut self) {
        self.votes_end = Moment::BEGINNING;
    }

    /// When trust ends: with the votes, or with the limit if that is sooner (law 2).
    pub fn deadline(&self) -> Moment {
        match self.limit {
            Some(limit) if !crate::mutant!("held_beyond_the_limit") => {
                self.votes_end.min(limit.ends)
            }
            _ => self.votes_end,
        }
    }

    /// When the votes are not to be trusted any more, whatever the limit is.
    pub fn votes_end(&self) -> Moment {
        self.votes_end
    }

    pub fn limit(&self) -> Option<HoldLimit> {
        self.limit
    }

    /// The limit, if the deadline is its end.
    pub fn limit_that_ends_it(&self) -> Option<HoldLimit> {
        self.limit.filter(|limit| limit.ends <= self.votes_end)
    }
}

/// How a round of renewal ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundEnd {
    Renewed,
    Failed,
    /// No later round can succeed.
    Superseded,
    /// A majority of voters had forgotten the hold, so another may have held the lock.
    Vanished,
}

/// What to do next in a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoundNext {
    /// Nothing before this moment, unless a verdict comes.
    Wait(Moment),
    /// Ask these voters again: the same request.
    AskAgain(Vec<usize>),
    End(RoundEnd),
}

/// One round of renewal: ends at the majority, or when there can be none.
///
/// Another hold without a majority will give its votes back, but where a voter is silent this one
/// may need them to go on: whoever refused is asked again until the answers are due.
#[derive(Debug)]
pub struct Round {
    votes: Votes,
    terms: Terms,
    started: Moment,
    due: Moment,
    pause: Backoff,
    ask_again: Option<Moment>,
    has_vanished: bool,
}

impl Round {
    /// `terms`: what the voters are asked for.
    pub fn start(quorum: Quorum, terms: Terms, now: Moment, voter_deadline: Duration) -> Self {
        Self {
            votes: Votes::new(quorum),
            terms,
            started: now,
            due: now + voter_deadline,
            pause: Backoff::new(voter_deadline / 64, voter_deadline / 4),
            ask_again: None,
            has_vanished: false,
        }
    }

    pub fn terms(&self) -> Terms {
        self.terms
    }

    pub fn started(&self) -> Moment {
        self.started
    }

    /// `suspected`: whoever has the voter's vote may not count it.
    pub fn heard(&mut self, voter: usize, verdict: Verdict, suspected: bool) {
        if suspected {
            self.votes.suspect(voter);
        }
        self.votes.record(voter, verdict);
    }

    /// A majority has forgotten the hold: what they grant now does not make up for that.
    pub fn vanish(&mut self) {
        self.has_vanished = true;
    }

    /// `chance`: asked for only where a pause begins.
    pub fn next(&mut self, now: Moment, chance: impl FnOnce() -> u32) -> RoundNext {
        if now >= self.due {
            self.votes.close(self.due.since(self.started));
        }
        if self.votes.is_superseded() {
            return RoundNext::End(RoundEnd::Superseded);
        }
        if self.has_vanished {
            return RoundNext::End(RoundEnd::Vanished);
        }
        if self.votes.is_won() {
            return RoundNext::End(RoundEnd::Renewed);
        }
        if now >= self.due || self.votes.lacks_quorum() {
            return RoundNext::End(RoundEnd::Failed);
        }
        if !self.votes.has_refusals() {
            return RoundNext::Wait(self.due);
        }
        // As soon as the refusal has come round again, and then less and less often.
        let pause = &mut self.pause;
        let again = *self.ask_again.get_or_insert_with(|| {
            pause.at_least(now.since(self.started) / 2);
            now + pause.pause(chance())
        });
        if now < again {
            return RoundNext::Wait(again.min(self.due));
        }
        self.ask_again = None;
        RoundNext::AskAgain(self.votes.reopen_refused())
    }

    /// What the voters have said.
    pub fn verdicts(&self) -> Vec<Verdict> {
        self.votes.clone().into_verdicts()
    }
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
