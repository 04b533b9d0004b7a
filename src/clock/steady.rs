//! A clock that no correction slows down.

// A time service corrects a clock by making it run slower, and `CLOCK_BOOTTIME` with it: by up to
// 8.3 % with chrony's defaults, while clients allow for a drift of 1 %. `CLOCK_MONOTONIC_RAW` is
// never corrected, but stands still while the machine sleeps. The longer of the two is the elapsed
// time, so that trust in a lease never ends late by either (law 2).

use std::{
    sync::{
        Mutex,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

/// A reading of both clocks, first of the raw one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) raw: Duration,
    pub(super) boot: Duration,
}

impl Reading {
    /// How far the raw clock is ahead of the other, in nanoseconds.
    fn apart(self) -> i64 {
        signed(self.raw) - signed(self.boot)
    }
}

/// One clock made of two.
// Atomics, because it is read many times for each lock, from many threads. Under a mutex of the
// process these readings waited for each other.
#[derive(Debug)]
pub(super) struct Steady {
    /// By how much the raw clock has gained on the other, in all. Never falls.
    ahead: AtomicI64,
    /// `ahead` at the last checkpoint, less how far the clocks were apart then. With how far they
    /// are apart now, this gives `ahead` now.
    base: AtomicI64,
    /// When the next checkpoint is due, by either clock.
    due: [AtomicU64; 2],
    checkpoint: Mutex<()>,
}

impl Steady {
    /// The time from one checkpoint to the next.
    // Without checkpoints, an hour of sleep would make up for a later correction: only the longer
    // of the two would count. Within one step that is still so, but a step is short.
    const STEP: Duration = Duration::from_secs(1);

    /// The longest that a reading of a checkpoint may take.
    // If the thread loses the processor between the two clocks, they seem to be further apart. Each
    // checkpoint would add that time once more, and the clock would run fast.
    const CLOSE: Duration = Duration::from_micros(20);

    pub(super) const fn new() -> Self {
        Self {
            ahead: AtomicI64::new(0),
            // So low that nothing is gained before the first checkpoint.
            base: AtomicI64::new(i64::MIN / 2),
            due: [AtomicU64::new(0), AtomicU64::new(0)],
            checkpoint: Mutex::new(()),
        }
    }

    /// The time by a new reading. It is never before an earlier one, and since each earlier one it
    /// has gone on at least as far as either clock. `raw_after`: reads the raw clock again.
    pub(super) fn read(&self, reading: Reading, raw_after: impl FnOnce() -> Duration) -> Duration {
        // The gain stays if the other clock catches up later: that time has passed all the same.
        let got_ahead = self.base.load(Ordering::Acquire) + reading.apart();
        let mut ahead = self.ahead.load(Ordering::Acquire);
        if got_ahead > ahead {
            ahead = self.ahead.fetch_max(got_ahead, Ordering::AcqRel).max(got_ahead);
        }
        let Reading { raw, boot } = reading;
        let is_due = |clock: Duration, due: &AtomicU64| nanos(clock) >= due.load(Ordering::Acquire);
        if is_due(raw, &self.due[0]) || is_due(boot, &self.due[1]) {
            self.check(reading, raw_after);
        }
        boot + Duration::from_nanos(ahead.unsigned_abs())
    }

    /// Makes a checkpoint of a reading, unless another thread makes one, or the reading took long.
    fn check(&self, reading: Reading, raw_after: impl FnOnce() -> Duration) {
        let Ok(_only) = self.checkpoint.try_lock() else { return };
        let Reading { raw, boot } = reading;
        // The first one however long it took: before it, the raw clock gains nothing.
        let is_first = self.due[1].load(Ordering::Acquire) == 0;
        if is_first || raw_after().saturating_sub(raw) <= Self::CLOSE {
            let ahead = self.ahead.load(Ordering::Acquire);
            self.base.store(ahead - reading.apart(), Ordering::Release);
            for (due, clock) in self.due.iter().zip([raw, boot]) {
                due.store(nanos(clock + Self::STEP), Ordering::Release);
            }
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn signed(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// Reads often, and returns what passed by this clock. The clocks go on by so many microseconds
    /// from one reading to the next.
    fn passed(steady: &Steady, from: &mut (u64, u64), steps: [u64; 2], count: u64) -> Duration {
        let read = |from: &(u64, u64)| {
            let (raw, boot) = (Duration::from_micros(from.0), Duration::from_micros(from.1));
            steady.read(Reading { raw, boot }, || raw)
        };
        let began = read(from);
        for _ in 0..count {
            *from = (from.0 + steps[0], from.1 + steps[1]);
            read(from);
        }
        read(from).saturating_sub(began)
    }

    #[test]
    fn elapsed_time_is_that_of_the_clock_that_has_gone_on_further() {
        let (steady, mut at) = (Steady::new(), (5_000_000, 90_000_000));
        let mut pass = |raw, boot, count| passed(&steady, &mut at, [raw, boot], count);
        assert_eq!(pass(1_000, 900, 100), MS(100), "slowed down for less than a step");
        assert_eq!(pass(1_000, 1_000, 5_000), MS(5_000), "both run alike");
        assert_eq!(pass(1_000, 917, 24_000), MS(24_000), "the clock is being slowed down");
        assert_eq!(pass(1_000, 1_083, 24_000), MS(25_992), "the clock is being sped up");
        assert_eq!(pass(0, 3_600_000_000, 1), MS(3_600_000), "the machine slept");
        assert_eq!(pass(1_000, 1_000, 60_000), MS(60_000), "and all is well again");
    }

    #[test]
    fn a_thread_that_loses_the_processor_between_the_clocks_does_not_make_them_run_fast() {
        let steady = Steady::new();
        let read = |ms: u64, lost: u64| {
            let (raw, boot) = (MS(ms), MS(ms + lost));
            steady.read(Reading { raw, boot }, || boot)
        };
        assert_eq!(read(0, 0), MS(0));
        for second in 1..1_000 {
            read(1_000 * second, 10);
        }
        assert_eq!(read(1_000_000, 0), MS(1_000_000));
    }

    #[test]
    fn it_never_goes_back() {
        let steady = Steady::new();
        let read = |raw, boot| steady.read(Reading { raw: MS(raw), boot: MS(boot) }, || MS(raw));
        read(1_000, 1_000);
        let later = read(1_500, 1_400);
        assert!(read(1_500, 1_401) > later, "what has got ahead stays so");
        assert!(read(3_000, 4_000) > later, "also from one checkpoint to the next");
    }

    #[test]
    fn threads_that_read_it_at_once_never_see_it_go_back() {
        let (steady, micros) = (Steady::new(), AtomicU64::new(5_000_000));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut latest = Duration::ZERO;
                    for _ in 0..50_000 {
                        let at = micros.fetch_add(100, Ordering::SeqCst);
                        // Slowed down by a tenth.
                        let (raw, boot) = (at, at / 10 * 9);
                        let [raw, boot] = [raw, boot].map(Duration::from_micros);
                        let now = steady.read(Reading { raw, boot }, || raw);
                        assert!(now >= latest && now + MS(501) >= raw, "{now:?} {raw:?}");
                        latest = now;
                    }
                });
            }
        });
    }
}
