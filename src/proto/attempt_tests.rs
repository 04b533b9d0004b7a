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

/// Of `a`, `b` and `c` the lot of `b` is the smallest: it leads where all have as many votes.
fn attempt(me: &str, voters: usize) -> Attempt {
    Attempt::start(HoldId::parse(me), Quorum::of(voters), rules(30_000), at(0))
}

fn by(name: &str) -> Verdict {
    Verdict::Refused { by: HoldId::parse(name), ttl: Some(MS(5)) }
}

/// After 4 ms each voter has voted for another one.
fn split(mut attempt: Attempt) -> Attempt {
    for (voter, verdict) in [Verdict::Granted, by("a"), by("c")].into_iter().enumerate() {
        attempt.heard(voter, verdict, at(4));
    }
    attempt
}

#[test]
fn it_is_won_at_the_grant_that_makes_the_majority() {
    let mut attempt = attempt("b", 5);
    for voter in 0..2 {
        attempt.heard(voter, Verdict::Granted, at(1));
        assert_eq!(attempt.next(at(1)), Next::Wait(at(200)));
    }
    attempt.heard(4, Verdict::Granted, at(100));
    // Validity counts from the start, not from the answer: 30 s - 302 ms.
    assert_eq!(attempt.next(at(100)), Next::Won(at(29_698)));
}

#[test]
fn a_majority_with_less_than_the_minimum_validity_is_no_majority() {
    let mut attempt = Attempt::start(HoldId::parse("b"), Quorum::of(1), rules(1000), at(0));
    attempt.heard(0, Verdict::Granted, at(489));
    // 988 ms of validity from the start: after 489 ms less than the half second is left.
    assert_eq!(attempt.next(at(489)), Next::Lost(Loss::NoQuorum));
    assert_eq!(attempt.next(at(488)), Next::Won(at(988)));
}

#[test]
fn a_lease_smaller_than_the_drift_is_never_won() {
    let rules = Rules { minimum_validity: Duration::ZERO, ..rules(2) };
    let mut attempt = Attempt::start(HoldId::parse("b"), Quorum::of(1), rules, at(0));
    attempt.heard(0, Verdict::Granted, at(0));
    assert_eq!(attempt.next(at(0)), Next::Lost(Loss::NoQuorum));
}

#[test]
fn without_a_quorum_the_last_causes_are_awaited_as_long_again_as_the_first_took() {
    let gone = || Verdict::Unknown(Cause::Unreachable("gone".into()));
    let decided = || {
        let mut attempt = attempt("b", 3);
        attempt.heard(0, gone(), at(0));
        attempt.heard(1, gone(), at(3));
        assert_eq!(attempt.next(at(3)), Next::Wait(at(6)));
        attempt
    };
    let mut complete = decided();
    complete.heard(2, gone(), at(4));
    assert_eq!(complete.next(at(4)), Next::Lost(Loss::NoQuorum));
    assert_eq!(complete.into_votes().into_verdicts(), [gone(), gone(), gone()]);
    let mut silent = decided();
    assert_eq!(silent.next(at(6)), Next::Lost(Loss::NoQuorum));
    assert_eq!(silent.into_votes().into_verdicts()[2], Verdict::Unknown(Cause::Unheard));
}

#[test]
fn silence_until_the_deadline_is_no_quorum() {
    let mut attempt = attempt("b", 3);
    attempt.heard(0, Verdict::Granted, at(199));
    assert_eq!(attempt.next(at(199)), Next::Wait(at(200)));
    assert_eq!(attempt.next(at(200)), Next::Lost(Loss::NoQuorum));
}

#[test]
fn the_leader_of_a_split_keeps_its_votes_and_asks_the_others_again() {
    let mut attempt = split(attempt("b", 3));
    assert_eq!(attempt.next(at(4)), Next::Wait(at(6)), "half a round trip of 4 ms");
    assert_eq!(attempt.next(at(5)), Next::Wait(at(6)));
    assert_eq!(attempt.next(at(6)), Next::AskAgain(vec![1, 2]));
    attempt.heard(1, Verdict::Granted, at(10));
    assert_eq!(attempt.next(at(10)), Next::Won(at(29_698)), "validity from the first request");
}

#[test]
fn a_silent_voter_does_not_lengthen_the_leader_s_pause() {
    let mut attempt = attempt("b", 5);
    attempt.heard(0, Verdict::Granted, at(3));
    attempt.heard(1, Verdict::Granted, at(3));
    attempt.heard(2, by("a"), at(4));
    attempt.heard(3, by("a"), at(4));
    assert_eq!(attempt.next(at(4)), Next::Wait(at(200)), "the fifth may decide it");
    assert_eq!(attempt.next(at(200)), Next::Wait(at(202)), "half of 4 ms");
}

#[test]
fn only_the_first_round_waits_for_a_silent_voter() {
    let mut attempt = attempt("b", 3);
    attempt.heard(0, Verdict::Granted, at(4));
    attempt.heard(1, by("a"), at(4));
    assert_eq!(attempt.next(at(4)), Next::Wait(at(200)));
    assert_eq!(attempt.next(at(200)), Next::Wait(at(202)));
    assert_eq!(attempt.next(at(202)), Next::AskAgain(vec![1, 2]));
    attempt.heard(1, by("a"), at(206));
    assert_eq!(attempt.next(at(206)), Next::Wait(at(210)), "two round trips from 202 on");
    assert_eq!(attempt.next(at(210)), Next::Wait(at(212)));
}

#[test]
fn the_others_of_a_split_give_way_at_once() {
    let mut attempt = attempt("a", 3);
    attempt.heard(0, Verdict::Granted, at(4));
    attempt.heard(1, by("b"), at(4));
    attempt.heard(2, by("c"), at(4));
    assert_eq!(attempt.next(at(4)), Next::Lost(Loss::Split));
}

#[test]
fn a_leader_that_nobody_yields_to_gives_up_after_a_few_rounds() {
    let mut attempt = attempt("b", 3);
    attempt.heard(0, Verdict::Granted, at(4));
    let mut now = at(4);
    let mut rounds = 0;
    loop {
        attempt.heard(1, by("a"), now);
        attempt.heard(2, by("c"), now);
        match attempt.next(now) {
            Next::Wait(until) => now = until,
            Next::Lost(loss) => break assert_eq!(loss, Loss::Split),
            other => panic!("{other:?}"),
        }
        assert_eq!(attempt.next(now), Next::AskAgain(vec![1, 2]));
        now = now + MS(4);
        rounds += 1;
    }
    assert_eq!(rounds, Attempt::ROUNDS);
}

#[test]
fn undecided_classes_wait_one_more_round_trip_at_most() {
    let mut attempt = attempt("z", 3);
    attempt.heard(0, by("b"), at(4));
    attempt.heard(1, by("a"), at(4));
    assert_eq!(attempt.next(at(4)), Next::Wait(at(8)));
    // The silent third counts as unknown: nobody is known to have a majority.
    assert_eq!(attempt.next(at(8)), Next::Lost(Loss::Split));
}

fn split_after_4_ms(limit_ms: u64) -> Attempt {
    let window = Window::start(Some(at(limit_ms)), true, at(0));
    let mut attempt = split(attempt("b", 3).within(window));
    assert_eq!(attempt.next(at(4)), Next::Wait(at(6)));
    assert_eq!(attempt.next(at(6)), Next::AskAgain(vec![1, 2]));
    attempt
}

#[test]
fn a_leader_whose_next_round_would_begin_behind_the_limit_gives_up() {
    let mut attempt = split_after_4_ms(11);
    attempt.heard(1, by("a"), at(10));
    attempt.heard(2, by("c"), at(10));
    assert_eq!(attempt.next(at(10)), Next::Lost(Loss::Split), "12 is too late");
}

#[test]
fn a_later_round_that_the_limit_ends_is_still_a_split() {
    let mut attempt = split_after_4_ms(8);
    assert_eq!(attempt.next(at(7)), Next::Wait(at(8)));
    assert_eq!(attempt.next(at(8)), Next::Lost(Loss::Split));
}

#[test]
fn without_anything_known_the_limit_ends_no_round_and_lets_none_begin() {
    let hurried = || attempt("b", 3).within(Window::start(Some(at(2)), false, at(0)));
    let mut won = hurried();
    assert_eq!(won.next(at(2)), Next::Wait(at(200)));
    won.heard(0, Verdict::Granted, at(4));
    won.heard(1, Verdict::Granted, at(4));
    assert!(matches!(won.next(at(4)), Next::Won(_)));
    assert_eq!(split(hurried()).next(at(4)), Next::Lost(Loss::Split));
}

#[test]
fn a_slow_voter_of_two_is_waited_for_and_not_taken_for_silent() {
    let mut attempt = attempt("z", 2);
    attempt.heard(0, by("b"), at(1));
    assert_eq!(attempt.next(at(1)), Next::Wait(at(2)));
    assert_eq!(attempt.next(at(2)), Next::Wait(at(200)));
    attempt.heard(1, by("b"), at(9));
    assert_eq!(attempt.next(at(9)), Next::Lost(Loss::Held));
}

proptest! {
    /// Whatever comes and whenever: the machine ends within its rounds, never trusts past the
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
                end => Some(end),
            }
        });
        match ended {
            Some(Next::Won(until)) => {
                prop_assert!(attempt.votes.granted() > voters / 2);
                prop_assert!(until > now && until.since(started) < MS(lease_ms));
            }
            Some(_) => {}
            // Only at the end of the clock's range does time stand still.
            None => prop_assert_eq!(now, Moment::from_nanos(u64::MAX)),
        }
    }
}
