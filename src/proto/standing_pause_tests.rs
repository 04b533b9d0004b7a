use super::{
    tests::{MS, SECS, at_ms, kept_out, only, register, register_of},
    *,
};
use crate::proto::RestartGuard;

/// A client whose clock stands still for so long at a moment.
struct Paused {
    register: Register,
    /// For how long it stood still.
    still_ms: u64,
    /// For how long it knows that it did.
    known: Duration,
}

impl Paused {
    /// A client that has met all voters now.
    fn after(still_ms: u64) -> Self {
        Self::with(register(RestartGuard::Relative), (0..3).map(only), still_ms)
    }

    /// The same with these servers.
    fn with(register: Register, servers: impl Iterator<Item = Place>, still_ms: u64) -> Self {
        let mut paused = Self { register, still_ms: 0, known: Duration::ZERO };
        for server in servers {
            assert_eq!(paused.shows(server, 0, 0), Shown::Expected);
        }
        paused.still_ms = still_ms;
        paused
    }

    /// A voter whose clock is that far ahead answers within 2 ms, so long after the beginning by a
    /// clock that stands still.
    fn stamped(&mut self, voter: usize, ahead_ms: i64, ms: u64) -> Shown {
        self.shows(only(voter), ahead_ms, ms)
    }

    /// The same of a server.
    fn shows(&mut self, server: Place, ahead_ms: i64, ms: u64) -> Shown {
        let asked = at_ms(ms);
        let shown_ms = i64::try_from(10_000_000 + ms + 1 + self.still_ms).unwrap() + ahead_ms;
        let shown = MS(u64::try_from(shown_ms).unwrap());
        let stamp = Stamp { shown, asked, answered: asked + MS(2) };
        let shown = self.register.stamped(server, stamp);
        if let Shown::StoodStill(by) = shown {
            self.known += by;
        }
        shown
    }

    /// It knows of all of it, and of hardly more: by what the trips of two answers leave in doubt.
    fn knows(&self) -> bool {
        let by = MS(self.still_ms);
        self.known >= by && self.known <= by + MS(30)
    }

    fn kept_out(&self, ms: u64) -> Vec<usize> {
        kept_out(&self.register, at_ms(ms))
    }
}

#[test]
fn a_step_that_a_majority_shows_is_the_clients_own_and_keeps_nobody_out() {
    for still_ms in [20, 1_000, 40_000] {
        let mut client = Paused::after(still_ms);
        assert_eq!(client.stamped(1, 0, 1_000), Shown::Moved);
        assert_eq!(client.kept_out(1_002), [1], "it may be the one that moved");
        assert!(matches!(client.stamped(2, 0, 1_001), Shown::StoodStill(_)), "{still_ms}");
        assert!(client.knows(), "{:?}", client.known);
        assert!(client.kept_out(1_003).is_empty(), "{still_ms}");
        assert_eq!(client.stamped(0, 0, 1_010), Shown::Moved, "it shows the same, late");
        for (voter, ms) in [(1, 1_020), (2, 1_030), (0, 1_040)] {
            assert_eq!(client.stamped(voter, 0, ms), Shown::Expected, "{still_ms}, {voter}");
        }
        assert!(client.knows() && client.kept_out(1_042).is_empty(), "{still_ms}");
    }
}

#[test]
fn a_client_that_stands_still_again_knows_of_both_times() {
    let mut client = Paused::after(1_000);
    for (pauses, ms) in [(1, 1_000), (2, 2_000), (3, 3_000)] {
        client.still_ms = pauses * 1_000;
        for voter in 0..3 {
            client.stamped(voter, 0, ms);
        }
        assert!(client.known >= MS(client.still_ms), "{pauses}: {:?}", client.known);
        let in_doubt = MS(30 * pauses);
        assert!(client.known <= MS(client.still_ms) + in_doubt, "{pauses}");
        assert!(client.kept_out(ms + 2).is_empty(), "{pauses}");
    }
}

#[test]
fn a_voter_whose_clock_moved_while_the_client_stood_still_is_kept_out() {
    for ahead_ms in [60_000, -60_000, 500] {
        let mut client = Paused::after(1_000);
        for (voter, ahead_ms) in [(0, ahead_ms), (1, 0), (2, 0)] {
            client.stamped(voter, ahead_ms, 1_000);
        }
        assert!(client.knows(), "{:?}", client.known);
        assert_eq!(client.kept_out(1_002), [0], "{ahead_ms}");
    }
}

// The time for which the client stood still ends no quarantine: it may be wrong about that.
#[test]
fn a_quarantine_from_before_goes_on_by_the_clock_that_stood_still() {
    let mut client = Paused::after(0);
    client.register.met(only(1), "first", SECS(1), false, at_ms(100));
    client.register.met(only(1), "second", SECS(0), false, at_ms(200));
    client.still_ms = 5_000;
    for voter in [1, 2, 0] {
        client.stamped(voter, 0, 300);
    }
    assert!(client.knows());
    assert_eq!((client.kept_out(30_199), client.kept_out(30_200)), (vec![1], vec![]));
}

#[test]
fn steps_at_different_times_or_back_are_the_voters() {
    for (steps, out) in [
        // The second was asked in between, and did not show the step of the first.
        (&[(0, 60_000, 1_000), (1, 0, 2_000), (1, 60_000, 3_000)][..], vec![0, 1]),
        (&[(0, -1_000, 1_000), (1, -1_000, 1_000), (2, -1_000, 1_000)], vec![0, 1, 2]),
    ] {
        let mut client = Paused::after(0);
        for (voter, ahead_ms, ms) in steps {
            let shown = client.stamped(*voter, *ahead_ms, *ms);
            assert!(!matches!(shown, Shown::StoodStill(_)), "{steps:?}");
        }
        assert_eq!(client.kept_out(3_003), out, "{steps:?}");
    }
}

// The leases end early all the same: nobody is the worse for that but this client.
#[test]
fn who_was_measured_since_and_shows_no_step_proves_that_the_client_did_not_stand_still() {
    let five = register_of((0..5).collect());
    let mut client = Paused::with(five, (0..5).map(only), 0);
    for (voter, ahead_ms, ms) in
        [(0, 60_000, 1_000), (3, 0, 1_010), (1, 60_000, 1_020), (2, 60_000, 1_030)]
    {
        client.stamped(voter, ahead_ms, ms);
    }
    assert_eq!(client.kept_out(1_040), [0, 1, 2]);
    assert!(client.known >= SECS(60));
}

/// Six primaries, two of each of three voters.
fn server(number: usize) -> Place {
    Place { voter: number / 2, shard: number % 2 }
}

// A lock has one primary of each voter. On 0, 3 and 5 one clock has stepped, of three.
#[test]
fn in_a_cluster_the_step_is_the_clients_where_all_servers_of_a_majority_show_it() {
    let cluster = register_of(vec![0; 3]);
    let mut client = Paused::with(cluster, (0..6).map(server), 60_000);
    let out = |client: &Paused, ms| -> Vec<usize> {
        let is_out =
            |number: &usize| client.register.kept_out(server(*number), at_ms(ms)).is_some();
        (0..6).filter(is_out).collect()
    };
    client.shows(server(0), 0, 1_000);
    assert!(matches!(client.shows(server(2), 0, 1_000), Shown::StoodStill(_)), "leases end");
    assert_eq!(out(&client, 1_003), [0, 2], "nobody knows of the others");
    assert_eq!(client.shows(server(1), 0, 1_001), Shown::Moved);
    assert_eq!(out(&client, 1_004), [0, 1, 2]);
    assert_eq!(client.shows(server(3), 0, 1_001), Shown::Moved);
    assert_eq!(out(&client, 1_004), [0; 0]);
    assert!(client.knows(), "{:?}", client.known);
}

// Nobody can tell which of the two clocks it was.
#[test]
fn with_a_single_voter_a_step_is_the_voters() {
    let mut register = register_of(vec![0]);
    let stamp = |shown_ms: u64, ms: u64| Stamp {
        shown: MS(10_000_000 + shown_ms),
        asked: at_ms(ms),
        answered: at_ms(ms + 2),
    };
    assert_eq!(register.stamped(only(0), stamp(1, 0)), Shown::Expected);
    assert_eq!(register.stamped(only(0), stamp(1_101, 100)), Shown::Moved);
    assert!(register.kept_out(only(0), at_ms(200)).is_some());
}
