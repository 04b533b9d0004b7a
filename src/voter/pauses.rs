//! Pauses between two attempts to connect.

use std::time::Duration;

use crate::proto::{Backoff, Reason};

/// The first and the longest pause if only an operator can help.
// A wrong password or a missing right stays for hours, and every client of the server tries on two
// connections. With the usual pauses each would try twice a second for all that time.
const SELDOM: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(5));

/// Pauses that grow while attempts fail. They are longer if only an operator can help.
pub(super) struct Pauses {
    usual: Backoff,
    seldom: Backoff,
}

impl Pauses {
    pub(super) fn new(first: Duration, longest: Duration) -> Self {
        Self { usual: Backoff::new(first, longest), seldom: Backoff::new(SELDOM.0, SELDOM.1) }
    }

    /// An attempt has succeeded.
    pub(super) fn reset(&mut self) {
        self.usual.reset();
        self.seldom.reset();
    }

    /// How long to wait after an attempt that failed for this reason.
    pub(super) fn after(&mut self, why: Option<&Reason>, chance: u32) -> Duration {
        // By chance, because all clients lose a server at the same moment, and would come back
        // together.
        if why.is_some_and(Reason::needs_an_operator) {
            return self.seldom.pause(chance / 4);
        }
        self.seldom.reset();
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
