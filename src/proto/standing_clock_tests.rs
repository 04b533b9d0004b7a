use super::{
    tests::{MS, SECS, at, at_ms, kept_out, only, register, register_of},
    *,
};
use crate::proto::RestartGuard;

/// A stamp of a clock that is so far ahead, asked for at that time with a round trip of `trip_ms`.
fn stamp(ahead_ms: i64, asked_ms: u64, trip_ms: u64) -> Stamp {
    let asked = at_ms(asked_ms);
    let shown_ms = i64::try_from(asked_ms + trip_ms / 2).unwrap() + ahead_ms + 10_000_000;
    let shown = MS(u64::try_from(shown_ms).unwrap());
    Stamp { shown, asked, answered: asked + MS(trip_ms) }
}

#[test]
fn a_clock_may_drift_and_not_move() {
    let mut register = register(RestartGuard::Relative);
    assert_eq!(register.stamped(only(0), stamp(0, 0, 2)), Shown::Expected);
    // A hundredth of ten seconds, and the fixed 2 ms; the trips leave 4 ms of doubt.
    assert_eq!(register.stamped(only(0), stamp(104, 10_000, 2)), Shown::Expected);
    assert_eq!(register.stamped(only(0), stamp(104 + 120, 20_000, 2)), Shown::Moved);
    let out = register.kept_out(only(0), at(20)).unwrap().quarantined;
    assert!(matches!(out.why, Quarantine::ClockMoved(by) if by > MS(15) && by < MS(25)), "{out:?}");
    assert_eq!(out.left, SECS(30) + MS(2));
    // It is where it is now, and stays there.
    assert_eq!(register.stamped(only(0), stamp(224, 25_000, 2)), Shown::Expected);
}

#[test]
fn many_small_steps_are_held_against_the_first() {
    let mut register = register(RestartGuard::Relative);
    let moved = (0..40_u64).find(|step| {
        let ahead_ms = i64::try_from(step * 2).unwrap();
        register.stamped(only(0), stamp(ahead_ms, step * 10, 0)) == Shown::Moved
    });
    // 2 ms in every 10, where 0.1 are allowed, and 2 in all.
    assert!(matches!(moved, Some(1..=3)), "{moved:?}");
}

#[test]
fn what_neither_the_way_of_the_answer_nor_a_correction_explains_is_a_clock_that_moved() {
    const HOUR_MS: u64 = 3_600_000;
    for (ahead_ms, asked_ms, trip_ms, expected) in [
        (-60_000, 100, 2, Shown::Moved),
        // A slow answer is none.
        (0, 1_000, 900, Shown::Expected),
        (400, 1_000, 900, Shown::Expected),
        (-400, 1_000, 900, Shown::Expected),
        (0, 1_000, 2, Shown::Expected),
        // 500 millionths of an hour are 1.8 s, and the drift of a lease 0.3.
        (1_500, HOUR_MS, 2, Shown::Expected),
        (3_000, HOUR_MS, 2, Shown::Moved),
    ] {
        let mut register = register(RestartGuard::Relative);
        register.stamped(only(0), stamp(0, 0, 2));
        let shown = register.stamped(only(0), stamp(ahead_ms, asked_ms, trip_ms));
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
            register.stamped(only(voter), stamp(ahead_ms, 0, 2));
        }
        assert_eq!(kept_out(&register, at(1)), out, "{ahead:?}");
        assert!(kept_out(&register, at(31)).is_empty(), "it has been steady since");
    }
}

// One clock has stepped, and one voter is away. If the voter with the clock that stepped counted,
// a lock could be given twice.
#[test]
fn of_two_clocks_that_disagree_neither_counts_until_a_third_is_measured_or_a_lease_is_over() {
    for (third_ms, out) in [(None, vec![0, 1]), (Some(60_000), vec![0]), (Some(10), vec![1])] {
        let mut register = register(RestartGuard::Relative);
        register.stamped(only(0), stamp(0, 0, 2));
        assert!(kept_out(&register, at(1)).is_empty());
        register.stamped(only(1), stamp(60_000, 2_000, 2));
        assert_eq!(kept_out(&register, at(3)), [0, 1]);
        if let Some(ahead_ms) = third_ms {
            register.stamped(only(2), stamp(ahead_ms, 4_000, 2));
        }
        assert_eq!(kept_out(&register, at(5)), out, "{third_ms:?}");
        assert!(kept_out(&register, at(33)).is_empty(), "each has been steady for a lease");
    }
}

fn shard(shard: usize) -> Place {
    Place { voter: 0, shard }
}

/// One voter of three shards that were met now.
fn sharded() -> Register {
    let mut register = register_of(vec![0]);
    for number in 0..3 {
        register.met(shard(number), &format!("life {number}"), SECS(100), true, at(0));
    }
    register
}

fn shards_out(register: &Register, now: Moment) -> Vec<usize> {
    (0..3).filter(|number| register.kept_out(shard(*number), now).is_some()).collect()
}

#[test]
fn a_shard_that_another_server_has_is_out_alone_however_that_server_writes() {
    let mut register = sharded();
    register.moved(shard(1), shard(1), true, at(10));
    register.met(shard(1), "another", SECS(1_000), true, at(11));
    assert_eq!(shards_out(&register, at(20)), [1]);
    assert_eq!(register.kept_out_longest(0, at(20)), register.kept_out(shard(1), at(20)));
    assert!(shards_out(&register, at(40)).is_empty());
}

#[test]
fn what_moves_takes_along_what_was_forgotten_before_and_what_that_comes_to_light_later() {
    let mut register = sharded();
    register.met(shard(0), "another", SECS(1), false, at(5));
    register.moved(shard(0), shard(1), false, at(10));
    assert_eq!(shards_out(&register, at(20)), [0, 1]);
    assert!(shards_out(&register, at(35)).is_empty());
    register.moved(shard(2), shard(1), false, at(40));
    assert!(shards_out(&register, at(41)).is_empty());
    register.moved(shard(0), shard(0), false, at(41));
    register.met(shard(2), "another", SECS(1), false, at(42));
    assert_eq!(shards_out(&register, at(43)), [1, 2]);
}

#[test]
fn a_clock_apart_is_found_among_shards_once_a_majority_is_together() {
    let mut register = sharded();
    for (number, ahead_ms, out) in [(0, 0, vec![]), (1, 60_000, vec![0, 1]), (2, 0, vec![1])] {
        register.stamped(shard(number), stamp(ahead_ms, 0, 2));
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
                let shown = register.stamped(shard(number), stamp(ahead_ms, hour * HOUR_MS, 2));
                assert_eq!(shown, Shown::Expected);
            }
        }
        register.stamped(shard(3), stamp(ahead_ms, 10 * HOUR_MS, 2));
        let is_out = |secs| register.kept_out(shard(3), at(secs)).is_some();
        assert_eq!([36_001, 36_031].map(is_out), [out, false], "{ahead_ms}");
        assert!(shards_out(&register, at(36_001)).is_empty(), "{ahead_ms}");
    }
}

// Nothing was asked for a day, in which any clock may have been set right.
#[test]
fn where_the_others_are_after_a_long_silence_is_not_known_too_well() {
    for (ahead_ms, out) in [(1_700, false), (60_000, true)] {
        let mut register = sharded();
        for number in 0..3 {
            register.stamped(shard(number), stamp(0, 0, 2));
        }
        register.stamped(shard(3), stamp(ahead_ms, 86_400_000, 2));
        assert_eq!(register.kept_out(shard(3), at(86_401)).is_some(), out, "{ahead_ms}");
    }
}

#[test]
fn a_clock_that_was_apart_counts_for_the_server_that_has_the_shard_next() {
    let mut register = sharded();
    for (number, ahead_ms) in [0, 60_000, 0].into_iter().enumerate() {
        register.stamped(shard(number), stamp(ahead_ms, 0, 2));
    }
    register.moved(shard(1), shard(1), false, at(10));
    register.stamped(shard(1), stamp(0, 11_000, 2));
    assert_eq!(shards_out(&register, at(12)), [1]);
    assert!(shards_out(&register, at(31)).is_empty());
}

/// Three voters that write every change, each on a server of its own.
fn durable() -> Register {
    let mut register = register(RestartGuard::Relative);
    for (voter, server) in ["a", "b", "c"].into_iter().enumerate() {
        register.met(only(voter), server, SECS(100), true, at(0));
    }
    register
}

// What the other server granted is none of its votes, nor is an answer that is still to come; and
// its grants may still be counted as those of the voter that had it before.
#[test]
fn who_comes_to_the_server_of_another_voter_is_its_twin_until_it_has_one_of_its_own() {
    // Voter, server, second, and whose twin each is then; in the end who is out for a lease.
    for (steps, out) in [
        // The first has it, though it connects again.
        (
            &[
                (1, "a", 50, [None, Some(0), None]),
                (0, "a", 55, [None, Some(0), None]),
                (1, "b", 100, [None; 3]),
            ][..],
            vec![1],
        ),
        // Two are left when the first goes, and one of them has the server.
        (
            &[
                (2, "a", 10, [None, None, Some(0)]),
                (1, "a", 20, [None, Some(0), Some(0)]),
                (0, "d", 100, [None, Some(2), None]),
            ],
            vec![1, 2],
        ),
        // They change their servers, and both vote again.
        (&[(0, "b", 50, [Some(1), None, None]), (1, "a", 51, [None; 3])], vec![0]),
        // Back again it is the one that came last.
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
            register.met(only(*voter), server, SECS(*secs), true, at(*secs));
            let found = [0, 1, 2].map(|voter| register.twin(only(voter)));
            assert_eq!(found, *twins, "{server} in {steps:?}");
        }
        let last = steps[steps.len() - 1].2;
        assert_eq!(kept_out(&register, at(last + 29)), out, "{steps:?}");
        assert!(kept_out(&register, at(last + 30)).is_empty(), "{steps:?}");
    }
}

// One primary may have slots of several voters of its cluster, which sees to that by the slots.
#[test]
fn voters_of_one_cluster_are_no_twins_for_a_server_that_has_slots_of_both() {
    let mut register = register_of(vec![0, 0, 2]);
    for (voter, shard) in [(0, 1), (1, 1), (2, 0)] {
        register.met(Place { voter, shard }, "a", SECS(100), true, at(0));
    }
    let twin = |voter, shard| register.twin(Place { voter, shard });
    assert_eq!([twin(0, 1), twin(1, 1), twin(2, 0)], [None, None, Some(0)]);
}
