use proptest::prelude::*;

use super::*;
use crate::proto::{Cause, Drift};

const MS: fn(u64) -> Duration = Duration::from_millis;

fn at(ms: u64) -> Moment {
    Moment::from_nanos(1_000_000_000) + MS(ms)
}

fn rules(lease_ms: u64) -> Rules {
    Rules {
        terms: Terms::new(MS(lease_ms), Drift::DEFAULT),
        minimum_validity: MS(lease_ms / 2),
        voter_deadline: MS(200),
        longest_deadline: MS(200),
    }
}

/// Of `a`, `b` and `c`, `b` has the smallest lot: it leads if all have the same number of votes.
fn attempt(me: &str, voters: usize) -> Attempt {
    Attempt::start(HoldId::parse(me), Quorum::of(voters), rules(30_000), at(0))
}

fn by(name: &str) -> Verdict {
    Verdict::Refused { by: HoldId::parse(name), ttl: Some(MS(5)) }
}

#[derive(Clone, Copy, Debug)]
enum Say {
    Grants(usize),
    /// Another hold has its vote.
    Refuses(usize, &'static str),
    /// There is no connection.
    IsAway(usize),
    /// It has no vote to pass on.
    HasNone(usize),
    /// The hold was ended by force.
    IsEnded(usize),
}

use Say::{Grants, HasNone, IsAway, IsEnded, Refuses};

fn away() -> Verdict {
    Verdict::Unknown(Cause::Unreachable("gone".into()))
}

/// The time in ms, the answers of voters then, and what is next.
type Row = (u64, &'static [Say], AttemptNext);

fn check(attempt: &mut Attempt, rows: &[Row]) {
    for (ms, said, next) in rows {
        for say in *said {
            let (voter, verdict) = match *say {
                Grants(voter) => (voter, Verdict::Granted),
                Refuses(voter, hold) => (voter, by(hold)),
                IsAway(voter) => (voter, away()),
                HasNone(voter) => (voter, Verdict::Absent),
                IsEnded(voter) => (voter, Verdict::Revoked),
            };
            attempt.heard(voter, verdict, at(*ms));
        }
        assert_eq!(attempt.next(at(*ms)), *next, "at {ms} ms: {said:?}");
    }
}

fn wait(ms: u64) -> AttemptNext {
    Next::Wait(at(ms))
}

fn others_again() -> AttemptNext {
    Next::AskAgain(vec![1, 2])
}

fn won(until_ms: u64) -> AttemptNext {
    Next::End(Ok(at(until_ms)))
}

const NO_QUORUM: AttemptNext = Next::End(Err(Loss::NoQuorum));
const IS_SPLIT: AttemptNext = Next::End(Err(Loss::Split));
/// Each voter has voted for another one.
const SPLIT: &[Say] = &[Grants(0), Refuses(1, "a"), Refuses(2, "c")];

#[test]
fn it_is_won_at_the_grant_that_makes_the_majority_if_enough_validity_is_left() {
    // Validity counts from the start, not from the answer: 30 s - 302 ms.
    check(
        &mut attempt("b", 5),
        &[
            (1, &[Grants(0)], wait(200)),
            (1, &[Grants(1)], wait(200)),
            (100, &[Grants(4)], won(29_698)),
        ],
    );
    let alone = |rules| Attempt::start(HoldId::parse("b"), Quorum::of(1), rules, at(0));
    // 988 ms of validity from the start: after 489 ms less than the half second is left.
    let mut attempt = alone(rules(1_000));
    check(&mut attempt, &[(488, &[Grants(0)], won(988)), (489, &[], NO_QUORUM)]);
    // A lease smaller than the drift.
    let rules = Rules { minimum_validity: Duration::ZERO, ..rules(2) };
    check(&mut alone(rules), &[(0, &[Grants(0)], NO_QUORUM)]);
}

#[test]
fn without_a_quorum_the_last_causes_are_awaited_as_long_again_as_the_first_took() {
    let decided: [Row; 2] = [(0, &[IsAway(0)], wait(200)), (3, &[IsAway(1)], wait(6))];
    let unheard = || Verdict::Unknown(Cause::Unheard);
    let ends: [(Row, Verdict); 2] =
        [((4, &[IsAway(2)], NO_QUORUM), away()), ((6, &[], NO_QUORUM), unheard())];
    for (end, third) in ends {
        let mut attempt = attempt("b", 3);
        check(&mut attempt, &decided);
        check(&mut attempt, &[end]);
        assert_eq!(attempt.into_votes().into_verdicts(), [away(), away(), third]);
    }
    // Silence until the deadline.
    check(&mut attempt("b", 3), &[(199, &[Grants(0)], wait(200)), (200, &[], NO_QUORUM)]);
}

#[test]
fn the_leader_of_a_split_keeps_its_votes_and_asks_the_others_again_who_give_way_at_once() {
    check(
        &mut attempt("b", 3),
        &[
            // Half a round trip of 4 ms.
            (4, SPLIT, wait(6)),
            (5, &[], wait(6)),
            (6, &[], others_again()),
            // Validity from the first request.
            (10, &[Grants(1)], won(29_698)),
        ],
    );
    let split: &'static [Say] = &[Grants(0), Refuses(1, "b"), Refuses(2, "c")];
    check(&mut attempt("a", 3), &[(4, split, IS_SPLIT)]);
}

#[test]
fn only_the_first_round_waits_for_a_silent_voter_which_does_not_lengthen_the_pause() {
    // The fifth may decide it. Then half of 4 ms.
    let four: &'static [Say] = &[Grants(0), Grants(1), Refuses(2, "a"), Refuses(3, "a")];
    check(&mut attempt("b", 5), &[(4, four, wait(200)), (200, &[], wait(202))]);
    check(
        &mut attempt("b", 3),
        &[
            (4, &[Grants(0), Refuses(1, "a")], wait(200)),
            (200, &[], wait(202)),
            (202, &[], others_again()),
            // Two round trips from 202 on.
            (206, &[Refuses(1, "a")], wait(210)),
            (210, &[], wait(212)),
        ],
    );
}

#[test]
fn a_leader_that_nobody_yields_to_gives_up_after_a_few_rounds() {
    let mut attempt = attempt("b", 3);
    let mut now = 4;
    for _ in 0..Attempt::ROUNDS {
        check(&mut attempt, &[(now, SPLIT, wait(now + 2)), (now + 2, &[], others_again())]);
        now += 6;
    }
    check(&mut attempt, &[(now, SPLIT, IS_SPLIT)]);
}

// The answers stay: they say that the hold whose votes were to be passed on has ended.
#[test]
fn voters_that_have_no_vote_for_the_hold_are_not_asked_again() {
    let mut resumes = attempt("b", 3);
    let rows = [(1, &[Grants(0), HasNone(1)][..], wait(200)), (2, &[IsEnded(2)], IS_SPLIT)];
    check(&mut resumes, &rows);
    let verdicts = [Verdict::Granted, Verdict::Absent, Verdict::Revoked];
    assert_eq!(resumes.into_votes().into_verdicts(), verdicts);
    // A majority can still pass it on.
    let rows =
        [(2, &[Grants(0), HasNone(1), Refuses(2, "c")][..], wait(3)), (3, &[], others_again())];
    check(&mut attempt("b", 3), &rows);
}

#[test]
fn undecided_classes_wait_one_more_round_trip_at_most_and_for_a_slow_voter_of_two() {
    // The silent third is unknown, so no hold is known to have a majority.
    let two: &'static [Say] = &[Refuses(0, "b"), Refuses(1, "a")];
    check(&mut attempt("z", 3), &[(4, two, wait(8)), (8, &[], IS_SPLIT)]);
    check(
        &mut attempt("z", 2),
        &[
            (1, &[Refuses(0, "b")], wait(2)),
            (2, &[], wait(200)),
            (9, &[Refuses(1, "b")], Next::End(Err(Loss::Held))),
        ],
    );
}

proptest! {
    /// Whatever answers come and when: the attempt ends within its rounds, never trusts past the
    /// lease, and wins only with a majority of all voters.
    #[test]
    fn it_ends_and_wins_only_with_a_majority(
        voters in 1..8_usize,
        start in prop_oneof![Just(0), any::<u64>(), Just(u64::MAX - 5)],
        lease_ms in 0..60_000_u64,
        script in prop::collection::vec((0..8_usize, 0..4_u8, 0..120_u64), 0..80),
    ) {
        let started = Moment::from_nanos(start);
        let mut attempt =
            Attempt::start(HoldId::parse("h1"), Quorum::of(voters), rules(lease_ms), started);
        let mut now = started;
        let mut script = script.into_iter();
        let ended = (0..200).find_map(|_| {
            if let Some((voter, kind, later)) = script.next() {
                now = now + MS(later);
                attempt.heard(voter % voters, match kind {
                    0 | 1 => Verdict::Granted,
                    2 => by("h0"),
                    _ => Verdict::Unknown(Cause::Unheard),
                }, now);
            } else {
                now = now + MS(200);
            }
            match attempt.next(now) {
                Next::Wait(_) | Next::AskAgain(_) => None,
                Next::End(end) => Some(end),
            }
        });
        match ended {
            Some(Ok(until)) => {
                prop_assert!(attempt.votes.granted() > voters / 2);
                prop_assert!(until > now && until.since(started) < MS(lease_ms));
            }
            Some(Err(_)) => {}
            // Time stands still only at the end of the clock's range.
            None => prop_assert_eq!(now, Moment::from_nanos(u64::MAX)),
        }
    }
}
