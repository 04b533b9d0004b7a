//! The voter's own clock: what `TIME` says and what keys expire by.

use std::time::Duration;

use crate::clock::{EPOCH, Moment, Rate};

/// A clock that may be fast or slow, and that can be set.
#[derive(Debug)]
pub(super) struct Wall {
    rate: Rate,
    /// By how much it is ahead of what its rate makes, since 1970.
    ahead_micros: i128,
}

impl Wall {
    pub(super) fn new() -> Self {
        Self { rate: Rate::TRUE, ahead_micros: micros(EPOCH) }
    }

    /// What it shows, in microseconds since 1970.
    pub(super) fn micros(&self, now: Moment) -> i64 {
        i64::try_from(self.runs(now) + self.ahead_micros).unwrap_or(i64::MAX)
    }

    fn runs(&self, now: Moment) -> i128 {
        micros(self.rate.shows(now.since(Moment::BEGINNING)))
    }

    pub(super) fn set_rate(&mut self, ppm: i32, now: Moment) {
        self.rate.change(ppm, now.since(Moment::BEGINNING));
    }

    pub(super) fn jump(&mut self, by_micros: i64, now: Moment) {
        let ahead = self.ahead_micros.saturating_add(i128::from(by_micros));
        // Not to before 1970.
        self.ahead_micros = ahead.max(-self.runs(now));
    }
}

fn micros(time: Duration) -> i128 {
    i128::try_from(time.as_micros()).unwrap_or(i128::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const BEGINNING_MICROS: i64 = 1_700_000_000_000_000;

    fn after(micros: u64) -> Moment {
        Moment::BEGINNING + Duration::from_micros(micros)
    }

    #[test]
    fn a_change_of_the_rate_is_continuous_and_keeps_what_came_before() {
        let mut wall = Wall::new();
        assert_eq!(wall.micros(after(1_000)) - BEGINNING_MICROS, 1_000);
        for (at, ppm, shown) in
            [(1_000, 500_000, 1_000), (2_000, -500_000, 2_500), (4_000, 0, 3_500)]
        {
            assert_eq!(wall.micros(after(at)) - BEGINNING_MICROS, shown);
            wall.set_rate(ppm, after(at));
            assert_eq!(wall.micros(after(at)) - BEGINNING_MICROS, shown);
        }
        assert_eq!(wall.micros(after(5_000)) - BEGINNING_MICROS, 4_500);
    }

    #[test]
    fn a_jump_keeps_the_rate() {
        let mut wall = Wall::new();
        wall.set_rate(1_000_000, after(0));
        wall.jump(-7, after(10));
        assert_eq!(wall.micros(after(20)) - BEGINNING_MICROS, 33);
    }

    #[test]
    fn a_clock_never_runs_backwards_nor_leaves_its_range() {
        let mut wall = Wall::new();
        wall.set_rate(i32::MIN, after(5));
        assert_eq!(wall.micros(after(50)) - BEGINNING_MICROS, 5);
        for _ in 0..2 {
            wall.jump(i64::MIN, after(50));
            assert_eq!(wall.micros(after(60)), 0);
        }
        wall.set_rate(i32::MAX, after(60));
        for _ in 0..2 {
            wall.jump(i64::MAX, after(60));
        }
        assert_eq!(wall.micros(Moment::from_nanos(u64::MAX)), i64::MAX);
    }
}
