//! Moments of a clock, which nobody has to read for them.

use std::{
    ops::{Add, Sub},
    time::Duration,
};

/// An instant of a client's clock: nanoseconds since that clock's own beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

impl Moment {
    /// Before every moment at which anything could have been asked.
    pub const BEGINNING: Self = Self(0);

    /// For trying the ends of the range.
    #[cfg(test)]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The time from `earlier` to `self`; zero where that lies ahead.
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

    /// Stops at the end of the range instead of wrapping round.
    fn add(self, length: Duration) -> Self {
        let nanos = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

impl Sub<Duration> for Moment {
    type Output = Self;

    fn sub(self, length: Duration) -> Self {
        let nanos = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_sub(nanos))
    }
}
