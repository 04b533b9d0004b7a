use proptest::prelude::*;

use super::*;

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
fn a_minority_that_answered_is_not_a_majority_however_united() {
    let two_of_five = votes(vec![Some(Verdict::Granted), Some(Verdict::Granted), None, None, None]);
    assert!(!two_of_five.is_won() && !two_of_five.is_hopeless());
}

#[test]
fn refusals_of_one_hold_by_a_majority_mean_held_before_the_rest_answers() {
    let open = votes(vec![Some(by("a", 1)), Some(by("a", 1)), None]);
    assert!(open.is_hopeless());
    assert_eq!(open.loss(&me()), Some(Loss::Held));
}

#[test]
fn two_against_two_is_a_split_and_has_one_leader() {
    let seen_by_a = all([Verdict::Granted, Verdict::Granted, by("b", 1), by("b", 1)]);
    let seen_by_b = all([by("a", 1), by("a", 1), Verdict::Granted, Verdict::Granted]);
    assert_eq!(
        (seen_by_a.loss(&me()), seen_by_b.loss(&me())),
        (Some(Loss::Split), Some(Loss::Split))
    );
    let (a, b) = (HoldId::parse("a"), HoldId::parse("b"));
    assert_ne!(seen_by_a.leads(&a), seen_by_b.leads(&b));
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
            let round = all([Verdict::Granted, by(ids[1].as_str(), 1)]);
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
fn silence_of_more_than_the_spare_is_no_quorum_whoever_granted() {
    let votes = all([Verdict::Granted, silent(), silent()]);
    assert_eq!(votes.loss(&me()), Some(Loss::NoQuorum));
}

#[test]
fn the_class_waits_for_answers_that_could_change_it() {
    // Two refusals by different holds: the third voter may be the second one of `a`.
    assert_eq!(votes(vec![Some(by("a", 1)), Some(by("b", 1)), None]).loss(&me()), None);
}

#[test]
fn a_majority_is_free_when_the_last_voter_it_needs_is() {
    let votes = all([by("a", 300), by("a", 100), by("a", 200), silent(), Verdict::Granted]);
    assert_eq!(votes.free_in(), Some(Duration::from_millis(200)));
    let endless = Verdict::Refused { by: HoldId::parse("a"), ttl: None };
    assert_eq!(all([endless.clone(), endless, by("a", 1)]).free_in(), None);
    // The third has not answered yet, and may be free already.
    let open = self::votes(vec![Some(by("a", 900)), Some(by("a", 5)), None]).free_in();
    assert_eq!(open, Some(Duration::from_millis(5)));
}

#[test]
fn only_voters_that_refused_are_worth_hearing() {
    let awaited = all([by("a", 1), by("a", 1), Verdict::Granted]).awaited();
    assert!(
        awaited.have_called(&[true, false, false]) && awaited.has_called(&[false, true, false])
    );
    assert!(!awaited.has_called(&[false, false, true]), "nobody waits for the third");
    let awaited = all([by("a", 1), by("a", 1), by("a", 1)]).awaited();
    assert!(
        awaited.has_called(&[false, true, false]) && !awaited.have_called(&[false, true, false])
    );
    assert!(awaited.have_called(&[true, true, false]));
    let nobody = all([Verdict::Granted, silent(), silent()]).awaited();
    assert!(!nobody.have_called(&[true; 3]), "no call is worth waiting for");
}

#[test]
fn only_voters_that_refused_or_were_never_asked_need_no_undo() {
    let unreachable = Verdict::Unknown(Cause::Unreachable("refused".into()));
    let votes = votes(vec![
        Some(by("a", 1)),
        Some(unreachable),
        Some(silent()),
        Some(Verdict::Unknown(Cause::Broken("reset".into()))),
        Some(Verdict::Granted),
        None,
    ]);
    assert_eq!(votes.may_have_granted(), [2, 3, 4, 5]);
}

#[test]
fn a_voter_that_fell_silent_and_then_broke_off_is_undone_for_what_it_may_have_run_before() {
    let mut votes = all([Verdict::Granted, by("a", 1), silent()]);
    assert_eq!(votes.reopen_ungranted(), [1, 2]);
    votes.record(1, by("a", 1));
    votes.record(2, Verdict::Unknown(Cause::Unreachable("given up".into())));
    assert_eq!(votes.may_have_granted(), [0, 2]);
}

#[test]
fn a_renewal_is_superseded_by_another_majority_or_by_force() {
    assert!(all([by("b", 1), by("b", 1), Verdict::Granted]).is_superseded());
    assert!(all([Verdict::Revoked, by("b", 1), Verdict::Granted]).is_superseded());
    // Others may have lost the mark.
    assert!(all([Verdict::Revoked, Verdict::Granted, Verdict::Granted]).is_superseded());
    // Two small contenders on emptied voters, or silence, may pass: try again until the deadline.
    assert!(!all([by("b", 1), by("c", 1), Verdict::Granted]).is_superseded());
    assert!(!all([silent(), silent(), Verdict::Granted]).is_superseded());
}

fn any_verdict() -> impl Strategy<Value = Option<Verdict>> {
    prop_oneof![
        3 => Just(Some(Verdict::Granted)),
        2 => (0..3_u8, 0..1000_u64).prop_map(|(who, ttl)| Some(by(&format!("h{who}"), ttl))),
        1 => Just(Some(silent())),
        1 => Just(None),
    ]
}

proptest! {
    #[test]
    fn won_and_hopeless_exclude_each_other_and_full_rounds_are_decided(
        verdicts in prop::collection::vec(any_verdict(), 1..10),
    ) {
        let votes = votes(verdicts);
        prop_assert!(!(votes.is_won() && votes.is_hopeless()));
        if votes.open() == 0 {
            prop_assert!(votes.is_won() || votes.is_hopeless());
            prop_assert!(votes.is_won() || votes.loss(&me()).is_some());
        }
    }

    /// Each voter votes for one of the contenders: exactly one leads, and no two can have won.
    #[test]
    fn a_split_has_exactly_one_leader(choices in prop::collection::vec(0..6_usize, 1..10)) {
        let ids: Vec<_> = (0..6).map(|who| HoldId::parse(&format!("hold-{who}"))).collect();
        let view = |me: usize| all(choices.iter().map(|who| {
            if *who == me { Verdict::Granted } else { by(ids[*who].as_str(), 5) }
        }));
        let leaders = (0..6).filter(|me| view(*me).leads(&ids[*me])).count();
        prop_assert_eq!(leaders, 1);
        prop_assert!((0..6).filter(|me| view(*me).is_won()).count() <= 1);
    }

    #[test]
    fn a_later_answer_never_turns_a_verdict_round(
        verdicts in prop::collection::vec(any_verdict(), 1..10), rest in any_verdict(),
    ) {
        let before = votes(verdicts);
        let mut after = before.clone();
        let rest = rest.unwrap_or_else(silent);
        if let Some(voter) = before.verdicts.iter().position(Option::is_none) {
            after.record(voter, rest);
        }
        prop_assert!(!before.is_won() || after.is_won());
        prop_assert!(!before.is_hopeless() || after.is_hopeless());
        if before.is_hopeless() && before.loss(&me()) == Some(Loss::Held) {
            prop_assert_ne!(after.loss(&me()), Some(Loss::Split));
        }
    }
}

#[test]
fn a_release_is_settled_once_a_majority_gave_back_or_had_nothing_or_is_silent() {
    let open = || votes(vec![Some(Verdict::Granted), Some(Verdict::Absent), None]);
    assert!(!open().settles_release(), "the third may still give back, or have nothing");
    assert!(all([Verdict::Granted, Verdict::Absent, by("a", 5)]).settles_release());
    let gave = votes(vec![Some(Verdict::Granted), None, Some(Verdict::Granted)]);
    assert!(gave.settles_release() && gave.frees_majority() && !gave.lacks_majority());
    let gone = votes(vec![Some(Verdict::Absent), None, Some(by("a", 5))]);
    assert!(gone.settles_release() && gone.lacks_majority());
    let lost = votes(vec![Some(silent()), None, Some(silent())]);
    assert!(lost.settles_release() && !lost.frees_majority() && !lost.lacks_majority());
}

#[test]
fn a_voter_that_never_had_the_vote_is_as_free_as_one_that_gave_it_back() {
    let freed = all([Verdict::Granted, by("a", 5), silent()]);
    assert!(freed.frees_majority() && !freed.lacks_majority());
    assert!(!all([Verdict::Granted, silent(), silent()]).frees_majority());
}

/// Of two sets: those that are only new, in both, and only old.
fn joint(new: &[Verdict], both: &[Verdict], old: &[Verdict]) -> Votes {
    let quorum = Quorum::joint(new.len(), both.len(), old.len());
    let verdicts = [new, both, old].concat().into_iter().map(Some).collect();
    Votes { verdicts, ..Votes::new(quorum) }
}

const GRANTED: Verdict = Verdict::Granted;

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
    // Of three voters that call two must, though I have a majority of the new ones with one.
    let awaited = votes.awaited();
    assert!(!awaited.have_called(&[false, true, false, false]));
    assert!(awaited.have_called(&[false, true, true, false]));
}

/// Two attempts with a majority of one set each: one of them goes on, as in any split.
#[test]
fn of_two_attempts_with_a_majority_of_one_set_each_one_leads() {
    let (a, b) = (HoldId::parse("a"), HoldId::parse("b"));
    let to = |mine: &str, it: &str| if mine == it { GRANTED } else { by(it, 5) };
    let view = |me: &str| {
        let (new, old) = (to(me, "a"), to(me, "b"));
        joint(&[new.clone(), new.clone(), old.clone()], &[], &[old.clone(), old, new])
    };
    let losses = [view("a").loss(&a), view("b").loss(&b)];
    let leaders = losses.iter().filter(|loss| **loss == Some(Loss::Split)).count();
    assert_eq!(leaders, 1, "{losses:?}");
    assert!(losses.contains(&Some(Loss::Held)));
}

#[test]
fn a_release_is_confirmed_by_a_majority_of_each_set() {
    let old = [GRANTED, silent(), silent()];
    let new_alone = joint(&[GRANTED, GRANTED, GRANTED], &[], &old);
    assert!(!new_alone.frees_majority() && !new_alone.lacks_majority());
    let each = joint(&[GRANTED, GRANTED, silent()], &[], &[GRANTED, Verdict::Absent, silent()]);
    assert!(each.frees_majority() && each.settles_release());
    let gone = [Verdict::Absent, Verdict::Absent, GRANTED];
    assert!(joint(&[GRANTED, GRANTED, GRANTED], &[], &gone).lacks_majority());
}

fn any_sets() -> impl Strategy<Value = Votes> {
    let some = || prop::collection::vec(any_verdict(), 0..4);
    let sets = (some(), some(), some());
    let sets = sets.prop_filter("a set has a voter", |(new, both, old)| {
        new.len() + both.len() > 0 && both.len() + old.len() > 0
    });
    sets.prop_map(|(new, both, old)| {
        let quorum = Quorum::joint(new.len(), both.len(), old.len());
        Votes { verdicts: [new, both, old].concat(), ..Votes::new(quorum) }
    })
}

proptest! {
    #[test]
    fn with_two_sets_too_a_full_round_is_decided_and_a_later_answer_does_not_turn_it(
        before in any_sets(), rest in any_verdict(),
    ) {
        prop_assert!(!(before.is_won() && before.is_hopeless()));
        if before.open() == 0 {
            prop_assert!(before.is_won() || before.is_hopeless());
            prop_assert!(before.is_won() || before.loss(&me()).is_some());
        }
        let mut after = before.clone();
        if let Some(voter) = before.verdicts.iter().position(Option::is_none) {
            after.record(voter, rest.unwrap_or_else(silent));
        }
        prop_assert!(!before.is_won() || after.is_won());
        prop_assert!(!before.is_hopeless() || after.is_hopeless());
    }

    /// Whoever has a joint majority excludes all others, whichever sets they count.
    #[test]
    fn nobody_else_has_a_majority_of_either_set_beside_a_hold_with_both(
        sets in (0..4_usize, 0..4_usize, 0..4_usize),
        choices in prop::collection::vec(0..3_usize, 12),
    ) {
        let (new, both, old) = sets;
        prop_assume!(new + both > 0 && both + old > 0);
        let quorum = Quorum::joint(new, both, old);
        let has = |who: usize| quorum.reached(|voter| choices[voter] == who);
        let in_one = |who: usize| quorum.reached_in_one(|voter| choices[voter] == who);
        for who in 0..3 {
            prop_assert!(!has(who) || (0..3).all(|other| other == who || !in_one(other)));
        }
    }
}
