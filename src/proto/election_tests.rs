use proptest::{collection::vec, prelude::*};

use super::*;
use crate::proto::at;

fn said(version: u64, token: Option<u64>, value: &[u8]) -> Proclaimed {
    let (token, value) = (token.and_then(Token::new), LeaderValue::new(value).unwrap());
    Proclaimed { version, token, value }
}

#[test]
fn the_record_of_a_leader_is_pinned() {
    assert_eq!(said(1, None, b"10.0.0.1:80").to_text(), "1 - =10.0.0.1:80");
    assert_eq!(said(3, Some(7), "né à 9 h".as_bytes()).to_text(), "3 7 =né à 9 h");
    assert_eq!(said(2, Some(7), b"\xff\0").to_text(), "2 7 #ff00");
    assert_eq!(said(2, None, b"").to_text(), "2 - =");
}

#[test]
fn what_no_leader_has_written_is_none() {
    for text in ["", "1", "1 -", "1 - ", "1 - x", "x - =", "1 0 =", "1 - #f", "1 - #fg", "1 - é"] {
        assert_eq!(Proclaimed::parse(text), None, "{text:?}");
    }
}

#[test]
fn a_value_has_4096_bytes_at_most() {
    assert!(LeaderValue::new(&[0; 4096]).is_ok());
    let error = LeaderValue::new(&[0; 4097]).unwrap_err();
    assert!(error.is_invalid());
    let told = "the value of a leader has 4097 bytes: 4096 are the most";
    assert_eq!(error.to_string(), told);
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        version in 1..u64::MAX,
        token in proptest::option::of(1..=Token::MOST),
        bytes in vec(any::<u8>(), 0..40),
        text in ".{0,20}",
    ) {
        for value in [&bytes[..], text.as_bytes()] {
            let said = said(version, token, value);
            prop_assert_eq!(Proclaimed::parse(&said.to_text()), Some(said));
        }
    }
}

const MS: fn(u64) -> Duration = Duration::from_millis;

/// A voter that has given its vote to `hold`, and does not know whether it has won.
fn has(hold: &str) -> Option<Sight> {
    says(hold, 1, None)
}

#[expect(clippy::unnecessary_wraps, reason = "what has not come yet is none")]
fn says(hold: &str, version: u64, token: Option<u64>) -> Option<Sight> {
    let value = LeaderValue::new(format!("{hold} {version}").as_bytes()).unwrap();
    let said = Proclaimed { version, token: token.and_then(Token::new), value };
    let (hold, left) = (HoldId::parse(hold), Some(MS(5)));
    Some(Ok(Some(Incumbent { hold, left, said })))
}

/// A leader that has written its token.
fn told(hold: &str, token: u64) -> Option<Sight> {
    says(hold, 2, Some(token))
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
    /// Open answers may change it.
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
    let (a, b) = (|| has("a"), || has("b"));
    let told = || told("a", 7);
    for (sights, expected) in [
        (vec![told(), told(), OPEN], Led(7, 2)),
        (vec![told(), SILENT, told()], Led(7, 2)),
        (vec![told(), FREE, OPEN], Awaited),
        (vec![told()], Led(7, 2)),
        // Half of four is no majority.
        (vec![a(), b(), a(), b()], Vacant),
        // The latest entry applies, which at least one voter of a majority has.
        (vec![a(), says("a", 3, Some(7)), told(), OPEN, OPEN], Led(7, 3)),
        (vec![FREE, FREE, OPEN], Vacant),
        (vec![FREE, FREE, SILENT], Vacant),
        (vec![a(), FREE, FREE], Vacant),
        (vec![a(), b(), FREE], Vacant),
        // The silent voter may have voted for it.
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
    let mut census = census([has("a"), OPEN, OPEN]);
    census.close(MS(200));
    assert_eq!(census.decide(), Some(WhoLeads::Unclear));
    let late = Verdict::Unknown(Cause::TimedOut(MS(200)));
    let named = Verdict::Refused { by: HoldId::parse("a"), ttl: Some(MS(5)) };
    assert_eq!(census.verdicts(), [named, late.clone(), late]);
}

#[test]
fn whom_a_majority_names_leads_once_any_voter_knows_its_token() {
    use Found::{Awaited, Led, Unclear};
    let a = || has("a");
    for (sights, expected, awaits_winner) in [
        ([a(), a(), a()], Unclear, true),
        ([a(), a(), FREE], Unclear, true),
        ([a(), a(), OPEN], Awaited, true),
        ([a(), a(), SILENT], Unclear, true),
        ([told("a", 10), a(), SILENT], Led(10, 2), false),
        ([told("a", 10), a(), OPEN], Led(10, 2), false),
        // The entry of another hold does not matter.
        ([a(), a(), told("b", 10)], Unclear, true),
        // A hold that too few voters name is not waited for.
        ([a(), FREE, OPEN], Awaited, false),
        ([a(), FREE, SILENT], Unclear, false),
    ] {
        let census = census(sights.clone());
        assert_eq!(
            (found(&census), census.awaits_winner()),
            (expected, awaits_winner),
            "{sights:?}"
        );
    }
}

#[test]
fn of_two_sets_of_voters_a_leader_may_have_one_alone_and_its_token_shows_it() {
    use Found::{Awaited, Led, Unclear, Vacant};
    let free = || [FREE, FREE, FREE];
    let led = |hold, token, third| [told(hold, token), told(hold, token), third];
    // A candidate that still asks the other set has the same entry as a leader without a token.
    let asks = |hold, third| [has(hold), has(hold), third];
    let one = || [has("a"), FREE, FREE];
    for (new, old, expected) in [
        (free(), led("a", 7, FREE), Led(7, 2)),
        ([FREE, FREE, SILENT], led("a", 7, SILENT), Led(7, 2)),
        // The other voters may name another hold.
        (free(), led("a", 7, OPEN), Awaited),
        ([FREE, SILENT, SILENT], led("a", 7, FREE), Unclear),
        (free(), asks("a", FREE), Unclear),
        (asks("a", FREE), asks("a", FREE), Unclear),
        (led("a", 7, FREE), asks("a", FREE), Led(7, 2)),
        // Of two holds with one set each, the one with the lower token has resigned or lost there.
        (led("a", 7, SILENT), led("b", 8, SILENT), Led(8, 2)),
        (led("b", 8, SILENT), led("a", 7, SILENT), Led(8, 2)),
        // A hold without a token may lead already.
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
        4 => (0..3_usize).prop_map(|hold| has(["a", "b", "c"][hold])),
        3 => (0..3_usize).prop_map(|at| told(["a", "b", "c"][at], 7 + at as u64)),
        3 => Just(FREE),
        1 => Just(SILENT),
        1 => Just(OPEN),
    ]
}

proptest! {
    // Whatever is still to come, and whatever the silent voters would have answered.
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

fn watch() -> LeaderWatch {
    let mut watch = LeaderWatch::start(Quorum::of(3), MS(2_000), at(0));
    assert_eq!(watch.next(at(0), &[false; 3]), WatchNext::Ask);
    watch.ask(at(0));
    watch
}

fn led(hold: &str, version: u64, value: &str) -> WhoLeads {
    let value = LeaderValue::new(value.as_bytes()).unwrap();
    let leader = Leader::new(HoldId::parse(hold), Token::new(7).unwrap(), value);
    WhoLeads::Led { leader, version }
}

#[test]
fn without_a_call_it_asks_by_the_poll_interval() {
    let mut watch = watch();
    assert_eq!(watch.next(at(1), &[false; 3]), WatchNext::Wait(at(2_000)));
    assert_eq!(watch.next(at(2_000), &[false; 3]), WatchNext::Ask);
}

#[test]
fn it_asks_when_a_majority_has_called_or_soon_after_the_first() {
    let mut watch = watch();
    let one = [true, false, false];
    assert_eq!(watch.next(at(10), &one), WatchNext::Wait(at(15)));
    assert_eq!(watch.next(at(12), &one), WatchNext::Wait(at(15)), "from the first call");
    assert_eq!(watch.next(at(12), &[true, false, true]), WatchNext::Ask);
    assert_eq!(watch.next(at(15), &one), WatchNext::Ask);
    watch.ask(at(15));
    assert_eq!(watch.next(at(16), &[false; 3]), WatchNext::Wait(at(2_015)));
    assert_eq!(watch.next(at(16), &one), WatchNext::Wait(at(21)), "called while it asked");
}

#[test]
fn it_asks_when_it_is_heard_and_after_a_loss_with_pauses_that_grow() {
    let mut watch = watch();
    watch.hears(at(3));
    assert_eq!(watch.next(at(3), &[false; 3]), WatchNext::Ask);
    for pause in [1, 2, 4] {
        watch.ask(at(10));
        watch.miss(at(10), 0);
        watch.miss(at(10), 0);
        assert_eq!(watch.next(at(10), &[false; 3]), WatchNext::Wait(at(10 + pause)));
    }
    watch.ask(at(10));
    watch.ask(at(2_010));
    watch.miss(at(2_020), 0);
    let again = WatchNext::Wait(at(2_021));
    assert_eq!(watch.next(at(2_020), &[false; 3]), again, "nothing was lost meanwhile");
}

#[test]
fn what_is_known_is_told_once_and_a_value_never_goes_back() {
    let mut watch = watch();
    let mut tells = |finding: WhoLeads| watch.note_result(finding.clone()) == Some(finding);
    assert!(tells(WhoLeads::Vacant) && !tells(WhoLeads::Vacant));
    assert!(tells(led("a", 1, "x")) && !tells(led("a", 1, "x")));
    assert!(!tells(led("a", 2, "x")), "a renewal says the same");
    assert!(tells(led("a", 3, "y")) && !tells(led("a", 1, "x")));
    assert!(tells(WhoLeads::Unclear));
    let after = watch.note_result(led("a", 1, "x"));
    assert_eq!(after, Some(led("a", 3, "y")), "also after a silence");
    assert_eq!(watch.note_result(led("b", 1, "x")), Some(led("b", 1, "x")));
}
