//! Time that no correction of the clock makes run slow.
//!
//! A time service that sets a clock right by making it run slower also slows `CLOCK_BOOTTIME`, by
//! up to 8.3% with chrony's defaults. `CLOCK_MONOTONIC_RAW` is never corrected, and stands still
//! while the machine sleeps. Elapsed time is the longer of the two, so that trust in a lease never
//! ends late by either.

use std::time::Duration;

/// What both clocks showed, first the raw one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) raw: Duration,
    pub(super) boot: Duration,
}

/// One clock made of two.
#[derive(Debug)]
pub(super) struct Steady {
    /// Where both clocks were at the last checkpoint.
    checkpoint: Option<(Duration, Duration)>,
    /// By how much the raw clock had got ahead until then, in all.
    ahead: Duration,
    /// By how much it has got ahead at most since then.
    lead: Duration,
    latest: Duration,
}

impl Steady {
    /// From one checkpoint to the next. Of a sleep and a correction within one of these steps only
    /// the longer counts.
    const STEP: Duration = Duration::from_secs(1);

    /// A reading that took longer is no checkpoint: what the thread lost between the two clocks
    /// would be counted once more with each.
    const CLOSE: Duration = Duration::from_micros(20);

    pub(super) const fn new() -> Self {
        Self {
            checkpoint: None,
            ahead: Duration::ZERO,
            lead: Duration::ZERO,
            latest: Duration::ZERO,
        }
    }

    /// The time by a new reading: never before an earlier one, and from each on never less than
    /// either clock has gone on.
    /// `raw_after`: what the raw clock shows now.
    pub(super) fn read(
        &mut self,
        reading: Reading,
        raw_after: impl FnOnce() -> Duration,
    ) -> Duration {
        let Reading { raw, boot } = reading;
        let (raw_then, boot_then) = *self.checkpoint.get_or_insert((raw, boot));
        let by_boot = boot.saturating_sub(boot_then);
        let by_raw = raw.saturating_sub(raw_then);
        // What it was once ahead has passed, also where the other one makes up for it.
        self.lead = self.lead.max(by_raw.saturating_sub(by_boot));
        self.latest = self.latest.max(boot + self.ahead + self.lead);
        let is_close = || raw_after().saturating_sub(raw) <= Self::CLOSE;
        if by_boot.max(by_raw) >= Self::STEP && is_close() {
            self.ahead += std::mem::take(&mut self.lead);
            self.checkpoint = Some((raw, boot));
        }
        self.latest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// Reads often, and returns what passed by this clock. The clocks go on by so many microseconds
    /// from one reading to the next.
    fn passed(steady: &mut Steady, from: &mut (u64, u64), steps: [u64; 2], count: u64) -> Duration {
        let mut read = |from: &(u64, u64)| {
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
        let (mut steady, mut at) = (Steady::new(), (5_000_000, 90_000_000));
        let mut pass = |raw, boot, count| passed(&mut steady, &mut at, [raw, boot], count);
        assert_eq!(pass(1_000, 1_000, 5_000), MS(5_000), "both run alike");
        assert_eq!(pass(1_000, 917, 24_000), MS(24_000), "the clock is being slowed down");
        assert_eq!(pass(1_000, 1_083, 24_000), MS(25_992), "the clock is being sped up");
        assert_eq!(pass(0, 3_600_000_000, 1), MS(3_600_000), "the machine slept");
        assert_eq!(pass(1_000, 1_000, 60_000), MS(60_000), "and all is well again");
    }

    #[test]
    fn a_clock_that_is_slowed_down_for_less_than_a_step_counts_at_once() {
        let (mut steady, mut at) = (Steady::new(), (0, 0));
        assert_eq!(passed(&mut steady, &mut at, [1_000, 900], 100), MS(100));
    }

    #[test]
    fn a_thread_that_loses_the_processor_between_the_clocks_does_not_make_them_run_fast() {
        let mut steady = Steady::new();
        let mut read = |ms: u64, lost: u64| {
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
        let mut steady = Steady::new();
        let mut read =
            |raw, boot| steady.read(Reading { raw: MS(raw), boot: MS(boot) }, || MS(raw));
        read(1_000, 1_000);
        let later = read(1_500, 1_400);
        assert!(read(1_400, 1_300) >= later);
    }
}
