use proptest::{collection::vec, prelude::*};

use super::*;
use crate::proto::{LeaderValue, Proclaimed};

const MS: fn(u64) -> Duration = Duration::from_millis;

/// A voter that has given its vote to `hold` with this number, and knows this version.
fn has(hold: &str, number: u64, version: u64) -> Option<Sight> {
    says(hold, number, version, None)
}

#[expect(clippy::unnecessary_wraps, reason = "what has not come yet is none")]
fn says(hold: &str, number: u64, version: u64, token: Option<u64>) -> Option<Sight> {
    let value = LeaderValue::new(format!("{hold} {version}").as_bytes()).unwrap();
    let said = Proclaimed { version, token: token.and_then(Token::new), value };
    let (hold, left) = (HoldId::parse(hold), Some(MS(5)));
    Some(Ok(Some(Incumbent { hold, left, number: Token::new(number), said })))
}

const FREE: Option<Sight> = Some(Ok(None));
const SILENT: Option<Sight> = Some(Err(Cause::Unheard));
const OPEN: Option<Sight> = None;

fn census(sights: impl IntoIterator<Item = Option<Sight>>) -> Census {
    let sights: Vec<_> = sights.into_iter().collect();
    Census { quorum: Quorum::of(sights.len()), sights }
}

/// Token, version and value of the leader.
fn led(census: &Census) -> Option<(u64, u64, String)> {
    match census.decide()? {
        WhoLeads::Led { leader, version } => {
            Some((leader.token().into(), version, leader.text()?.to_owned()))
        }
        WhoLeads::Vacant | WhoLeads::Unclear => None,
    }
}

#[test]
fn a_leader_is_whom_a_majority_names() {
    let told = || says("a", 7, 2, Some(7));
    let leader = || Some((7, 2, "a 2".to_owned()));
    assert_eq!(led(&census([told(), told(), OPEN])), leader());
    assert_eq!(led(&census([told(), SILENT, told()])), leader());
    assert_eq!(led(&census([told(), FREE, OPEN])), None);
    assert_eq!(led(&census([has("a", 7, 1)])), Some((7, 1, "a 1".into())));
    let split = [has("a", 7, 1), has("b", 7, 1), has("a", 7, 1), has("b", 7, 1)];
    assert_eq!(led(&census(split)), None, "half of four is no majority");
}

#[test]
fn the_latest_of_what_it_said_counts_which_at_least_one_of_a_majority_knows() {
    let told = [has("a", 7, 1), says("a", 7, 3, Some(7)), says("a", 7, 2, Some(7)), OPEN, OPEN];
    assert_eq!(led(&census(told)), Some((7, 3, "a 3".into())));
}

#[test]
fn nobody_leads_where_no_hold_can_have_a_majority() {
    let vacant = |sights: Vec<Option<Sight>>| census(sights).decide() == Some(WhoLeads::Vacant);
    assert!(vacant(vec![FREE, FREE, OPEN]) && vacant(vec![FREE, FREE, SILENT]));
    assert!(vacant(vec![has("a", 7, 1), FREE, FREE]));
    assert!(vacant(vec![has("a", 7, 1), has("b", 8, 1), FREE]), "the votes are split");
    assert!(!vacant(vec![has("a", 7, 1), FREE, SILENT]), "the silent one may have voted for it");
    assert!(!vacant(vec![FREE, SILENT, SILENT]));
    assert!(vacant(vec![FREE, FREE, has("a", 7, 1), SILENT]), "of four it needs three");
    assert!(!vacant(vec![FREE, has("a", 7, 1), has("a", 7, 1), SILENT]));
}

#[test]
fn what_cannot_be_known_is_unclear_and_what_may_still_be_known_is_awaited() {
    let decided = |sights: [Option<Sight>; 3]| census(sights).decide();
    assert_eq!(decided([has("a", 7, 1), FREE, SILENT]), Some(WhoLeads::Unclear));
    assert_eq!(decided([has("a", 7, 1), FREE, OPEN]), None);
    assert_eq!(decided([FREE, SILENT, SILENT]), Some(WhoLeads::Unclear), "too few are left");
    let mut census = census([has("a", 7, 1), OPEN, OPEN]);
    census.close(MS(200));
    assert_eq!(census.decide(), Some(WhoLeads::Unclear));
    let late = Verdict::Unknown(Cause::TimedOut(MS(200)));
    let named = Verdict::Refused { by: HoldId::parse("a"), ttl: Some(MS(5)) };
    assert_eq!(census.verdicts(), [named, late.clone(), late]);
}

#[test]
fn the_token_is_what_the_leader_wrote_or_the_number_that_a_majority_and_nobody_else_passed() {
    let all = |numbers: [u64; 3]| census(numbers.map(|number| has("a", number, 1)));
    // One voter had counted less far, and is told by a renewal.
    assert_eq!(led(&all([10, 10, 8])).unwrap().0, 10);
    assert_eq!(led(&census([has("a", 10, 1), has("a", 10, 1), FREE])).unwrap().0, 10);
    // Or further. The leader knows whether that one is of its majority, or writes nothing yet.
    let third = [has("a", 12, 1), OPEN, SILENT];
    for sights in third.map(|third| [has("a", 10, 1), has("a", 10, 1), third]) {
        let is_open = sights.contains(&OPEN);
        let census = census(sights);
        assert!(census.lacks_token());
        assert_eq!(census.decide(), (!is_open).then_some(WhoLeads::Unclear));
    }
    for token in [10, 12] {
        let renewed = [says("a", token, 2, Some(token)), has("a", 10, 1), SILENT];
        assert_eq!(led(&census(renewed)).unwrap().0, token);
    }
    // Nobody that too few name is waited for.
    assert!(!census([has("a", 10, 1), FREE, OPEN]).lacks_token());
    assert!(!all([10, 10, 10]).lacks_token());
}

fn sight() -> impl Strategy<Value = Option<Sight>> {
    prop_oneof![
        4 => (0..3_usize).prop_map(|hold| has(["a", "b", "c"][hold], 7, 1)),
        2 => Just(FREE),
        1 => Just(SILENT),
        1 => Just(OPEN),
    ]
}

proptest! {
    // Whatever is still to come, and whatever the silent would have said.
    #[test]
    fn what_is_decided_stays_so(sights in vec(sight(), 1..7), later in vec(sight(), 7)) {
        let Some(finding) = census(sights.clone()).decide() else { return Ok(()) };
        let mut all = sights.clone();
        for (sight, later) in all.iter_mut().zip(later) {
            let silent = *sight == SILENT && finding != WhoLeads::Unclear;
            if *sight == OPEN || silent {
                *sight = later;
            }
        }
        let after = census(all).decide();
        prop_assert!(after.is_none() || after == Some(finding), "{sights:?}: {after:?}");
    }
}

fn said() -> impl Strategy<Value = Option<Sight>> {
    prop_oneof![
        6 => (0..3_usize).prop_map(|at| {
            let (hold, token) = [("a", 7), ("b", 8), ("c", 9)][at];
            says(hold, token, 2, Some(token))
        }),
        2 => Just(FREE),
        1 => Just(SILENT),
        1 => Just(OPEN),
    ]
}

proptest! {
    #[test]
    fn of_two_sets_what_is_decided_stays_so_too(
        sights in vec(said(), 6), later in vec(said(), 6),
    ) {
        let joint = |sights| Census { quorum: Quorum::joint(3, 0, 3), sights };
        let Some(finding) = joint(sights.clone()).decide() else { return Ok(()) };
        let mut all = sights.clone();
        for (sight, later) in all.iter_mut().zip(later) {
            if *sight == OPEN || *sight == SILENT && finding != WhoLeads::Unclear {
                *sight = later;
            }
        }
        let after = joint(all).decide();
        prop_assert!(after.is_none() || after == Some(finding), "{sights:?}: {after:?}");
    }
}

/// Three new voters, and three old ones.
fn joint(new: [Option<Sight>; 3], old: [Option<Sight>; 3]) -> Census {
    Census { quorum: Quorum::joint(3, 0, 3), sights: new.into_iter().chain(old).collect() }
}

#[test]
fn of_two_sets_of_voters_a_leader_may_have_one_alone_and_its_token_shows_it() {
    let old = |third| [says("a", 7, 2, Some(7)), says("a", 7, 2, Some(7)), third];
    let leads = Some((7, 2, "a 2".into()));
    assert_eq!(led(&joint([FREE, FREE, FREE], old(FREE))), leads);
    // The other voters may name another.
    assert_eq!(joint([FREE, FREE, FREE], old(OPEN)).decide(), None);
    assert_eq!(led(&joint([FREE, FREE, SILENT], old(SILENT))), leads);
    assert_eq!(joint([FREE, SILENT, SILENT], old(FREE)).decide(), Some(WhoLeads::Unclear));
    // A candidate that still asks the other set says the same as a leader without a token.
    let asks = || [has("a", 7, 1), has("a", 7, 1), FREE];
    assert_eq!(joint([FREE, FREE, FREE], asks()).decide(), Some(WhoLeads::Unclear));
    assert_eq!(led(&joint(asks(), asks())), Some((7, 1, "a 1".into())));
}

// The one that each set names alone has resigned or lost where it is not named any more.
#[test]
fn of_two_that_a_set_names_each_the_one_with_the_higher_token_leads() {
    let told = |hold, token| {
        let says = || says(hold, token, 2, Some(token));
        [says(), says(), SILENT]
    };
    let leads = Some((8, 2, "b 2".into()));
    assert_eq!(led(&joint(told("a", 7), told("b", 8))), leads);
    assert_eq!(led(&joint(told("b", 8), told("a", 7))), leads);
    // One that has not told its token may lead already.
    let asks = || [has("b", 8, 1), has("b", 8, 1), SILENT];
    assert_eq!(joint(told("a", 7), asks()).decide(), Some(WhoLeads::Unclear));
}

#[test]
fn of_two_sets_of_voters_nobody_leads_where_no_hold_can_have_a_majority_of_either() {
    let one = || [has("a", 7, 1), FREE, FREE];
    assert_eq!(joint(one(), one()).decide(), Some(WhoLeads::Vacant));
    assert_eq!(joint(one(), [FREE, SILENT, SILENT]).decide(), Some(WhoLeads::Unclear));
    assert_eq!(joint(one(), [FREE, FREE, OPEN]).decide(), Some(WhoLeads::Vacant));
}
