use proptest::{collection::vec, prelude::*};

use super::*;
use crate::proto::{Quarantine, Reason};

const GRANTED: Verdict = Verdict::Granted;
const ABSENT: Verdict = Verdict::Absent;

fn by(name: &str, ttl_ms: u64) -> Verdict {
    Verdict::Refused { by: HoldId::parse(name), ttl: Some(Duration::from_millis(ttl_ms)) }
}

fn silent() -> Verdict {
    Verdict::Unknown(Cause::TimedOut(Duration::from_millis(200)))
}

fn votes(verdicts: Vec<Option<Verdict>>) -> Votes {
    let quorum = Quorum::of(verdicts.len());
    Votes { verdicts, ..Votes::new(quorum) }
}

fn me() -> HoldId {
    HoldId::parse("me")
}

fn all(verdicts: impl IntoIterator<Item = Verdict>) -> Votes {
    votes(verdicts.into_iter().map(Some).collect())
}

#[test]
fn the_class_of_a_round_waits_for_answers_that_could_change_it() {
    let a = || Some(by("a", 1));
    for (verdicts, loss) in [
        (vec![a(), a(), None], Some(Loss::Held)),
        // The third voter may be the second one of `a`.
        (vec![a(), Some(by("b", 1)), None], None),
        (vec![Some(GRANTED), Some(GRANTED), a(), a()], Some(Loss::Split)),
        // Whichever voters granted.
        (vec![Some(GRANTED), Some(silent()), Some(silent())], Some(Loss::NoQuorum)),
    ] {
        let votes = votes(verdicts);
        assert!(votes.is_hopeless());
        assert_eq!(votes.loss(&me()), loss, "{votes:?}");
    }
    let open = votes(vec![Some(GRANTED), Some(GRANTED), None, None, None]);
    assert!(!open.is_won() && !open.is_hopeless(), "two of five, however united");
}

#[test]
fn a_split_is_no_quorum_where_voters_in_quarantine_leave_too_few_others() {
    let quarantine =
        ShardQuarantine::new(Quarantine::Young, Duration::from_secs(9), Moment::BEGINNING);
    let (a, b) = (|| by("a", 1), || by("b", 1));
    for (verdicts, in_quarantine, is_so) in [
        (vec![GRANTED, a(), b()], vec![1, 2], true),
        (vec![quarantine.verdict(), a(), b()], vec![0, 1], true),
        // Two others are a majority.
        (vec![GRANTED, a(), b()], vec![1], false),
        (vec![GRANTED, GRANTED, a(), a(), b()], vec![2, 4], false),
        (vec![GRANTED, GRANTED, a(), a(), b()], vec![2, 3, 4], true),
        // Voters that did not answer had too little time.
        (vec![GRANTED, quarantine.verdict(), silent()], vec![1, 2], false),
    ] {
        let before = all(verdicts);
        let mut votes = before.clone();
        let found = votes.discount(|voter| in_quarantine.contains(&voter).then_some(quarantine));
        assert_eq!(found, is_so, "{before:?}");
        for (voter, verdict) in votes.into_verdicts().into_iter().enumerate() {
            let is_out = is_so && in_quarantine.contains(&voter);
            let expected = before.clone().into_verdicts().swap_remove(voter);
            assert_eq!(verdict, if is_out { quarantine.verdict() } else { expected }, "{before:?}");
        }
    }
}

#[test]
fn a_hold_and_the_place_it_was_got_from_are_one_obstacle() {
    let place = |name: &str| Verdict::Behind { place: HoldId::parse(name), ttl: None };
    for (verdicts, obstacle) in [
        (vec![place("a:~1"), place("a:~1"), by("a:~1.7", 1)], "a:~1.7"),
        (vec![place("a:~1"), by("b", 1), by("a:~1.7", 1)], "a:~1.7"),
        (vec![place("a:~1"), place("a:~1"), by("b", 1)], "a:~1"),
        (vec![place("a:~1"), by("b", 1), by("b", 1)], "b"),
    ] {
        let votes = all(verdicts);
        assert_eq!(votes.obstacle(), Some(&HoldId::parse(obstacle)), "{votes:?}");
    }
}

// Each client tries two hundred times against each other, with ids as they are made.
#[test]
fn between_equals_no_client_is_favoured() {
    let client = |client: u128, number: u32| {
        HoldId::parse(&format!("{}:{number}", uuid::Uuid::from_u128(client << 90 | client)))
    };
    let mut won = [0; 5];
    for (one, other) in (0..5_u8).flat_map(|one| (0..one).map(move |other| (one, other))) {
        for number in 1..=200 {
            let ids = [one, other].map(|who| client(who.into(), number));
            let round = all([GRANTED, by(ids[1].as_str(), 1)]);
            won[usize::from(if round.leads(&ids[0]) { one } else { other })] += 1;
        }
    }
    // 400 for each on average; a binomial of 800 halves strays by 14.
    assert!(won.iter().all(|won| (340..=460).contains(won)), "{won:?}");
}

#[test]
fn a_hold_without_a_vote_leads_nothing() {
    assert!(!all([silent(), by("b", 1), by("c", 1)]).leads(&HoldId::parse("a")));
}

#[test]
fn a_majority_is_free_when_the_last_voter_it_needs_is() {
    let votes = all([by("a", 300), by("a", 100), by("a", 200), silent(), GRANTED]);
    assert_eq!(votes.free_in(), Some(Duration::from_millis(200)));
    let endless = Verdict::Refused { by: HoldId::parse("a"), ttl: None };
    assert_eq!(all([endless.clone(), endless, by("a", 1)]).free_in(), None);
    // The third has not answered yet, and may be free already.
    let open = self::votes(vec![Some(by("a", 900)), Some(by("a", 5)), None]).free_in();
    assert_eq!(open, Some(Duration::from_millis(5)));
}

#[test]
fn only_voters_that_refused_are_worth_hearing() {
    let a = || by("a", 1);
    for (verdicts, called, some, enough) in [
        ([a(), a(), GRANTED], [true, false, false], true, true),
        // Nobody waits for the third.
        ([a(), a(), GRANTED], [false, false, true], false, false),
        ([a(), a(), a()], [false, true, false], true, false),
        ([a(), a(), a()], [true, true, false], true, true),
        // No wake-up is worth waiting for.
        ([GRANTED, silent(), silent()], [true; 3], false, false),
    ] {
        let votes = all(verdicts);
        let heard = (votes.has_wake_up(&called), votes.has_enough_wake_ups(&called));
        assert_eq!(heard, (some, enough), "{votes:?} {called:?}");
    }
}

#[test]
fn only_voters_that_refused_or_were_never_asked_need_no_undo() {
    let unknown = |cause: fn(Reason) -> Cause| Verdict::Unknown(cause("why".into()));
    let [unreachable, broken] = [unknown(Cause::Unreachable), unknown(Cause::Broken)];
    let mut votes = all([by("a", 1), unreachable.clone(), silent(), broken, GRANTED]);
    assert_eq!(votes.may_have_granted(), [2, 3, 4]);
    // A voter whose connection breaks in the next round may have run the request of this one.
    assert_eq!(votes.reopen_ungranted(), [0, 1, 2, 3]);
    assert_eq!(votes.may_have_granted(), [0, 1, 2, 3, 4], "they have not answered");
    for (voter, verdict) in [by("a", 1), unreachable.clone(), unreachable].into_iter().enumerate() {
        votes.record(voter, verdict);
    }
    assert_eq!(votes.may_have_granted(), [2, 3, 4]);
}

#[test]
fn a_renewal_is_superseded_by_another_majority_or_by_force() {
    assert!(all([by("b", 1), by("b", 1), GRANTED]).is_superseded());
    // Other voters may have lost the entry of the forced end.
    assert!(all([Verdict::Revoked, GRANTED, GRANTED]).is_superseded());
    // Two small contenders on emptied voters, or silence, may pass: try again until the deadline.
    assert!(!all([by("b", 1), by("c", 1), GRANTED]).is_superseded());
    assert!(!all([silent(), silent(), GRANTED]).is_superseded());
}

#[test]
fn a_release_is_settled_once_a_majority_gave_back_or_had_nothing_or_is_silent() {
    // What it came to: whether a majority is free, and whether more lack the vote than can be
    // spared.
    for (verdicts, settles, frees, lacks) in [
        // The third may still give back, or have nothing.
        ([Some(GRANTED), Some(ABSENT), None], false, true, false),
        ([Some(GRANTED), Some(ABSENT), Some(by("a", 5))], true, true, true),
        ([Some(GRANTED), None, Some(GRANTED)], true, true, false),
        ([Some(ABSENT), None, Some(by("a", 5))], true, true, true),
        ([Some(silent()), None, Some(silent())], true, false, false),
        // A voter that never had the vote is as free as one that gave it back.
        ([Some(GRANTED), Some(by("a", 5)), Some(silent())], true, true, false),
        ([Some(GRANTED), Some(silent()), Some(silent())], true, false, false),
    ] {
        let votes = votes(verdicts.to_vec());
        let release = (votes.settles_release(), votes.frees_majority(), votes.lacks_majority());
        assert_eq!(release, (settles, frees, lacks), "{verdicts:?}");
    }
}

/// Of two sets: those that are only new, in both, and only old.
fn joint(new: &[Verdict], both: &[Verdict], old: &[Verdict]) -> Votes {
    let quorum = Quorum::joint(new.len(), both.len(), old.len());
    let verdicts = [new, both, old].concat().into_iter().map(Some).collect();
    Votes { verdicts, ..Votes::new(quorum) }
}

#[test]
fn with_two_sets_a_lock_is_won_by_a_majority_of_each_and_hopeless_without_one_of_them() {
    let new_alone = joint(&[GRANTED, GRANTED, GRANTED], &[], &[GRANTED, by("o", 1), by("o", 1)]);
    assert!(!new_alone.is_won() && new_alone.is_hopeless());
    let each = joint(&[GRANTED, GRANTED, silent()], &[], &[GRANTED, GRANTED, by("o", 1)]);
    assert!(each.is_won() && !each.is_hopeless());
    // Two silent of the three old ones are no quorum, whatever the other five say.
    let silent = joint(&[GRANTED, GRANTED], &[GRANTED], &[silent(), silent()]);
    assert!(silent.lacks_quorum() && silent.loss(&me()) == Some(Loss::NoQuorum));
}

/// A client that has the old voters alone holds by a majority of them.
#[test]
fn a_hold_with_a_majority_of_one_set_has_the_lock() {
    let votes = joint(&[GRANTED], &[by("o", 9), by("o", 9)], &[by("o", 9)]);
    assert_eq!(votes.loss(&me()), Some(Loss::Held));
    assert_eq!(votes.free_in(), Some(Duration::from_millis(9)));
    assert!(votes.is_superseded(), "and if I held it, I do no more");
    // Two wake-ups are needed, though with one there is a majority of the new voters.
    assert!(!votes.has_enough_wake_ups(&[false, true, false, false]));
    assert!(votes.has_enough_wake_ups(&[false, true, true, false]));
}

/// Two attempts with a majority of one set each: one of them goes on, as in any split.
#[test]
fn of_two_attempts_with_a_majority_of_one_set_each_one_leads() {
    let to = |mine: &str, it: &str| if mine == it { GRANTED } else { by(it, 5) };
    let mut losses = ["a", "b"].map(|me| {
        let (new, old) = (to(me, "a"), to(me, "b"));
        let new_set = [new.clone(), new.clone(), old.clone()];
        joint(&new_set, &[], &[old.clone(), old, new]).loss(&HoldId::parse(me))
    });
    losses.sort_by_key(|loss| *loss == Some(Loss::Split));
    assert_eq!(losses, [Some(Loss::Held), Some(Loss::Split)]);
}

#[test]
fn a_release_is_confirmed_by_a_majority_of_each_set() {
    let all_new = [GRANTED, GRANTED, GRANTED];
    let new_alone = joint(&all_new, &[], &[GRANTED, silent(), silent()]);
    assert!(!new_alone.frees_majority() && !new_alone.lacks_majority());
    let each = joint(&[GRANTED, GRANTED, silent()], &[], &[GRANTED, ABSENT, silent()]);
    assert!(each.frees_majority() && each.settles_release());
    assert!(joint(&all_new, &[], &[ABSENT, ABSENT, GRANTED]).lacks_majority());
}

fn any_verdict() -> impl Strategy<Value = Option<Verdict>> {
    prop_oneof![
        3 => Just(Some(GRANTED)),
        2 => (0..3_u8, 0..1000_u64).prop_map(|(who, ttl)| Some(by(&format!("h{who}"), ttl))),
        1 => Just(Some(silent())),
        1 => Just(None),
    ]
}

/// Of one set, or of two.
fn any_votes() -> impl Strategy<Value = Votes> {
    let joint = (vec(any_verdict(), 0..4), vec(any_verdict(), 0..4), vec(any_verdict(), 0..4));
    let joint = joint.prop_filter("a set has a voter", |(new, both, old)| {
        new.len() + both.len() > 0 && both.len() + old.len() > 0
    });
    let joint = joint.prop_map(|(new, both, old)| {
        let quorum = Quorum::joint(new.len(), both.len(), old.len());
        Votes { verdicts: [new, both, old].concat(), ..Votes::new(quorum) }
    });
    prop_oneof![vec(any_verdict(), 1..10).prop_map(votes), joint]
}

proptest! {
    #[test]
    fn a_full_round_is_decided_and_a_later_answer_does_not_turn_what_is(
        before in any_votes(), rest in any_verdict(),
    ) {
        prop_assert!(!(before.is_won() && before.is_hopeless()));
        if !before.is_open() {
            prop_assert!(before.is_won() || before.is_hopeless());
            prop_assert!(before.is_won() || before.loss(&me()).is_some());
        }
        let mut after = before.clone();
        if let Some(voter) = before.verdicts.iter().position(Option::is_none) {
            after.record(voter, rest.unwrap_or_else(silent));
        }
        prop_assert!(!before.is_won() || after.is_won());
        prop_assert!(!before.is_hopeless() || after.is_hopeless());
        // With two sets a vote more may make this hold the one that leads.
        let was_held = before.is_hopeless() && before.loss(&me()) == Some(Loss::Held);
        if was_held && !before.quorum.is_joint() {
            prop_assert_ne!(after.loss(&me()), Some(Loss::Split));
        }
    }

    /// Each voter votes for one of the contenders: exactly one leads, and no two can have won.
    #[test]
    fn a_split_has_exactly_one_leader(choices in vec(0..6_usize, 1..10)) {
        let ids: Vec<_> = (0..6).map(|who| HoldId::parse(&format!("hold-{who}"))).collect();
        let view = |me: usize| all(choices.iter().map(|who| {
            if *who == me { GRANTED } else { by(ids[*who].as_str(), 5) }
        }));
        let leaders = (0..6).filter(|me| view(*me).leads(&ids[*me])).count();
        prop_assert_eq!(leaders, 1);
        prop_assert!((0..6).filter(|me| view(*me).is_won()).count() <= 1);
    }
}
