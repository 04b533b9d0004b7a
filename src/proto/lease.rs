//! Keeping a hold: when to renew, and when trust ends.

use std::time::Duration;

use super::{Backoff, Moment, moment::length_of};

/// How far the clocks of client and voters may drift apart during one lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drift {
    /// Parts per million of the lease.
    pub ppm: u32,
    // A voter ends leases in whole milliseconds, also a very short one.
    /// Added to that.
    pub fixed: Duration,
}

impl Drift {
    /// A hundredth of the lease and 2 ms.
    pub const DEFAULT: Self = Self { ppm: 10_000, fixed: Duration::from_millis(2) };

    pub fn over(self, lease: Duration) -> Duration {
        let share = lease.as_nanos().saturating_mul(u128::from(self.ppm)) / 1_000_000;
        length_of(share).saturating_add(self.fixed)
    }
}

/// A lease, and the part of it that is not trusted because of drift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    pub lease: Duration,
    drift: Duration,
}

impl Terms {
    pub fn new(lease: Duration, drift: Drift) -> Self {
        Self { lease, drift: drift.over(lease) }
    }

    /// The lease without the drift; zero if the drift is as long.
    pub fn validity(self) -> Duration {
        // A voter whose clock is fast ends the lease sooner by the client's clock. Trust for the
        // whole lease would overlap with the next holder's (law 2).
        let drift = if crate::mutant!("no_drift") { Duration::ZERO } else { self.drift };
        self.lease.saturating_sub(drift)
    }

    /// The terms with the longer lease.
    #[must_use]
    pub fn longer(self, other: Self) -> Self {
        if other.lease > self.lease { other } else { self }
    }

    /// The share of the validity that is left now, of a round that started at `started`.
    pub fn share_left(self, started: Moment, now: Moment) -> f64 {
        self.deadline(started).since(now).div_duration_f64(self.validity())
    }

    /// When trust ends, in a round whose first byte was sent at `started` or later.
    pub fn deadline(self, started: Moment) -> Moment {
        // From before the first request, and not from an answer: a voter's lease begins when the
        // request arrives, and the answer may be slow (mutant `validity_from_the_reply`).
        started + self.validity()
    }
}

/// What the keeper of a hold has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    /// Nothing before this moment.
    Sleep(Moment),
    /// Ask all voters to renew.
    Renew,
    /// Trust has ended.
    Lost,
}

/// How long a hold may be held, however often it is renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldLimit {
    pub at_most: Duration,
    ends: Moment,
}

impl HoldLimit {
    pub fn new(at_most: Duration, granted: Moment) -> Self {
        Self { at_most, ends: granted + at_most }
    }

    pub fn left(&self, now: Moment) -> Duration {
        self.ends.since(now)
    }
}

/// The lease of one hold. Only a renewal that a majority granted before the deadline puts the
/// deadline off. Nothing puts off the end of the limit.
#[derive(Debug)]
pub struct Lease {
    terms: Terms,
    /// Until when the votes are trusted.
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
            // After a third, so that an outage of almost two thirds of the lease costs no lock.
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

    /// A majority granted a renewal for `terms` whose first request was sent at `started`. Whether
    /// that came in time.
    pub fn renewed(&mut self, terms: Terms, started: Moment, now: Moment) -> bool {
        // The guard has already reported the loss, and another may have the lock by now (law 2).
        if now >= self.deadline() {
            return false;
        }
        // Never back: a round of a re-entry may overlap with one of the keeper, and end before it.
        self.votes_end = self.votes_end.max(terms.deadline(started));
        self.renew_at = self.renew_at.map(|_| started + terms.lease / 3);
        self.retry.reset();
        true
    }

    /// A round failed. The next one follows after a short pause.
    pub fn failed(&mut self, now: Moment, chance: u32) {
        let pause = self.retry.pause(chance);
        self.renew_at = self.renew_at.map(|_| now + pause);
    }

    /// Renews at once, if it is renewed at all.
    pub fn renew_now(&mut self, now: Moment) {
        self.renew_at = self.renew_at.map(|renew_at| renew_at.min(now));
    }

    /// The client stood still for so long, and its clock with it.
    pub fn shorten(&mut self, by: Duration) {
        // The limit too: the lock was also held during the pause.
        self.votes_end = self.votes_end - by;
        if let Some(limit) = &mut self.limit {
            limit.ends = limit.ends - by;
        }
    }

    /// Another entry was granted with these terms. From now on the longer lease is renewed, and a
    /// fixed lease becomes a renewed one if the entry wants that.
    pub fn widen(&mut self, terms: Terms, renewed: bool, now: Moment) {
        // Nothing gets shorter: the entry before relies on its own terms.
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

    /// Trust ends now: the votes are given back, or another hold has them.
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

    /// Until when the votes are trusted, whatever the limit is.
    pub fn votes_end(&self) -> Moment {
        self.votes_end
    }

    pub fn limit(&self) -> Option<HoldLimit> {
        self.limit
    }

    /// The limit, if it is what ends the hold at the deadline.
    pub fn limit_that_ends_it(&self) -> Option<HoldLimit> {
        self.limit.filter(|limit| limit.ends <= self.votes_end)
    }
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
