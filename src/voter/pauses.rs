//! Pauses between two attempts to connect.

use std::time::Duration;

use crate::proto::{Backoff, Reason};

/// Between two attempts where only an operator can help: at first, and at the longest.
const SELDOM: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(5));

/// They grow while attempts fail, and more where the next one is likely to fail as well.
pub(super) struct Pauses {
    usual: Backoff,
    hopeless: Backoff,
}

impl Pauses {
    pub(super) fn new(first: Duration, longest: Duration) -> Self {
        let (usual, hopeless) = (Backoff::new(first, longest), Backoff::new(SELDOM.0, SELDOM.1));
        Self { usual, hopeless }
    }

    /// An attempt has led to something.
    pub(super) fn reset(&mut self) {
        self.usual.reset();
        self.hopeless.reset();
    }

    /// Until the next attempt, after one that failed for this reason. A little `chance` keeps the
    /// clients of a server from coming back at once.
    pub(super) fn after(&mut self, why: Option<&Reason>, chance: u32) -> Duration {
        if why.is_some_and(Reason::needs_an_operator) {
            return self.hopeless.pause(chance / 4);
        }
        self.hopeless.reset();
        self.usual.pause(chance / 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::ServerError;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn they_double_up_to_half_a_second_or_five_where_only_an_operator_can_mend_it() {
        let seldom = [500, 1_000, 2_000, 4_000, 5_000, 5_000, 5_000];
        for (why, expected) in [
            (Reason::from("Connection refused (os error 111)"), [10, 20, 40, 80, 160, 320, 500]),
            (Reason::of_server("NOAUTH HELLO must be called with the client logged in"), seldom),
            (Reason::of(ServerError::Tls, "the server's certificate has expired"), seldom),
        ] {
            let mut pauses = Pauses::new(MS(10), MS(500));
            assert_eq!(expected.map(|_| pauses.after(Some(&why), 0)), expected.map(MS), "{why}");
        }
    }

    #[test]
    fn another_reason_or_a_connection_begins_them_anew() {
        let mut pauses = Pauses::new(MS(10), MS(500));
        let wrong_password = Reason::of(ServerError::WrongPassword, "wrong");
        let wrong =
            |pauses: &mut Pauses| (0..3).map(|_| pauses.after(Some(&wrong_password), 0)).max();
        assert_eq!(wrong(&mut pauses), Some(MS(2_000)));
        assert_eq!(pauses.after(None, 0), MS(10));
        assert_eq!(wrong(&mut pauses), Some(MS(2_000)));
        pauses.reset();
        assert_eq!(pauses.after(Some(&wrong_password), 0), MS(500));
    }
}
