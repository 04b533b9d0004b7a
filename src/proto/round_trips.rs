//! How long a voter may take to answer, by its earlier round trips.

use std::time::Duration;

use super::Moment;

/// The round trips to one voter, measured as TCP does for its retransmission timer (RFC 6298).
///
/// An answer may take the usual time and four times the deviation. Each request without an answer
/// doubles that, until one is answered.
#[derive(Debug, Default)]
pub struct RoundTrips {
    usual: Option<Duration>,
    deviation: Duration,
    doublings: u32,
    doubled: Option<Moment>,
}

impl RoundTrips {
    // Keeps the shift in `allowed` in its range. The deadline of a request is limited elsewhere, to
    // a tenth of the lease.
    const MOST_DOUBLINGS: u32 = 10;

    pub fn answered(&mut self, took: Duration) {
        self.doublings = 0;
        let Some(usual) = self.usual else {
            (self.usual, self.deviation) = (Some(took), took / 2);
            return;
        };
        self.deviation = (3 * self.deviation + usual.abs_diff(took)) / 4;
        self.usual = Some((7 * usual + took) / 8);
    }

    /// A request got no answer in its time.
    pub fn timed_out(&mut self, sent: Moment, now: Moment) {
        // A request that left before the last doubling had the shorter time, and says nothing about
        // the longer one. Otherwise several that left together would double it several times.
        if self.doubled.is_none_or(|doubled| sent >= doubled) {
            self.doublings = (self.doublings + 1).min(Self::MOST_DOUBLINGS);
            self.doubled = Some(now);
        }
    }

    /// How long an answer usually takes, once there was one.
    pub fn usual(&self) -> Option<Duration> {
        self.usual
    }

    /// How long the next request may take; at least `least`.
    pub fn allowed(&self, least: Duration) -> Duration {
        // A voter whose round trips never varied may be busy once: it has half of `least` on top.
        let measured = self.usual.unwrap_or_default() + (4 * self.deviation).max(least / 2);
        measured.max(least).saturating_mul(1 << self.doublings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::at;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn after(took: impl IntoIterator<Item = u64>) -> Duration {
        let mut trips = RoundTrips::default();
        took.into_iter().for_each(|ms| trips.answered(MS(ms)));
        trips.allowed(MS(200))
    }

    #[test]
    fn a_voter_that_answers_soon_has_the_least_time_also_where_it_was_far_away() {
        assert_eq!(after([]), MS(200));
        assert_eq!(after([1; 50]), MS(200));
        assert_eq!(after([240; 20].into_iter().chain([1; 60])), MS(200));
    }

    #[test]
    fn a_voter_that_is_far_away_has_as_long_as_it_needs() {
        assert_eq!(after([240]), MS(240 + 4 * 120));
        let steady = after([240; 50]);
        assert!((MS(340)..MS(345)).contains(&steady), "{steady:?}");
        // Each answer is in time for which those before it allow.
        let uneven = [140, 220, 150, 200, 180, 219, 141];
        for count in 1..40 {
            let next = uneven[count % uneven.len()];
            let allowed = after((0..count).map(|at| uneven[at % uneven.len()]));
            assert!(MS(next) < allowed, "{next} ms after {count}: {allowed:?}");
        }
    }

    #[test]
    fn without_an_answer_the_time_doubles_until_one_comes() {
        let mut trips = RoundTrips::default();
        trips.timed_out(at(0), at(200));
        assert_eq!(trips.allowed(MS(200)), MS(400));
        // This request left before that, with the shorter time.
        trips.timed_out(at(100), at(300));
        assert_eq!(trips.allowed(MS(200)), MS(400));
        trips.timed_out(at(250), at(650));
        assert_eq!(trips.allowed(MS(200)), MS(800));
        trips.answered(MS(300));
        assert_eq!(trips.allowed(MS(200)), MS(900));
    }

    #[test]
    fn no_time_is_too_long_to_be_counted() {
        let mut trips = RoundTrips::default();
        for ms in 0..100 {
            trips.timed_out(at(2 * ms), at(2 * ms + 1));
        }
        assert_eq!(trips.allowed(MS(200)), MS(200 * 1024));
        assert!(trips.allowed(Duration::MAX) == Duration::MAX);
    }
}
