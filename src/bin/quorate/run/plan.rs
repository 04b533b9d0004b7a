//! When to end the command: counted backwards from the deadline of the lock.

use std::time::Duration;

/// How a command under a lock is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// From SIGTERM to SIGKILL.
    pub(crate) grace: Duration,
    /// From SIGKILL to the deadline: for the kernel to end all processes, also on a busy machine,
    /// and for clocks that do not run quite alike.
    pub(crate) margin: Duration,
}

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Nothing for this time.
    Wait(Duration),
    /// SIGTERM, and nothing more for this time.
    Terminate(Duration),
    /// SIGKILL.
    Kill,
}

impl Plan {
    pub(crate) const SHORTEST_LEASE: Duration = Duration::from_secs(1);

    /// The grace is a third of the lease where none is wished, and 10 s at most.
    ///
    /// A lease is renewed once a third of it has passed. Where that fails, half of it is still left
    /// in most cases: a grace that does not fit there would end commands whose lock is well.
    ///
    /// Where the lock may be held for less than its lease, that counts instead of the lease.
    pub(crate) fn new(
        lease: Duration,
        hold_at_most: Option<Duration>,
        grace: Option<Duration>,
    ) -> Result<Self, String> {
        let (what, time) = match hold_at_most {
            Some(most) if most < lease => ("longest hold", most),
            _ => ("lease", lease),
        };
        if time < Self::SHORTEST_LEASE {
            return Err(format!("the {what} is {time:?}: a command needs at least 1s"));
        }
        let margin = (time / 10).clamp(Duration::from_millis(100), Duration::from_secs(1));
        let longest = (time / 2).saturating_sub(margin);
        let usual = (time / 3).min(Duration::from_secs(10));
        let grace = grace.unwrap_or(usual);
        if grace > longest {
            let refused = format!("the grace is {grace:?}: {longest:?} at most fit");
            return Err(format!("{refused} a {what} of {time:?}"));
        }
        Ok(Self { grace, margin })
    }

    /// What to do while so much is left until the deadline; nothing is left of a lock that is lost.
    pub(crate) fn measure(self, left: Duration) -> Measure {
        let until_kill = left.saturating_sub(self.margin);
        let until_term = until_kill.saturating_sub(self.grace);
        match (until_kill.is_zero(), until_term.is_zero()) {
            (true, _) => Measure::Kill,
            (false, true) => Measure::Terminate(until_kill),
            (false, false) => Measure::Wait(until_term),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn both_signals_are_counted_backwards_from_the_deadline() {
        use Measure::{Kill, Terminate, Wait};
        let plan = Plan::new(30 * SECOND, None, Some(5 * SECOND)).unwrap();
        assert_eq!(plan, Plan { grace: 5 * SECOND, margin: SECOND });
        let measures = [20, 6, 2, 1, 0].map(|secs| plan.measure(secs * SECOND));
        let expected = [Wait(14 * SECOND), Terminate(5 * SECOND), Terminate(SECOND), Kill, Kill];
        assert_eq!(measures, expected);
        // Without grace there is only the kill.
        let plan = Plan::new(SECOND, None, Some(Duration::ZERO)).unwrap();
        assert_eq!(plan.margin, SECOND / 10);
        let measures = [SECOND / 2, SECOND / 10].map(|left| plan.measure(left));
        assert_eq!(measures, [Wait(SECOND * 4 / 10), Kill]);
    }

    #[test]
    fn renewals_have_time_to_fail_before_the_grace_begins() {
        for lease in [SECOND, 2 * SECOND, 30 * SECOND, 3600 * SECOND] {
            let plan = Plan::new(lease, None, None).unwrap();
            // As much as is left when the first renewal is due, without some for the drift.
            let left = lease * 65 / 100;
            assert!(matches!(plan.measure(left), Measure::Wait(_)), "{lease:?}: {plan:?}");
        }
    }

    #[test]
    fn what_leaves_a_command_no_time_is_refused_with_its_values() {
        for (refused, told) in [
            (
                Plan::new(30 * SECOND, None, Some(15 * SECOND)),
                "the grace is 15s: 14s at most fit a lease of 30s",
            ),
            (Plan::new(SECOND / 2, None, None), "the lease is 500ms: a command needs at least 1s"),
            (
                Plan::new(30 * SECOND, Some(SECOND / 2), None),
                "the longest hold is 500ms: a command needs at least 1s",
            ),
            (
                Plan::new(30 * SECOND, Some(10 * SECOND), Some(5 * SECOND)),
                "the grace is 5s: 4s at most fit a longest hold of 10s",
            ),
        ] {
            assert_eq!(refused.unwrap_err(), told);
        }
        // A longer one changes nothing, and a shorter one makes room for the command.
        let usual = Plan::new(30 * SECOND, None, None);
        assert_eq!(Plan::new(30 * SECOND, Some(60 * SECOND), None), usual);
        let shorter = Plan { grace: SECOND, margin: SECOND * 3 / 10 };
        assert_eq!(Plan::new(30 * SECOND, Some(3 * SECOND), None), Ok(shorter));
    }
}
