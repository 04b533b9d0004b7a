//! Putting a clock forward that has stood still.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::{Moment, Skip};

/// By how much a clock was put forward, because it had stood still with its machine.
#[derive(Debug)]
pub(crate) struct Forward {
    /// In all.
    nanos: AtomicU64,
    latest: Mutex<Skips>,
}

/// All skips of a clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Skips {
    pub(crate) count: u64,
    latest: Skip,
    /// What the clock showed before the latest.
    before: Moment,
}

impl Forward {
    pub(crate) const fn new() -> Self {
        let (by, after) = (Duration::ZERO, Moment::BEGINNING);
        let latest = Skip { by, doubt: by, after };
        let latest = Mutex::new(Skips { count: 0, latest, before: after });
        Self { nanos: AtomicU64::new(0), latest }
    }

    pub(crate) fn total(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Ordering::Acquire))
    }

    pub(crate) fn skips(&self) -> Skips {
        *self.latest()
    }

    /// Puts the clock forward, unless that has been done since it had been so often: another client
    /// has seen the same. `now`: what the clock shows.
    pub(crate) fn skip(&self, skip: Skip, count: u64, now: impl FnOnce() -> Moment) {
        let mut latest = self.latest();
        if latest.count == count {
            *latest = Skips { count: count + 1, latest: skip, before: now() };
            let nanos = u64::try_from(skip.by.as_nanos()).unwrap_or(u64::MAX);
            let add = |total: u64| Some(total.saturating_add(nanos));
            let _ = self.nanos.fetch_update(Ordering::AcqRel, Ordering::Acquire, add);
        }
    }

    fn latest(&self) -> MutexGuard<'_, Skips> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Skips {
    /// The latest, where there was one since the clock had been put forward so often.
    pub(crate) fn since(self, count: u64) -> Option<Skip> {
        (self.count > count).then_some(self.latest)
    }

    /// What the clock would have shown, had it been put forward before it was read.
    pub(crate) fn caught_up(self, moment: Moment) -> Moment {
        if self.count > 0 && moment <= self.before { moment + self.latest.by } else { moment }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn what_two_clients_saw_puts_the_clock_forward_once() {
        let forward = Forward::new();
        let now = Moment::BEGINNING + SECOND;
        let skip = Skip { by: 2 * SECOND, doubt: SECOND / 10, after: Moment::BEGINNING };
        assert_eq!(forward.skips().since(0), None);
        for _ in 0..2 {
            forward.skip(skip, 0, || now);
        }
        assert_eq!(forward.total(), 2 * SECOND);
        let skips = forward.skips();
        assert_eq!((skips.since(0), skips.since(1)), (Some(skip), None));
        assert_eq!(skips.caught_up(now), now + 2 * SECOND, "it was read before");
        assert_eq!(skips.caught_up(now + 2 * SECOND), now + 2 * SECOND);
    }
}
