use super::{
    tests::{MS, SECS, at_ms, kept_out, only, register},
    *,
};
use crate::words::RestartGuard;

/// A client whose clock stands still for so long at a moment, and is put forward where it may be.
struct Paused {
    register: Register,
    /// For how long it stood still.
    still_ms: u64,
    forward: Duration,
}

impl Paused {
    /// A client that has met all voters now.
    fn after(still_ms: u64) -> Self {
        let mut paused = Self {
            register: register(RestartGuard::Relative),
            still_ms: 0,
            forward: Duration::ZERO,
        };
        for voter in 0..3 {
            assert_eq!(paused.stamped(voter, 0, 0), Shown::Expected);
        }
        paused.still_ms = still_ms;
        paused
    }

    /// A voter whose clock is that far ahead answers within 2 ms, so long after the beginning by a
    /// clock that stands still.
    fn stamped(&mut self, voter: usize, ahead_ms: i64, ms: u64) -> Shown {
        let asked = at_ms(ms) + self.forward;
        let shown_ms = i64::try_from(10_000_000 + ms + 1 + self.still_ms).unwrap() + ahead_ms;
        let shown = MS(u64::try_from(shown_ms).unwrap());
        let shown =
            self.register.stamped(only(voter), Stamp { shown, asked, answered: asked + MS(2) });
        if let Shown::StoodStill(skip) = shown {
            self.register.put_forward(skip);
            self.forward += skip.by;
        }
        shown
    }

    fn is_put_forward(&self) -> bool {
        let by = MS(self.still_ms);
        // Never by less, and by no more than the trips of two answers leave in doubt.
        self.forward >= by && self.forward <= by + MS(30)
    }

    fn kept_out(&self, ms: u64) -> Vec<usize> {
        kept_out(&self.register, at_ms(ms) + self.forward)
    }
}

#[test]
fn a_step_that_a_majority_shows_is_the_clients_own_and_keeps_nobody_out() {
    for still_ms in [20, 1_000, 40_000] {
        let mut client = Paused::after(still_ms);
        assert_eq!(client.stamped(1, 0, 1_000), Shown::Moved);
        assert_eq!(client.kept_out(1_002), [1], "it may be the one that moved");
        assert!(matches!(client.stamped(2, 0, 1_001), Shown::StoodStill(_)), "{still_ms}");
        assert!(client.is_put_forward(), "{:?}", client.forward);
        assert!(client.kept_out(1_003).is_empty(), "{still_ms}");
        for (voter, ms) in [(0, 1_010), (1, 1_020), (2, 1_030), (0, 1_040)] {
            assert_eq!(client.stamped(voter, 0, ms), Shown::Expected, "{still_ms}, {voter}");
        }
    }
}

#[test]
fn a_voter_whose_clock_moved_while_the_client_stood_still_is_kept_out() {
    for ahead_ms in [60_000, -60_000, 500] {
        let mut client = Paused::after(1_000);
        for (voter, ahead_ms) in [(0, ahead_ms), (1, 0), (2, 0)] {
            client.stamped(voter, ahead_ms, 1_000);
        }
        assert!(client.is_put_forward(), "{:?}", client.forward);
        assert_eq!(client.kept_out(1_002), [0], "{ahead_ms}");
    }
}

#[test]
fn a_quarantine_from_before_goes_on() {
    let mut client = Paused::after(0);
    client.register.met(only(1), "first", SECS(1), false, at_ms(100));
    client.register.met(only(1), "second", SECS(0), false, at_ms(200));
    client.still_ms = 5_000;
    for voter in [1, 2, 0] {
        client.stamped(voter, 0, 300);
    }
    assert!(client.is_put_forward());
    assert_eq!((client.kept_out(24_000), client.kept_out(25_500)), (vec![1], vec![]));
}

// Two voters are set right one after the other, by as much: neither step can be the client's, as
// the other voter did not show it at that time.
#[test]
fn steps_at_different_times_are_the_voters() {
    let mut client = Paused::after(0);
    for (voter, ahead_ms, ms) in [(0, 60_000, 1_000), (1, 0, 2_000), (1, 60_000, 3_000)] {
        assert!(!matches!(client.stamped(voter, ahead_ms, ms), Shown::StoodStill(_)));
    }
    assert_eq!(client.kept_out(3_003), [0, 1]);
}

#[test]
fn a_step_back_is_never_the_clients() {
    let mut client = Paused::after(0);
    for voter in 0..3 {
        assert_eq!(client.stamped(voter, -1_000, 1_000), Shown::Moved);
    }
    assert_eq!(client.kept_out(1_003), [0, 1, 2]);
}

// Nobody can tell which of the two clocks it was.
#[test]
fn with_a_single_voter_a_step_is_the_voters() {
    let suspicion =
        Suspicion { guard: RestartGuard::Relative, longest: SECS(30), drift: Drift::DEFAULT };
    let mut register = Register::new(vec![0], Quorum::of(1), suspicion);
    let stamp = |shown_ms: u64, ms: u64| Stamp {
        shown: MS(10_000_000 + shown_ms),
        asked: at_ms(ms),
        answered: at_ms(ms + 2),
    };
    assert_eq!(register.stamped(only(0), stamp(1, 0)), Shown::Expected);
    assert_eq!(register.stamped(only(0), stamp(1_101, 100)), Shown::Moved);
    assert!(register.kept_out(only(0), at_ms(200)).is_some());
}
