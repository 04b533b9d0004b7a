//! Moments, durations as people read them, and pauses that double.

use std::{
    fmt,
    ops::{Add, Sub},
    time::Duration,
};

/// An instant of a client's clock: nanoseconds since that clock's own beginning.
// Not `std::time::Instant`, which cannot be made by hand: models and tests choose each moment
// (design 1). And no arithmetic here panics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

impl Moment {
    /// Before every moment at which a request can have left.
    pub const BEGINNING: Self = Self(0);

    /// For trying the ends of the range.
    #[cfg(test)]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The time from `earlier` to `self`, or zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// So many milliseconds after the beginning.
#[cfg(test)]
pub(crate) fn at(ms: u64) -> Moment {
    Moment::BEGINNING + Duration::from_millis(ms)
}

impl Add<Duration> for Moment {
    type Output = Self;

    // Stops at the end of the range. A caller's limit of `Duration::MAX` must not wrap round to a
    // moment that has passed.
    fn add(self, length: Duration) -> Self {
        Self(self.0.saturating_add(nanos(length)))
    }
}

impl Sub<Duration> for Moment {
    type Output = Self;

    fn sub(self, length: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(length)))
    }
}

fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

/// So many nanoseconds; at most as many as a [`Moment`] can have.
pub(super) fn length_of(nanos: u128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// A duration that is shown with three digits.
#[derive(Debug)]
pub struct Rounded(pub Duration);

impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        let step = 10_u128.pow(nanos.checked_ilog10().unwrap_or(0).saturating_sub(2));
        fmt::Debug::fmt(&length_of((nanos + step / 2) / step * step), f)
    }
}

/// A pause that doubles each time up to a limit, with a random addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, next: first.min(longest) }
    }

    /// The next pause. `chance` adds up to half of it.
    pub fn pause(&mut self, chance: u32) -> Duration {
        // Clients that failed together would ask together again, pause after pause.
        let pause = self.next;
        self.next = pause.saturating_mul(2).min(self.longest);
        let extra = (pause / 2).as_nanos().saturating_mul(u128::from(chance)) >> 32;
        pause.saturating_add(length_of(extra))
    }

    /// Starts over with the first pause.
    pub fn reset(&mut self) {
        self.next = self.first.min(self.longest);
    }

    /// Makes the next pause at least this long.
    pub fn at_least(&mut self, least: Duration) {
        self.next = self.next.max(least).min(self.longest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_with_three_figures() {
        for (nanos, told) in [
            (0, "0ns"),
            (7, "7ns"),
            (5_000_482_718, "5s"),
            (1_234_567, "1.23ms"),
            (12_345_678_901, "12.3s"),
            (123_456_000_000, "123s"),
            (999_600_000, "1s"),
            (3_599_900_000_000, "3600s"),
        ] {
            assert_eq!(Rounded(Duration::from_nanos(nanos)).to_string(), told);
        }
    }

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn it_doubles_up_to_the_limit_and_starts_over() {
        let mut backoff = Backoff::new(MS(10), MS(50));
        let pauses: Vec<_> = (0..4).map(|_| backoff.pause(0)).collect();
        assert_eq!(pauses, [MS(10), MS(20), MS(40), MS(50)]);
        backoff.reset();
        assert_eq!(backoff.pause(0), MS(10));
    }

    #[test]
    fn chance_adds_less_than_half() {
        for chance in [0, 1, u32::MAX / 2, u32::MAX] {
            let pause = Backoff::new(MS(10), MS(10)).pause(chance);
            assert!(pause >= MS(10) && pause < MS(15), "{pause:?}");
        }
    }

    #[test]
    fn the_ends_of_the_range_do_not_overflow() {
        let mut backoff = Backoff::new(Duration::MAX, Duration::MAX);
        assert_eq!(backoff.pause(u32::MAX), Duration::MAX);
        assert_eq!(backoff.pause(u32::MAX), Duration::MAX);
    }
}
