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

/// A leader that has told its token.
fn told(hold: &str, token: u64) -> Option<Sight> {
    says(hold, token, 2, Some(token))
}

const FREE: Option<Sight> = Some(Ok(None));
const SILENT: Option<Sight> = Some(Err(Cause::Unheard));
const OPEN: Option<Sight> = None;

fn census(sights: impl IntoIterator<Item = Option<Sight>>) -> Census {
    let sights: Vec<_> = sights.into_iter().collect();
    Census { quorum: Quorum::of(sights.len()), sights }
}

/// Three new voters, and three old ones.
fn joint(sights: impl IntoIterator<Item = Option<Sight>>) -> Census {
    Census { quorum: Quorum::joint(3, 0, 3), sights: sights.into_iter().collect() }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// Token and version of the leader, which says so too.
    Led(u64, u64),
    Vacant,
    Unclear,
    /// What is to come may change it.
    Awaited,
}

fn found(census: &Census) -> Found {
    match census.decide() {
        Some(WhoLeads::Led { leader, version }) => {
            assert!(leader.text().unwrap().ends_with(&format!(" {version}")), "{leader:?}");
            Found::Led(leader.token().into(), version)
        }
        Some(WhoLeads::Vacant) => Found::Vacant,
        Some(WhoLeads::Unclear) => Found::Unclear,
        None => Found::Awaited,
    }
}

#[test]
fn a_leader_is_whom_a_majority_names_and_nobody_leads_where_no_hold_can_have_one() {
    use Found::{Awaited, Led, Unclear, Vacant};
    let (a, b) = (|| has("a", 7, 1), || has("b", 8, 1));
    let told = || told("a", 7);
    for (sights, expected) in [
        (vec![told(), told(), OPEN], Led(7, 2)),
        (vec![told(), SILENT, told()], Led(7, 2)),
        (vec![told(), FREE, OPEN], Awaited),
        (vec![a()], Led(7, 1)),
        // Half of four is no majority.
        (vec![a(), b(), a(), b()], Vacant),
        // The latest counts of what it said, which at least one of a majority knows.
        (vec![a(), says("a", 7, 3, Some(7)), told(), OPEN, OPEN], Led(7, 3)),
        (vec![FREE, FREE, OPEN], Vacant),
        (vec![FREE, FREE, SILENT], Vacant),
        (vec![a(), FREE, FREE], Vacant),
        (vec![a(), b(), FREE], Vacant),
        // The silent one may have voted for it.
        (vec![a(), FREE, SILENT], Unclear),
        (vec![a(), FREE, OPEN], Awaited),
        (vec![FREE, SILENT, SILENT], Unclear),
        // Of four it needs three.
        (vec![FREE, FREE, a(), SILENT], Vacant),
        (vec![FREE, a(), a(), SILENT], Unclear),
    ] {
        assert_eq!(found(&census(sights.clone())), expected, "{sights:?}");
    }
}

#[test]
fn who_has_not_answered_in_time_is_silent() {
    let mut census = census([has("a", 7, 1), OPEN, OPEN]);
    census.close(MS(200));
    assert_eq!(census.decide(), Some(WhoLeads::Unclear));
    let late = Verdict::Unknown(Cause::TimedOut(MS(200)));
    let named = Verdict::Refused { by: HoldId::parse("a"), ttl: Some(MS(5)) };
    assert_eq!(census.verdicts(), [named, late.clone(), late]);
}

#[test]
fn the_token_is_what_the_leader_wrote_or_the_number_that_a_majority_and_nobody_else_passed() {
    use Found::{Awaited, Led, Unclear};
    let ten = || has("a", 10, 1);
    for (sights, expected, lacks_token) in [
        ([ten(), ten(), ten()], Led(10, 1), false),
        // One voter had counted less far, and is told by a renewal.
        ([ten(), ten(), has("a", 8, 1)], Led(10, 1), false),
        ([ten(), ten(), FREE], Led(10, 1), false),
        // Or further. The leader knows whether that one is of its majority, or writes nothing yet.
        ([ten(), ten(), has("a", 12, 1)], Unclear, true),
        ([ten(), ten(), OPEN], Awaited, true),
        ([ten(), ten(), SILENT], Unclear, true),
        ([says("a", 10, 2, Some(10)), ten(), SILENT], Led(10, 2), false),
        ([says("a", 12, 2, Some(12)), ten(), SILENT], Led(12, 2), false),
        // Nobody that too few name is waited for.
        ([ten(), FREE, OPEN], Awaited, false),
    ] {
        let census = census(sights.clone());
        assert_eq!((found(&census), census.lacks_token()), (expected, lacks_token), "{sights:?}");
    }
}

#[test]
fn of_two_sets_of_voters_a_leader_may_have_one_alone_and_its_token_shows_it() {
    use Found::{Awaited, Led, Unclear, Vacant};
    let free = || [FREE, FREE, FREE];
    let led = |hold, token, third| [told(hold, token), told(hold, token), third];
    // A candidate that still asks the other set says the same as a leader without a token.
    let asks = |hold, third| [has(hold, 7, 1), has(hold, 7, 1), third];
    let one = || [has("a", 7, 1), FREE, FREE];
    for (new, old, expected) in [
        (free(), led("a", 7, FREE), Led(7, 2)),
        ([FREE, FREE, SILENT], led("a", 7, SILENT), Led(7, 2)),
        // The other voters may name another.
        (free(), led("a", 7, OPEN), Awaited),
        ([FREE, SILENT, SILENT], led("a", 7, FREE), Unclear),
        (free(), asks("a", FREE), Unclear),
        (asks("a", FREE), asks("a", FREE), Led(7, 1)),
        // Of two that a set names each, the one with the lower token has resigned or lost there.
        (led("a", 7, SILENT), led("b", 8, SILENT), Led(8, 2)),
        (led("b", 8, SILENT), led("a", 7, SILENT), Led(8, 2)),
        // One that has not told its token may lead already.
        (led("a", 7, SILENT), asks("b", SILENT), Unclear),
        // No hold can have a majority of either.
        (one(), one(), Vacant),
        (one(), [FREE, FREE, OPEN], Vacant),
        (one(), [FREE, SILENT, SILENT], Unclear),
    ] {
        let sights = new.into_iter().chain(old);
        assert_eq!(found(&joint(sights.clone())), expected, "{:?}", sights.collect::<Vec<_>>());
    }
}

fn sight() -> impl Strategy<Value = Option<Sight>> {
    prop_oneof![
        4 => (0..3_usize).prop_map(|hold| has(["a", "b", "c"][hold], 7, 1)),
        3 => (0..3_usize).prop_map(|at| told(["a", "b", "c"][at], 7 + at as u64)),
        3 => Just(FREE),
        1 => Just(SILENT),
        1 => Just(OPEN),
    ]
}

proptest! {
    // Whatever is still to come, and whatever the silent would have said.
    #[test]
    fn what_is_decided_stays_so(
        sights in prop_oneof![vec(sight(), 1..7), vec(sight(), 6)],
        later in vec(sight(), 7), has_two_sets: bool,
    ) {
        let has_two_sets = has_two_sets && sights.len() == 6;
        let census = |sights| if has_two_sets { joint(sights) } else { census(sights) };
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
