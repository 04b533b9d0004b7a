//! How several locks are acquired at once: for which of them a caller waits, and what it keeps
//! meanwhile.

use super::Limit;
use crate::proto::Moment;

/// So often a caller gives back what it has and waits again with nothing in its hands.
const GIVES_BACK: u32 = 2;

/// One caller that wants all of several locks.
#[derive(Clone, Debug)]
pub struct Several {
    limit: Limit,
    state: SeveralState,
    /// How often it had one of them and not the others.
    failures: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SeveralState {
    Start,
    /// This one was taken, and nothing is held.
    Wants(usize),
    /// One is held.
    Has,
    Over,
}

/// What it does next. The locks are called by their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeveralNext {
    /// Asks at once for all that it does not have, and waits for none.
    AskAll,
    /// Waits for this one alone, with nothing in its hands.
    WaitFor(usize, Limit),
    /// Takes one after the other, in an order that is the same for all callers, and keeps what it
    /// has.
    TakeInOrder(Limit),
    /// Some of them were taken at the limit.
    GiveUp,
}

impl Several {
    pub fn new(limit: Limit) -> Self {
        Self { limit, state: SeveralState::Start, failures: 0 }
    }

    pub fn next(&self, now: Moment) -> SeveralNext {
        match self.state {
            SeveralState::Start | SeveralState::Has => SeveralNext::AskAll,
            SeveralState::Wants(_) if self.limit.has_come(now) => SeveralNext::GiveUp,
            SeveralState::Wants(_)
                if self.failures >= GIVES_BACK
                    && !crate::mutant!("several_are_never_taken_in_order") =>
            {
                SeveralNext::TakeInOrder(self.limit)
            }
            SeveralState::Wants(one) => SeveralNext::WaitFor(one, self.limit),
            SeveralState::Over => SeveralNext::GiveUp,
        }
    }

    /// It was the turn of the one that it waited for; or the limit came before.
    pub fn waited(&mut self, is_granted: bool) {
        self.state = match self.state {
            SeveralState::Wants(_) if is_granted => SeveralState::Has,
            _ => SeveralState::Over,
        };
    }

    /// This one of those that it asked for was taken, and all is given back.
    pub fn missed(&mut self, one: usize) {
        if self.state == SeveralState::Has {
            self.failures = self.failures.saturating_add(1);
        }
        self.state = SeveralState::Wants(one);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::at;

    #[test]
    fn it_waits_for_the_one_that_is_taken_alone_and_after_two_failures_takes_all_in_order() {
        let mut several = Several::new(Limit::Never);
        assert_eq!(several.next(at(0)), SeveralNext::AskAll);
        several.missed(1);
        for (taken, next) in [(1, 0), (0, 2)] {
            assert_eq!(several.next(at(0)), SeveralNext::WaitFor(taken, Limit::Never));
            several.waited(true);
            assert_eq!(several.next(at(0)), SeveralNext::AskAll);
            several.missed(next);
        }
        assert_eq!(several.next(at(0)), SeveralNext::TakeInOrder(Limit::Never));
    }

    #[test]
    fn the_limit_ends_every_wait() {
        let limit = Limit::Until(at(5));
        let mut several = Several::new(limit);
        several.missed(0);
        assert_eq!(several.next(at(0)), SeveralNext::WaitFor(0, limit));
        several.missed(0);
        assert_eq!(several.next(at(5)), SeveralNext::GiveUp);
        let mut tries = Several::new(Limit::Once(at(0)));
        assert_eq!(tries.next(at(0)), SeveralNext::AskAll);
        tries.missed(0);
        assert_eq!(tries.next(at(0)), SeveralNext::GiveUp);
        let mut late = Several::new(limit);
        late.missed(0);
        late.waited(false);
        assert_eq!(late.next(at(6)), SeveralNext::GiveUp);
    }
}
