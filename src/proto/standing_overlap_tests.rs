//! Servers that took over from another while some clients still counted what that one granted.

use super::{
    tests::{SECS, at, met, only, register},
    *,
};
use crate::proto::{Asked, RoundId, Support, Terms, Verdict};

const OVERLAP: Duration = Duration::from_secs(9);

/// The second voter's server has one promotion behind it, and then this one.
fn promoted(at_secs: u64) -> Register {
    let mut register = met(RestartGuard::Relative, true, [SECS(100); 3]);
    register.follows(only(1), OVERLAP);
    register.met(only(1), "successor", SECS(0), false, at(at_secs));
    register
}

fn is_out(register: &Register, secs: u64) -> bool {
    register.kept_out(only(1), at(secs)).is_some()
}

// A grant that the old server gave as late as at 59 is trusted until 89.
#[test]
fn a_successor_is_out_until_no_lease_of_its_predecessor_can_be_left() {
    let register = promoted(50);
    assert!(is_out(&register, 50 + 9 + 29) && !is_out(&register, 50 + 9 + 30));
    let left = register.kept_out(only(1), at(50)).unwrap().quarantined.left;
    assert_eq!(left, OVERLAP + SECS(30));
}

/// Three voters that are met 50 s after the beginning, of which the second took over from another.
fn met_after_a_promotion(guard: RestartGuard, uptimes: [u64; 3]) -> Register {
    let mut register = register(guard);
    register.follows(only(1), OVERLAP);
    for (voter, uptime) in uptimes.into_iter().enumerate() {
        register.met(only(voter), &format!("life {voter}"), SECS(uptime), false, at(50));
    }
    register
}

#[test]
fn who_comes_after_a_promotion_keeps_the_successor_out_for_as_long() {
    for (guard, uptimes, until) in [
        // It was promoted 5 s before, and the others are older than any lease, or not.
        (RestartGuard::Relative, [100, 5, 100], 45 + 9 + 30),
        (RestartGuard::Strict, [5, 5, 5], 45 + 9 + 30),
        // All were promoted longer ago than a lease lasts. Clients may still have counted it.
        (RestartGuard::Relative, [31, 31, 31], 19 + 9 + 30),
    ] {
        let register = met_after_a_promotion(guard, uptimes);
        assert!(is_out(&register, until - 1) && !is_out(&register, until), "{uptimes:?}");
    }
}

// The time in which others may have counted its predecessor makes it no younger than it is.
#[test]
fn servers_that_started_together_are_not_kept_out_for_what_they_might_follow() {
    let register = met_after_a_promotion(RestartGuard::Relative, [2, 2, 2]);
    assert!((0..3).all(|voter| register.kept_out(only(voter), at(50)).is_none()));
}

#[test]
fn slots_that_come_to_a_known_server_without_their_data_are_out_for_as_long() {
    let mut register = promoted(50);
    let other = Place { voter: 1, shard: 1 };
    register.moved(other, only(1), true, at(200));
    assert!(is_out(&register, 200 + 9 + 29) && !is_out(&register, 200 + 9 + 30));
}

// The old server gives the vote to somebody else as soon as its lease is over there, and that one
// counts it: so a vote which ends before the last client has left that server proves nothing to
// the new one.
#[test]
fn a_renewal_counts_the_successor_only_with_a_vote_that_outlasts_the_predecessor() {
    let register = promoted(50);
    let kept_out = register.kept_out(only(1), at(51)).expect("it is kept out");
    let mut support = Support::of(3);
    for (lease, counts) in [(8, false), (20, true)] {
        let terms = Terms::new(SECS(lease), Drift { ppm: 0, fixed: Duration::ZERO });
        let asked = Asked { round: RoundId::FIRST, sent: at(49), terms, heard: at(49) };
        support.heard(1, &Verdict::Granted, asked);
        let counted = support.counted(1, Verdict::Granted, Some(kept_out));
        assert_eq!(counted == Verdict::Granted, counts, "a lease of {lease} s, from 49 on");
    }
}
