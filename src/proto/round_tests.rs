use super::*;
use crate::proto::{Drift, HoldId, Quarantine, at as at_ms};

const SECS: fn(u64) -> Duration = Duration::from_secs;
const MS: fn(u64) -> Duration = Duration::from_millis;

/// 30 s of which 29 are trusted.
fn terms() -> Terms {
    Terms::new(SECS(30), Drift { ppm: 0, fixed: SECS(1) })
}

fn at(secs: u64) -> Moment {
    Moment::BEGINNING + SECS(secs)
}

fn asked(sent: u64) -> Asked {
    Asked { round: RoundId::FIRST, sent: at(sent), terms: terms(), heard: at(sent) }
}

fn forgot(secs: u64) -> KeptOut {
    KeptOut::new(Quarantine::Restarted, SECS(20), at(secs))
}

fn counts(support: &Support, kept_out: Option<KeptOut>) -> bool {
    support.counted(0, Verdict::Granted, kept_out) == Verdict::Granted
}

#[test]
fn a_voter_that_forgot_counts_for_whom_it_had_its_vote_from_and_only_while_that_stood() {
    let mut support = Support::of(1);
    assert!(counts(&support, None), "it has forgotten nothing");
    assert!(!counts(&support, Some(forgot(30))), "it never had the hold");
    support.heard(0, &Verdict::Granted, asked(1));
    assert!(counts(&support, Some(forgot(20))) && counts(&support, Some(forgot(29))));
    assert!(!counts(&support, Some(forgot(30))), "by a fast clock the vote had ended before");
    support.heard(0, &Verdict::Unknown(Cause::Unheard), asked(2));
    assert_eq!(support.votes(), 0);
    assert!(counts(&support, Some(forgot(29))), "silence does not take the proof");
    // Twelve seconds of that passed while the client stood still.
    support.shorten(SECS(12));
    assert!(counts(&support, Some(forgot(17))) && !counts(&support, Some(forgot(18))));
}

#[test]
fn a_refusal_in_quarantine_stays_one() {
    let refused = Verdict::Refused { by: HoldId::parse("c:2"), ttl: None };
    let counted = Support::of(1).counted(0, refused.clone(), Some(forgot(40)));
    assert_eq!(counted, refused);
}

/// Three voters that granted at 1 s, so that their votes stand until 30 s.
fn granted_by_three() -> Support {
    let mut support = Support::of(3);
    for voter in 0..3 {
        support.heard(voter, &Verdict::Granted, asked(1));
    }
    support
}

/// In this round a voter turns out to have lost the vote, and grants anew.
fn anew(support: &mut Support, voter: usize, round: RoundId) {
    let asked = Asked { round, ..asked(10) };
    support.heard(voter, &Verdict::Absent, asked);
    support.heard(voter, &Verdict::Granted, asked);
}

fn is_forgotten(support: &Support, round: RoundId) -> bool {
    support.is_forgotten(Quorum::of(3), round)
}

#[test]
fn a_majority_that_lost_the_vote_has_forgotten_the_hold() {
    let mut support = granted_by_three();
    let round = support.begin();
    anew(&mut support, 0, round);
    anew(&mut support, 0, round);
    assert!(!is_forgotten(&support, round), "one voter, however often it says so");
    let refused = Verdict::Refused { by: HoldId::parse("c:2"), ttl: None };
    support.heard(1, &refused, Asked { round, ..asked(11) });
    assert!(is_forgotten(&support, round), "it has given the vote to another");
}

#[test]
fn what_was_found_out_in_a_round_that_succeeded_is_healed_for_the_rounds_after_it() {
    for succeeds in [true, false] {
        let mut support = granted_by_three();
        let round = support.begin();
        anew(&mut support, 0, round);
        if succeeds {
            support.confirm(round);
        }
        let next = support.begin();
        anew(&mut support, 1, next);
        assert_eq!(is_forgotten(&support, next), !succeeds);
        // A late answer belongs to the round that it answers.
        anew(&mut support, 2, round);
        assert!(is_forgotten(&support, round));
    }
}

// The voter has given the vote again, and that answer was lost: another may have had it before.
#[test]
fn a_vote_that_was_given_again_unheard_is_another_one() {
    for heard in [true, false] {
        let mut support = granted_by_three();
        let round = support.begin();
        support.heard(0, &Verdict::Absent, Asked { round, ..asked(10) });
        if heard {
            support.heard(0, &Verdict::Granted, Asked { round, ..asked(10) });
        }
        support.confirm(round);
        let next = support.begin();
        support.heard(0, &Verdict::Granted, Asked { round: next, ..asked(11) });
        support.heard(1, &Verdict::Absent, Asked { round: next, ..asked(11) });
        assert_eq!(is_forgotten(&support, next), !heard);
    }
}

#[test]
fn who_never_had_the_vote_or_had_it_for_long_enough_has_forgotten_nothing() {
    let mut support = Support::of(3);
    let round = support.begin();
    (0..3).for_each(|voter| anew(&mut support, voter, round));
    assert!(!is_forgotten(&support, round), "none had it before");
    // The votes may have ended in time, and silence is no answer.
    for (verdict, sent) in [(Verdict::Absent, 39), (Verdict::Unknown(Cause::Unheard), 40)] {
        let round = support.begin();
        for voter in 0..3 {
            support.heard(voter, &verdict, Asked { round, ..asked(sent) });
        }
        assert!(!is_forgotten(&support, round), "{verdict}");
    }
}

const MEMORY: Duration = Duration::from_secs(1_000);

fn grant(checkup: &mut Checkup, voters: std::ops::Range<usize>, in_full: bool) {
    voters.for_each(|voter| checkup.heard(voter, true, in_full));
}

#[test]
fn a_round_is_in_full_until_all_have_granted_one_and_again_after_a_while() {
    let mut checkup = Checkup::of(3);
    assert!(checkup.begins(at(10), MEMORY), "nobody has granted one in full");
    grant(&mut checkup, 0..2, true);
    assert!(checkup.begins(at(20), MEMORY), "one was silent");
    grant(&mut checkup, 0..3, true);
    for now in [30, 169] {
        assert!(!checkup.begins(at(now), MEMORY));
        grant(&mut checkup, 0..2, false);
    }
    assert!(checkup.begins(at(170), MEMORY), "it was long ago");
    grant(&mut checkup, 0..3, false);
    assert!(checkup.begins(at(180), MEMORY), "those were answers to the round before");
}

#[test]
fn it_is_due_four_times_while_a_token_is_remembered_and_no_later_than_by_default() {
    for (memory, due) in [(400, 110), (600, 160), (90_000, 160)] {
        let mut checkup = Checkup::of(1);
        let memory = Duration::from_secs(memory);
        assert!(checkup.begins(at(10), memory));
        grant(&mut checkup, 0..1, true);
        assert!(!checkup.begins(at(due - 1), memory));
        assert!(checkup.begins(at(due), memory));
    }
}

// And a grant of the same round that comes late heals nothing.
#[test]
fn a_voter_that_fails_is_asked_in_full_again() {
    let mut checkup = Checkup::of(3);
    checkup.begins(at(10), MEMORY);
    grant(&mut checkup, 0..3, true);
    assert!(!checkup.begins(at(20), MEMORY));
    checkup.heard(2, false, false);
    checkup.heard(2, true, false);
    assert!(checkup.begins(at(30), MEMORY));
}

#[test]
fn with_more_voters_than_it_has_bits_each_round_is_in_full() {
    for (voters, in_full) in [(64, false), (65, true)] {
        let mut checkup = Checkup::of(voters);
        checkup.begins(at(10), MEMORY);
        grant(&mut checkup, 0..voters, true);
        assert_eq!(checkup.begins(at(20), MEMORY), in_full, "{voters}");
    }
}

fn round(voters: usize) -> Round {
    Round::start(Quorum::of(voters), at_ms(0), MS(200))
}

fn by(name: &str) -> Verdict {
    Verdict::Refused { by: HoldId::parse(name), ttl: Some(MS(1_000)) }
}

#[test]
fn a_round_ends_at_the_majority_or_when_there_can_be_none() {
    let silent = || Verdict::Unknown(Cause::Unheard);
    let (granted, end) = (|| Verdict::Granted, RoundNext::End);
    // Whoever refused is asked again.
    let soon = || RoundNext::Wait(at_ms(1) + MS(200) / 64);
    // A suspected voter's vote may count for nobody.
    for (heard, now_ms, next) in [
        (vec![(0, silent(), false)], 199, RoundNext::Wait(at_ms(200))),
        (vec![(0, silent(), false)], 200, end(RoundEnd::Failed)),
        (vec![(0, silent(), false), (1, silent(), false)], 1, end(RoundEnd::Failed)),
        (vec![(1, granted(), false), (2, granted(), false)], 1, end(RoundEnd::Renewed)),
        // One that knows of the force is enough, whoever grants.
        (
            vec![(1, granted(), false), (2, granted(), false), (0, Verdict::Revoked, true)],
            1,
            end(RoundEnd::Superseded),
        ),
        (vec![(0, by("b"), false), (1, by("b"), false)], 1, end(RoundEnd::Superseded)),
        (vec![(0, by("b"), false)], 1, soon()),
        // Such votes do not count for the rival either, and it will give them back.
        (vec![(0, granted(), false), (1, by("b"), true), (2, by("b"), false)], 1, soon()),
    ] {
        let mut round = round(3);
        for (voter, verdict, suspected) in heard.clone() {
            round.heard(voter, verdict, suspected);
        }
        assert_eq!(round.next(at_ms(now_ms), || 0), next, "{heard:?}");
    }
}

#[test]
fn who_has_a_vote_without_a_majority_is_asked_for_it_again_and_again() {
    let mut round = round(3);
    round.heard(0, Verdict::Granted, false);
    round.heard(1, by("rival"), false);
    let again = RoundNext::AskAgain(vec![1]);
    assert_eq!(
        round.next(at_ms(20), || 0),
        RoundNext::Wait(at_ms(30)),
        "half as long as the answer took"
    );
    assert_eq!(round.next(at_ms(30), || 0), again);
    assert_eq!(round.next(at_ms(30), || 0), RoundNext::Wait(at_ms(200)), "until it answers");
    round.heard(1, by("rival"), false);
    assert_eq!(round.next(at_ms(50), || 0), RoundNext::Wait(at_ms(75)));
    assert_eq!(round.next(at_ms(75), || 0), again);
    round.heard(1, Verdict::Granted, false);
    assert_eq!(round.next(at_ms(95), || 0), RoundNext::End(RoundEnd::Renewed));
}
