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

/// A request of a round that left and was answered at that moment.
fn asked(sent: u64) -> Asked {
    let (sent, heard) = (at(sent), at(sent));
    Asked { is_first: false, is_passed: false, sent, terms: terms(), heard, quarantine: None }
}

/// Of a hold that was asked for at 1 s.
fn support(voters: usize) -> Support {
    Support::new(voters, at(1), SECS(0), MS(200))
}

fn forgot(secs: u64) -> ShardQuarantine {
    ShardQuarantine::new(Quarantine::Restarted, SECS(20), at(secs))
}

fn counts(support: &Support, quarantine: Option<ShardQuarantine>) -> bool {
    support.verdict_that_counts(0, Verdict::Granted, quarantine) == Verdict::Granted
}

#[test]
fn a_voter_that_forgot_counts_for_whom_it_had_its_vote_from_and_only_while_that_stood() {
    let mut support = support(1);
    assert!(counts(&support, None), "it has forgotten nothing");
    assert!(!counts(&support, Some(forgot(30))), "it never had the hold");
    support.heard(0, &Verdict::Granted, asked(1));
    assert!(counts(&support, Some(forgot(20))) && counts(&support, Some(forgot(29))));
    assert!(!counts(&support, Some(forgot(30))), "by a fast clock the vote had ended before");
    support.heard(0, &Verdict::Unknown(Cause::Unheard), asked(2));
    assert_eq!(support.votes(), 0);
    assert!(counts(&support, Some(forgot(29))), "silence does not take the proof");
    // For twelve seconds of that the client stood still.
    support.stand_still(SECS(12));
    assert!(counts(&support, Some(forgot(17))) && !counts(&support, Some(forgot(18))));
}

#[test]
fn a_refusal_in_quarantine_stays_one() {
    let refused = Verdict::Refused { by: HoldId::parse("c:2"), ttl: None };
    let counted = support(1).verdict_that_counts(0, refused.clone(), Some(forgot(40)));
    assert_eq!(counted, refused);
}

/// Three voters, of which so many granted at 1 s: their votes last until 30 s.
fn granted_by(votes: usize) -> Support {
    let mut support = support(3);
    for voter in 0..votes {
        support.heard(voter, &Verdict::Granted, Asked { is_first: true, ..asked(1) });
    }
    support
}

fn grants(support: &mut Support, voters: &[usize], sent: u64) {
    for voter in voters {
        support.heard(*voter, &Verdict::Granted, asked(sent));
    }
}

/// A round at that moment finds that a voter has no vote.
fn lacks(support: &mut Support, voter: usize, sent: u64) {
    support.heard(voter, &Verdict::Absent, asked(sent));
}

fn is_lost(support: &mut Support, now: u64) -> bool {
    support.is_lost(Quorum::of(3), at(now))
}

#[test]
fn a_hold_is_lost_once_a_majority_had_no_vote_of_it_at_one_moment() {
    let mut support = granted_by(3);
    for now in [10, 11] {
        lacks(&mut support, 0, now);
        assert!(!is_lost(&mut support, now), "one voter, however often it says so");
    }
    let refused = Verdict::Refused { by: HoldId::parse("c:2"), ttl: None };
    support.heard(1, &refused, asked(11));
    assert!(is_lost(&mut support, 11), "it has given the vote to another");
}

#[test]
fn what_was_healed_counts_with_what_was_lost_before_it_was_and_not_with_what_was_lost_later() {
    for (is_renewed, is_told) in [(false, true), (true, false)] {
        let mut support = granted_by(3);
        lacks(&mut support, 0, 10);
        grants(&mut support, &[0, 2], 11);
        assert!(!is_lost(&mut support, 11));
        if is_renewed {
            grants(&mut support, &[0, 1, 2], 12);
        }
        lacks(&mut support, 1, 13);
        assert_eq!(is_lost(&mut support, 13), is_told);
    }
}

#[test]
fn a_voter_that_has_given_no_vote_may_have_given_it_to_others_since_the_hold_began() {
    for (gives, is_told) in [(None, true), (Some(11), true), (Some(5), false)] {
        let mut support = granted_by(2);
        assert!(!is_lost(&mut support, 1));
        if let Some(gives) = gives {
            assert!(support.heard(2, &Verdict::Granted, asked(gives)));
            grants(&mut support, &[0, 1], if gives < 10 { gives + 1 } else { 1 });
        }
        lacks(&mut support, 1, 12);
        assert_eq!(is_lost(&mut support, 12), is_told, "{gives:?}");
    }
}

// The late answer to the request by which the hold was acquired.
#[test]
fn a_late_grant_is_as_old_as_the_hold_unless_its_number_shows_others() {
    for is_passed in [false, true] {
        let mut support = granted_by(2);
        let first = Asked { is_first: true, is_passed, ..asked(3) };
        assert!(!support.heard(2, &Verdict::Granted, first), "no round is needed for it");
        lacks(&mut support, 1, 12);
        assert_eq!(is_lost(&mut support, 12), is_passed);
    }
}

// The voter has given its vote again, and that answer was lost: another may have had it before.
#[test]
fn a_vote_that_was_given_again_unheard_is_another_one() {
    let mut support = granted_by(3);
    lacks(&mut support, 0, 10);
    grants(&mut support, &[2], 10);
    assert!(support.heard(0, &Verdict::Granted, asked(11)), "as it is heard now");
    lacks(&mut support, 1, 11);
    assert!(is_lost(&mut support, 11));
}

#[test]
fn votes_that_may_have_ended_in_time_are_missed_from_then_on_and_not_before() {
    // The third is silent. As far as the client knows it has the vote until 30 s.
    for (lost_at, is_told) in [(20, false), (35, true)] {
        let mut support = granted_by(3);
        grants(&mut support, &[0, 1], lost_at - 1);
        lacks(&mut support, 0, lost_at);
        assert_eq!(is_lost(&mut support, lost_at), is_told, "{lost_at}");
        grants(&mut support, &[0, 1], lost_at + 1);
        lacks(&mut support, 2, 40);
        assert!(is_told || !is_lost(&mut support, 40), "its lease has ended");
    }
    let mut support = granted_by(3);
    grants(&mut support, &[0, 1], 20);
    assert!(!is_lost(&mut support, 40), "one that is away is a minority");
    grants(&mut support, &[2], 41);
    assert!(!is_lost(&mut support, 41));
}

#[test]
fn a_voter_in_quarantine_has_given_its_vote_to_nobody_else_unless_a_majority_is_there() {
    let out = |sent| Asked { quarantine: Some(forgot(10)), ..asked(sent) };
    for (votes, others, is_told) in [(2, 0, false), (3, 1, true)] {
        let mut support = granted_by(votes);
        support.heard(0, &Verdict::Absent, out(11));
        support.heard(0, &Verdict::Granted, out(11));
        for voter in 1..=others {
            support.heard(voter, &Verdict::Absent, out(11));
        }
        assert_eq!(is_lost(&mut support, 11), is_told, "{votes}");
    }
}

// The third voter has given no vote before, and is away.
#[test]
fn another_hold_that_stays_is_a_loss_where_it_leaves_no_majority() {
    let by = |name| Verdict::Refused { by: HoldId::parse(name), ttl: None };
    let out = |ms| Asked { heard: at(11) + MS(ms), quarantine: Some(forgot(10)), ..asked(11) };
    let now = at(11) + MS(300);
    for (votes, answers, is_told) in [
        (2, vec![(by("b:1"), 0), (by("b:1"), 199)], false),
        (2, vec![(by("b:1"), 0), (by("b:1"), 200)], true),
        (2, vec![(by("b:1"), 0), (by("b:2"), 200)], false),
        (2, vec![(by("b:1"), 0), (Verdict::Absent, 100), (by("b:1"), 200)], false),
        (2, vec![(by("b:1"), 0), (by("b:1"), 200), (Verdict::Granted, 201)], false),
        (3, vec![(by("b:1"), 0), (by("b:1"), 200)], false),
    ] {
        let mut support = granted_by(votes);
        for (verdict, ms) in &answers {
            support.heard(0, verdict, out(*ms));
        }
        assert_eq!(support.is_lost(Quorum::of(3), now), is_told, "{answers:?}");
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
    let (granted, end) = (|| Verdict::Granted, Next::End);
    // Voters that refused are asked again.
    let soon = || Next::Wait(at_ms(1) + MS(200) / 64);
    // A suspected voter's vote may count for nobody.
    for (heard, now_ms, next) in [
        (vec![(0, silent(), false)], 199, Next::Wait(at_ms(200))),
        (vec![(0, silent(), false)], 200, end(RoundEnd::Failed)),
        (vec![(0, silent(), false), (1, silent(), false)], 1, end(RoundEnd::Failed)),
        (vec![(1, granted(), false), (2, granted(), false)], 1, end(RoundEnd::Renewed)),
        // One voter that knows of the forced end is enough, whichever others grant.
        (
            vec![(1, granted(), false), (2, granted(), false), (0, Verdict::Revoked, true)],
            1,
            end(RoundEnd::Superseded),
        ),
        (vec![(0, by("b"), false), (1, by("b"), false)], 1, end(RoundEnd::Superseded)),
        (vec![(0, by("b"), false)], 1, soon()),
        // These votes do not count for the rival either, and it will give them back.
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
    let again = Next::AskAgain(vec![1]);
    assert_eq!(
        round.next(at_ms(20), || 0),
        Next::Wait(at_ms(30)),
        "half as long as the answer took"
    );
    assert_eq!(round.next(at_ms(30), || 0), again);
    assert_eq!(round.next(at_ms(30), || 0), Next::Wait(at_ms(200)), "until it answers");
    round.heard(1, by("rival"), false);
    assert_eq!(round.next(at_ms(50), || 0), Next::Wait(at_ms(75)));
    assert_eq!(round.next(at_ms(75), || 0), again);
    round.heard(1, Verdict::Granted, false);
    assert_eq!(round.next(at_ms(95), || 0), Next::End(RoundEnd::Renewed));
}

#[test]
fn who_has_no_vote_is_asked_for_one_at_once_unless_another_may_have_held_the_lock() {
    for vanished in [false, true] {
        let mut round = round(3);
        round.heard(1, Verdict::Absent, false);
        if vanished {
            round.vanish();
            assert_eq!(round.next(at_ms(20), || 0), Next::End(RoundEnd::Vanished));
            continue;
        }
        assert_eq!(round.next(at_ms(20), || 0), Next::AskAgain(vec![1]));
        assert_eq!(round.next(at_ms(20), || 0), Next::Wait(at_ms(200)));
        // Also where nothing else can be heard: the next round may need it.
        for voter in [0, 2] {
            round.heard(voter, Verdict::Unknown(Cause::Unheard), false);
        }
        round.heard(1, Verdict::Absent, false);
        assert_eq!(round.next(at_ms(30), || 0), Next::AskAgain(vec![1]));
        assert_eq!(round.next(at_ms(30), || 0), Next::End(RoundEnd::Failed));
    }
}

// An attempt takes less than the patience of the support; what it gives back is as before.
#[test]
fn votes_that_are_lent_are_no_gap_and_are_lost_when_they_stay_away() {
    let lend = |support: &mut Support, voters: &[usize], ms: u64| {
        for voter in voters {
            let asked = asked(ms / 1_000);
            support.heard(*voter, &Verdict::Unknown(Cause::Unheard), asked);
            support.note_resumer(*voter, &HoldId::parse("c:2"), at_ms(ms));
        }
    };
    let lost_at = |support: &mut Support, ms| support.is_lost(Quorum::of(3), at_ms(ms));
    let mut support = granted_by(3);
    lend(&mut support, &[0, 1], 2_000);
    lend(&mut support, &[0, 1], 2_199);
    assert!(!lost_at(&mut support, 2_199) && support.rival().is_none());
    grants(&mut support, &[0, 1], 3);
    lend(&mut support, &[0, 1], 4_000);
    assert!(!lost_at(&mut support, 4_000), "it is another attempt");
    lend(&mut support, &[0], 4_200);
    assert!(!lost_at(&mut support, 4_200), "two are left");
    lend(&mut support, &[1], 4_200);
    assert!(lost_at(&mut support, 4_200));
    assert_eq!(support.rival(), Some(&HoldId::parse("c:2")));
}
