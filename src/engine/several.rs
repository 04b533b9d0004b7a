//! How several locks are acquired at once: for which of them a caller waits, and for how long it
//! keeps what it has meanwhile.

use std::time::Duration;

use super::{Backoff, Limit};
use crate::clock::Moment;

/// For so long a caller keeps what it has the first time that it waits for others.
const FIRST_PATIENCE: Duration = Duration::from_millis(10);
/// And at most.
const LONGEST_PATIENCE: Duration = Duration::from_secs(4_000);

/// One caller that wants all of several locks.
#[derive(Clone, Debug)]
pub(crate) struct Several {
    limit: Limit,
    state: SeveralState,
    /// Grows with each time that it had to give back what it had.
    patience: Backoff,
    /// How often it had one of them and not the others.
    failures: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SeveralState {
    Start,
    /// This one was taken, and nothing is held.
    Wants(usize),
    /// This one is held.
    Has(usize),
    Over,
}

/// What it does next. The locks are called by their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SeveralNext {
    /// Asks for all at once, and waits for none.
    AskAll,
    /// Waits for this one alone, with nothing in its hands.
    WaitFor(usize, Limit),
    /// Has this one, and asks for all others at once, waiting for each so long.
    AskOthers(usize, Limit),
    /// Some of them were taken at the limit.
    GiveUp,
}

impl Several {
    pub(crate) fn new(limit: Limit) -> Self {
        let patience = Backoff::new(FIRST_PATIENCE, LONGEST_PATIENCE);
        Self { limit, state: SeveralState::Start, patience, failures: 0 }
    }

    /// `chance`: so that two who wait for each other do not lose patience at one moment.
    pub(crate) fn next(&mut self, now: Moment, chance: u32) -> SeveralNext {
        match self.state {
            SeveralState::Start => SeveralNext::AskAll,
            SeveralState::Wants(_) if self.limit.has_come(now) => SeveralNext::GiveUp,
            SeveralState::Wants(one) => SeveralNext::WaitFor(one, self.limit),
            SeveralState::Has(one) => {
                // The first time nobody has to wait for what this one keeps.
                let until = if self.failures == 0 {
                    Limit::Now
                } else {
                    let until = now + self.patience.pause(chance);
                    Limit::Until(self.limit.moment().map_or(until, |limit| limit.min(until)))
                };
                SeveralNext::AskOthers(one, until)
            }
            SeveralState::Over => SeveralNext::GiveUp,
        }
    }

    /// It was the turn of the one that it waited for; or the limit came before.
    pub(crate) fn waited(&mut self, is_granted: bool) {
        self.state = match self.state {
            SeveralState::Wants(one) if is_granted => SeveralState::Has(one),
            _ => SeveralState::Over,
        };
    }

    /// This one of those that it asked for was taken, and all is given back.
    pub(crate) fn missed(&mut self, one: usize) {
        if matches!(self.state, SeveralState::Has(_)) {
            self.failures = self.failures.saturating_add(1);
        }
        self.state = SeveralState::Wants(one);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn at(ms: u64) -> Moment {
        Moment::BEGINNING + MS(ms)
    }

    #[test]
    fn it_asks_for_all_at_once_and_then_waits_for_the_one_that_is_taken_alone() {
        let mut several = Several::new(Limit::Never);
        assert_eq!(several.next(at(0), 0), SeveralNext::AskAll);
        several.missed(1);
        assert_eq!(several.next(at(1), 0), SeveralNext::WaitFor(1, Limit::Never));
        several.waited(true);
        assert_eq!(several.next(at(2), 0), SeveralNext::AskOthers(1, Limit::Now));
        several.missed(0);
        assert_eq!(several.next(at(3), 0), SeveralNext::WaitFor(0, Limit::Never));
    }

    #[test]
    fn each_time_that_it_fails_it_keeps_what_it_has_for_longer() {
        let mut several = Several::new(Limit::Never);
        several.missed(0);
        let mut waits = Vec::new();
        for _ in 0..4 {
            several.waited(true);
            waits.push(several.next(at(0), 0));
            several.missed(0);
        }
        let until = [10, 20, 40].map(|ms| SeveralNext::AskOthers(0, Limit::Until(at(ms))));
        assert_eq!(waits[0], SeveralNext::AskOthers(0, Limit::Now));
        assert_eq!(waits[1..], until);
    }

    #[test]
    fn the_limit_ends_every_wait() {
        let limit = Limit::Until(at(5));
        let mut several = Several::new(limit);
        several.missed(0);
        assert_eq!(several.next(at(0), 0), SeveralNext::WaitFor(0, limit));
        several.waited(true);
        several.missed(1);
        several.waited(true);
        assert_eq!(several.next(at(1), 0), SeveralNext::AskOthers(1, limit), "sooner than 10 ms");
        several.missed(0);
        assert_eq!(several.next(at(5), 0), SeveralNext::GiveUp);
        let mut tries = Several::new(Limit::Now);
        assert_eq!(tries.next(at(0), 0), SeveralNext::AskAll);
        tries.missed(0);
        assert_eq!(tries.next(at(0), 0), SeveralNext::GiveUp);
        let mut late = Several::new(limit);
        late.missed(0);
        late.waited(false);
        assert_eq!(late.next(at(6), 0), SeveralNext::GiveUp);
    }
}
