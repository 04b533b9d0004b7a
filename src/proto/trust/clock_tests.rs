use super::{
    tests::{MS, SECS, at, at_ms, only, quarantine, register, register_of},
    *,
};
use crate::proto::RestartGuard;

/// A stamp of a clock that is so far ahead, from a request at that time with this round trip.
fn stamp(ahead_ms: i64, asked_ms: u64, trip_ms: u64) -> Stamp {
    let asked = at_ms(asked_ms);
    let shown_ms = i64::try_from(asked_ms + trip_ms / 2).unwrap() + ahead_ms + 10_000_000;
    let shown = MS(u64::try_from(shown_ms).unwrap());
    Stamp { shown, asked, answered: asked + MS(trip_ms) }
}

#[test]
fn a_clock_may_drift_and_not_move() {
    let mut register = register(RestartGuard::Relative);
    assert_eq!(register.note_clock(only(0), stamp(0, 0, 2)), Shown::Expected);
    // A hundredth of ten seconds, and the fixed 2 ms; the trips leave 4 ms of doubt.
    assert_eq!(register.note_clock(only(0), stamp(104, 10_000, 2)), Shown::Expected);
    assert_eq!(register.note_clock(only(0), stamp(104 + 120, 20_000, 2)), Shown::Moved);
    let out = register.quarantine(only(0), at(20)).unwrap().quarantined;
    assert!(matches!(out.why, Quarantine::ClockMoved(by) if by > MS(15) && by < MS(25)), "{out:?}");
    assert_eq!(out.left, SECS(30) + MS(2));
    // From now on it is expected where it is now.
    assert_eq!(register.note_clock(only(0), stamp(224, 25_000, 2)), Shown::Expected);
}

#[test]
fn many_small_steps_are_held_against_the_first() {
    let mut register = register(RestartGuard::Relative);
    let moved = (0..40_u64).find(|step| {
        let ahead_ms = i64::try_from(step * 2).unwrap();
        register.note_clock(only(0), stamp(ahead_ms, step * 10, 0)) == Shown::Moved
    });
    // 2 ms in every 10, where 0.1 are allowed, and 2 in all.
    assert!(matches!(moved, Some(1..=3)), "{moved:?}");
}

#[test]
fn what_neither_the_way_of_the_answer_nor_a_correction_explains_is_a_clock_that_moved() {
    const HOUR_MS: u64 = 3_600_000;
    for (ahead_ms, asked_ms, trip_ms, expected) in [
        (-60_000, 100, 2, Shown::Moved),
        // A slow answer shows no step.
        (0, 1_000, 900, Shown::Expected),
        (400, 1_000, 900, Shown::Expected),
        (-400, 1_000, 900, Shown::Expected),
        (0, 1_000, 2, Shown::Expected),
        // 500 millionths of an hour are 1.8 s, and the drift of a lease 0.3.
        (1_500, HOUR_MS, 2, Shown::Expected),
        (3_000, HOUR_MS, 2, Shown::Moved),
    ] {
        let mut register = register(RestartGuard::Relative);
        register.note_clock(only(0), stamp(0, 0, 2));
        let shown = register.note_clock(only(0), stamp(ahead_ms, asked_ms, trip_ms));
        assert_eq!(shown, expected, "{ahead_ms} ms after {asked_ms} ms");
    }
}

#[test]
fn a_clock_apart_from_those_of_a_majority_is_suspicious_when_it_is_met() {
    for (ahead, out) in [
        ([0, 0, 60_000], vec![2]),
        ([0, -400, 100], vec![1]),
        ([0, 200, -100], vec![]),
        ([0, 5_000, 60_000], vec![0, 1, 2]),
    ] {
        let mut register = register(RestartGuard::Relative);
        for (voter, ahead_ms) in ahead.into_iter().enumerate() {
            register.note_clock(only(voter), stamp(ahead_ms, 0, 2));
        }
        assert_eq!(quarantine(&register, at(1)), out, "{ahead:?}");
        assert!(quarantine(&register, at(31)).is_empty(), "it has been steady since");
    }
}

// One clock has stepped, and one voter is down. If the voter with the clock that stepped counted,
// a lock could be given twice.
#[test]
fn of_two_clocks_that_disagree_neither_counts_until_a_third_is_measured_or_a_lease_is_over() {
    for (third_ms, out) in [(None, vec![0, 1]), (Some(60_000), vec![0]), (Some(10), vec![1])] {
        let mut register = register(RestartGuard::Relative);
        register.note_clock(only(0), stamp(0, 0, 2));
        assert!(quarantine(&register, at(1)).is_empty());
        register.note_clock(only(1), stamp(60_000, 2_000, 2));
        assert_eq!(quarantine(&register, at(3)), [0, 1]);
        if let Some(ahead_ms) = third_ms {
            register.note_clock(only(2), stamp(ahead_ms, 4_000, 2));
        }
        assert_eq!(quarantine(&register, at(5)), out, "{third_ms:?}");
        assert!(quarantine(&register, at(33)).is_empty(), "each has been steady for a lease");
    }
}

fn shard(number: usize) -> Shard {
    Shard { voter: 0, number }
}

/// One voter of three shards that are first seen now.
fn sharded() -> Register {
    let mut register = register_of(vec![0]);
    for number in 0..3 {
        register.note_server(shard(number), &format!("life {number}"), SECS(100), true, at(0));
    }
    register
}

fn shards_out(register: &Register, now: Moment) -> Vec<usize> {
    (0..3).filter(|number| register.quarantine(shard(*number), now).is_some()).collect()
}

#[test]
fn a_shard_that_another_server_has_is_out_alone_however_that_server_writes() {
    let mut register = sharded();
    register.note_move(shard(1), shard(1), true, at(10));
    register.note_server(shard(1), "another", SECS(1_000), true, at(11));
    assert_eq!(shards_out(&register, at(20)), [1]);
    assert_eq!(register.longest_quarantine(0, at(20)), register.quarantine(shard(1), at(20)));
    assert!(shards_out(&register, at(40)).is_empty());
}

#[test]
fn what_moves_takes_along_what_was_forgotten_before_and_what_that_comes_to_light_later() {
    let mut register = sharded();
    register.note_server(shard(0), "another", SECS(1), false, at(5));
    register.note_move(shard(0), shard(1), false, at(10));
    assert_eq!(shards_out(&register, at(20)), [0, 1]);
    assert!(shards_out(&register, at(35)).is_empty());
    register.note_move(shard(2), shard(1), false, at(40));
    assert!(shards_out(&register, at(41)).is_empty());
    register.note_move(shard(0), shard(0), false, at(41));
    register.note_server(shard(2), "another", SECS(1), false, at(42));
    assert_eq!(shards_out(&register, at(43)), [1, 2]);
}

#[test]
fn a_clock_apart_is_found_among_shards_once_a_majority_is_together() {
    let mut register = sharded();
    for (number, ahead_ms, out) in [(0, 0, vec![]), (1, 60_000, vec![0, 1]), (2, 0, vec![1])] {
        register.note_clock(shard(number), stamp(ahead_ms, 0, 2));
        assert_eq!(shards_out(&register, at(1)), out);
    }
}

// All by a twentieth of a second an hour: it is the client's clock that runs slow.
#[test]
fn a_clock_that_is_measured_late_is_compared_with_where_the_others_are_by_then() {
    const HOUR_MS: u64 = 3_600_000;
    for (ahead_ms, out) in [(500, false), (1_500, true), (0, true)] {
        let mut register = sharded();
        for hour in 0..=10 {
            let ahead_ms = i64::try_from(50 * hour).unwrap();
            for number in 0..3 {
                let shown = register.note_clock(shard(number), stamp(ahead_ms, hour * HOUR_MS, 2));
                assert_eq!(shown, Shown::Expected);
            }
        }
        register.note_clock(shard(3), stamp(ahead_ms, 10 * HOUR_MS, 2));
        let is_out = |secs| register.quarantine(shard(3), at(secs)).is_some();
        assert_eq!([36_001, 36_031].map(is_out), [out, false], "{ahead_ms}");
        assert!(shards_out(&register, at(36_001)).is_empty(), "{ahead_ms}");
    }
}

// Nothing was asked for a day, in which any clock may have been corrected.
#[test]
fn where_the_others_are_after_a_long_silence_is_not_known_too_well() {
    for (ahead_ms, out) in [(1_700, false), (60_000, true)] {
        let mut register = sharded();
        for number in 0..3 {
            register.note_clock(shard(number), stamp(0, 0, 2));
        }
        register.note_clock(shard(3), stamp(ahead_ms, 86_400_000, 2));
        assert_eq!(register.quarantine(shard(3), at(86_401)).is_some(), out, "{ahead_ms}");
    }
}

#[test]
fn a_clock_that_was_apart_counts_for_the_server_that_has_the_shard_next() {
    let mut register = sharded();
    for (number, ahead_ms) in [0, 60_000, 0].into_iter().enumerate() {
        register.note_clock(shard(number), stamp(ahead_ms, 0, 2));
    }
    register.note_move(shard(1), shard(1), false, at(10));
    register.note_clock(shard(1), stamp(0, 11_000, 2));
    assert_eq!(shards_out(&register, at(12)), [1]);
    assert!(shards_out(&register, at(31)).is_empty());
}

/// Three voters that write every change to disk, each on a server of its own.
fn durable() -> Register {
    let mut register = register(RestartGuard::Relative);
    for (voter, server) in ["a", "b", "c"].into_iter().enumerate() {
        register.note_server(only(voter), server, SECS(100), true, at(0));
    }
    register
}

// The grants of the other server are no votes of this voter, nor is an answer still to come; and
// they may still count as votes of the voter that had the server before.
#[test]
fn who_comes_to_the_server_of_another_voter_is_its_twin_until_it_has_one_of_its_own() {
    // Voter, server, second, and whose twin each is then; last, who is in quarantine for a lease.
    for (steps, out) in [
        // The first voter keeps the server, though it connects again.
        (
            &[
                (1, "a", 50, [None, Some(0), None]),
                (0, "a", 55, [None, Some(0), None]),
                (1, "b", 100, [None; 3]),
            ][..],
            vec![1],
        ),
        // When the first leaves, two are left, and one of them has the server.
        (
            &[
                (2, "a", 10, [None, None, Some(0)]),
                (1, "a", 20, [None, Some(0), Some(0)]),
                (0, "d", 100, [None, Some(2), None]),
            ],
            vec![1, 2],
        ),
        // They swap servers, and both vote again.
        (&[(0, "b", 50, [Some(1), None, None]), (1, "a", 51, [None; 3])], vec![0]),
        // When it is back, it is the one that came last.
        (
            &[
                (0, "d", 10, [None; 3]),
                (1, "a", 50, [None; 3]),
                (0, "a", 60, [Some(1), None, None]),
            ],
            vec![0],
        ),
        // A server is the same after its promotion, and another after its restart.
        (
            &[
                (0, "a/1", 20, [None; 3]),
                (1, "a/2/tenure", 20, [None, Some(0), None]),
                (1, "e", 20, [None; 3]),
            ],
            vec![1],
        ),
    ] {
        let mut register = durable();
        for (voter, server, secs, twins) in steps {
            register.note_server(only(*voter), server, SECS(*secs), true, at(*secs));
            let found = [0, 1, 2].map(|voter| register.twin(only(voter)));
            assert_eq!(found, *twins, "{server} in {steps:?}");
        }
        let last = steps[steps.len() - 1].2;
        assert_eq!(quarantine(&register, at(last + 29)), out, "{steps:?}");
        assert!(quarantine(&register, at(last + 30)).is_empty(), "{steps:?}");
    }
}

// One primary may have slots of several voters of its cluster: they have other keys.
#[test]
fn voters_of_one_cluster_are_no_twins_for_a_server_that_has_slots_of_both() {
    let mut register = register_of(vec![0, 0, 2]);
    for (voter, number) in [(0, 1), (1, 1), (2, 0)] {
        register.note_server(Shard { voter, number }, "a", SECS(100), true, at(0));
    }
    let twin = |voter, number| register.twin(Shard { voter, number });
    assert_eq!([twin(0, 1), twin(1, 1), twin(2, 0)], [None, None, Some(0)]);
}

/// A client whose clock stands still for so long at a moment.
struct Paused {
    register: Register,
    /// How long it stood still.
    still_ms: u64,
    /// How long it knows that it did.
    known: Duration,
}

impl Paused {
    /// A client that first sees all voters now.
    fn after(still_ms: u64) -> Self {
        Self::with(register(RestartGuard::Relative), (0..3).map(only), still_ms)
    }

    /// The same with these servers.
    fn with(register: Register, servers: impl Iterator<Item = Shard>, still_ms: u64) -> Self {
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
    fn shows(&mut self, server: Shard, ahead_ms: i64, ms: u64) -> Shown {
        let asked = at_ms(ms);
        let shown_ms = i64::try_from(10_000_000 + ms + 1 + self.still_ms).unwrap() + ahead_ms;
        let shown = MS(u64::try_from(shown_ms).unwrap());
        let stamp = Stamp { shown, asked, answered: asked + MS(2) };
        let shown = self.register.note_clock(server, stamp);
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

    fn quarantine(&self, ms: u64) -> Vec<usize> {
        quarantine(&self.register, at_ms(ms))
    }
}

#[test]
fn a_step_that_a_majority_shows_is_the_clients_own_and_keeps_nobody_out() {
    for still_ms in [20, 1_000, 40_000] {
        let mut client = Paused::after(still_ms);
        assert_eq!(client.stamped(1, 0, 1_000), Shown::Moved);
        assert_eq!(client.quarantine(1_002), [1], "it may be the one that moved");
        assert!(matches!(client.stamped(2, 0, 1_001), Shown::StoodStill(_)), "{still_ms}");
        assert!(client.knows(), "{:?}", client.known);
        assert!(client.quarantine(1_003).is_empty(), "{still_ms}");
        assert_eq!(client.stamped(0, 0, 1_010), Shown::Moved, "it shows the same, late");
        for (voter, ms) in [(1, 1_020), (2, 1_030), (0, 1_040)] {
            assert_eq!(client.stamped(voter, 0, ms), Shown::Expected, "{still_ms}, {voter}");
        }
        assert!(client.knows() && client.quarantine(1_042).is_empty(), "{still_ms}");
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
        assert!(client.quarantine(ms + 2).is_empty(), "{pauses}");
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
        assert_eq!(client.quarantine(1_002), [0], "{ahead_ms}");
    }
}

// A pause that the client finds ends no quarantine: it may be wrong about that.
#[test]
fn a_quarantine_from_before_goes_on_by_the_clock_that_stood_still() {
    let mut client = Paused::after(0);
    client.register.note_server(only(1), "first", SECS(1), false, at_ms(100));
    client.register.note_server(only(1), "second", SECS(0), false, at_ms(200));
    client.still_ms = 5_000;
    for voter in [1, 2, 0] {
        client.stamped(voter, 0, 300);
    }
    assert!(client.knows());
    assert_eq!((client.quarantine(30_199), client.quarantine(30_200)), (vec![1], vec![]));
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
        assert_eq!(client.quarantine(3_003), out, "{steps:?}");
    }
}

// The leases end early all the same, which only harms this client.
#[test]
fn who_was_measured_since_and_shows_no_step_proves_that_the_client_did_not_stand_still() {
    let five = register_of((0..5).collect());
    let mut client = Paused::with(five, (0..5).map(only), 0);
    for (voter, ahead_ms, ms) in
        [(0, 60_000, 1_000), (3, 0, 1_010), (1, 60_000, 1_020), (2, 60_000, 1_030)]
    {
        client.stamped(voter, ahead_ms, ms);
    }
    assert_eq!(client.quarantine(1_040), [0, 1, 2]);
    assert!(client.known >= SECS(60));
}

/// Six primaries, two of each of three voters.
fn server(number: usize) -> Shard {
    Shard { voter: number / 2, number: number % 2 }
}

// A lock has one primary of each voter. On 0, 3 and 5 one clock has stepped, of three.
#[test]
fn in_a_cluster_the_step_is_the_clients_where_all_servers_of_a_majority_show_it() {
    let cluster = register_of(vec![0; 3]);
    let mut client = Paused::with(cluster, (0..6).map(server), 60_000);
    let out = |client: &Paused, ms| -> Vec<usize> {
        let is_out =
            |number: &usize| client.register.quarantine(server(*number), at_ms(ms)).is_some();
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

// Nobody can tell which of the two clocks stepped.
#[test]
fn with_a_single_voter_a_step_is_the_voters() {
    let mut register = register_of(vec![0]);
    let stamp = |shown_ms: u64, ms: u64| Stamp {
        shown: MS(10_000_000 + shown_ms),
        asked: at_ms(ms),
        answered: at_ms(ms + 2),
    };
    assert_eq!(register.note_clock(only(0), stamp(1, 0)), Shown::Expected);
    assert_eq!(register.note_clock(only(0), stamp(1_101, 100)), Shown::Moved);
    assert!(register.quarantine(only(0), at_ms(200)).is_some());
}
