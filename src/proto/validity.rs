//! How long a majority of grants may be trusted.

use std::time::Duration;

use crate::proto::Moment;

/// What the clocks of client and voters may differ by over one lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drift {
    /// Parts per million of the lease.
    pub ppm: u32,
    /// Added to that: the resolution of a voter's expiry.
    pub fixed: Duration,
}

impl Drift {
    /// A hundredth of the lease and 2 ms.
    pub const DEFAULT: Self = Self { ppm: 10_000, fixed: Duration::from_millis(2) };

    pub fn over(self, lease: Duration) -> Duration {
        let share = lease.as_nanos().saturating_mul(u128::from(self.ppm)) / 1_000_000;
        let share = Duration::from_nanos(u64::try_from(share).unwrap_or(u64::MAX));
        share.saturating_add(self.fixed)
    }
}

/// A lease and the part of it that is not to be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    pub lease: Duration,
    drift: Duration,
}

impl Terms {
    pub fn new(lease: Duration, drift: Drift) -> Self {
        Self { lease, drift: drift.over(lease) }
    }

    /// What is left of the lease after the drift: zero where the drift is as large.
    pub fn validity(self) -> Duration {
        let drift = if crate::mutant!("no_drift") { Duration::ZERO } else { self.drift };
        self.lease.saturating_sub(drift)
    }

    /// Those with the longer lease.
    #[must_use]
    pub fn longer(self, other: Self) -> Self {
        if other.lease > self.lease { other } else { self }
    }

    /// Which share of the validity of a round that started then is left now.
    pub fn share_left(self, started: Moment, now: Moment) -> f64 {
        self.deadline(started).since(now).div_duration_f64(self.validity())
    }

    /// When trust ends in a round whose first byte was sent at `started` or later.
    pub fn deadline(self, started: Moment) -> Moment {
        started + self.validity()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn the_default_drift_is_a_hundredth_and_two_milliseconds() {
        assert_eq!(Drift::DEFAULT.over(MS(30_000)), MS(302));
        assert_eq!(Terms::new(MS(30_000), Drift::DEFAULT).validity(), MS(29_698));
    }

    #[test]
    fn a_lease_that_the_drift_eats_has_no_validity() {
        for lease_ms in 0..=2 {
            let terms = Terms::new(MS(lease_ms), Drift::DEFAULT);
            assert_eq!(terms.deadline(Moment::from_nanos(9)), Moment::from_nanos(9));
        }
    }

    proptest! {
        #[test]
        fn trust_never_reaches_the_end_of_the_lease(
            started: u64, lease in 1_u64..=u64::MAX / 2, ppm: u32, fixed in 1_u64..=u64::MAX,
        ) {
            let drift = Drift { ppm, fixed: Duration::from_nanos(fixed) };
            let lease = Duration::from_nanos(lease);
            let started = Moment::from_nanos(started);
            let deadline = Terms::new(lease, drift).deadline(started);
            prop_assert!(deadline >= started);
            prop_assert!(deadline.since(started) < lease);
        }
    }
}
