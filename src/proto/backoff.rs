//! Pauses that double.

use std::time::Duration;

/// A pause that doubles each time up to a limit, and of which each party gets its own share.
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

    /// The next pause: the doubled one and up to half of it more by `chance`.
    pub fn pause(&mut self, chance: u32) -> Duration {
        let pause = self.next;
        self.next = pause.saturating_mul(2).min(self.longest);
        let extra = (pause / 2).as_nanos().saturating_mul(u128::from(chance)) >> 32;
        pause.saturating_add(Duration::from_nanos(u64::try_from(extra).unwrap_or(u64::MAX)))
    }

    /// Starts over: what was wrong has ended.
    pub fn reset(&mut self) {
        self.next = self.first.min(self.longest);
    }

    /// As long as `least` from now on, if it was shorter.
    pub fn at_least(&mut self, least: Duration) {
        self.next = self.next.max(least).min(self.longest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
