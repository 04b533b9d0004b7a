use super::*;
use crate::proto::{Drift, HoldId, Limit, Quarantine, Quarantined, Terms, at};

const MS: fn(u64) -> Duration = Duration::from_millis;
const NOBODY: [bool; 3] = [false; 3];

/// A lease of 10 s, a voter deadline of 100 ms, a refresh after 1 s. Voters have stored the place.
fn waiting(ticket: Option<u64>, limit: Limit) -> (Bid, Wait) {
    let rules = Rules {
        terms: Terms::new(MS(10_000), Drift { ppm: 0, fixed: Duration::ZERO }),
        minimum_validity: MS(5_000),
        voter_deadline: MS(100),
        longest_deadline: MS(100),
    };
    let mut wait = Wait::new(limit, MS(60_000), MS(1_000));
    wait.note_answer(at(4_000));
    (Bid::start(Quorum::of(3), rules, ticket.map(Ticket), &mut wait, at(0)), wait)
}

fn bid(ticket: Option<u64>) -> Bid {
    waiting(ticket, Limit::Never).0
}

fn granted(bid: &mut Bid, voter: usize, ticket: u64, ms: u64) {
    bid.heard(voter, Verdict::Granted, Some(Ticket(ticket)), at(ms));
}

fn held(bid: &mut Bid, voter: usize, ticket: u64, ttl_ms: u64, ms: u64) {
    let refused = Verdict::Refused { by: HoldId::parse("h"), ttl: Some(MS(ttl_ms)) };
    bid.heard(voter, refused, Some(Ticket(ticket)), at(ms));
}

fn unreachable(bid: &mut Bid, voter: usize, ms: u64) {
    let cause = Cause::Unreachable("refused".into());
    bid.heard(voter, Verdict::Unknown(cause), None, at(ms));
}

fn quarantined(bid: &mut Bid, voter: usize, ms: u64) {
    let quarantined = Quarantined { why: Quarantine::Restarted, left: MS(9_000) };
    bid.heard(voter, Verdict::Unknown(Cause::Quarantined(quarantined)), None, at(ms));
}

/// What a voter says.
#[derive(Clone, Copy, Debug)]
enum Said {
    Grants(usize, u64),
    /// With the ticket and what is left of the holder's lease.
    Refuses(usize, u64, u64),
    IsAway(usize),
}
use Said::{Grants, IsAway, Refuses};

type Row<'a> = (u64, &'a [Said], [bool; 3], BidNext);

/// What is next, skipping `Refused`.
fn next(bid: &mut Bid, wait: &mut Wait, now: Moment, called: &[bool]) -> BidNext {
    let next = bid.next(now, called, wait);
    if next == BidNext::Refused { bid.next(now, called, wait) } else { next }
}

/// Each row: the time in ms, the answers then, the voters that sent a wake-up, and what is next.
fn check(ticket: Option<u64>, rows: &[Row<'_>]) -> Bid {
    let (mut bid, mut wait) = waiting(ticket, Limit::Never);
    for (ms, said, called, next) in rows {
        for said in *said {
            match *said {
                Grants(voter, ticket) => granted(&mut bid, voter, ticket, *ms),
                Refuses(voter, ticket, ttl_ms) => held(&mut bid, voter, ticket, ttl_ms, *ms),
                IsAway(voter) => unreachable(&mut bid, voter, *ms),
            }
        }
        let found = self::next(&mut bid, &mut wait, at(*ms), called);
        assert_eq!(found, *next, "{said:?} at {ms}");
    }
    bid
}

fn wait(ms: u64) -> BidNext {
    BidNext::Wait(at(ms))
}

fn give_back<const N: usize>(voters: [usize; N]) -> BidNext {
    BidNext::GiveBack(voters.to_vec())
}

/// By a holder whose lease is long.
const ALL_REFUSE: &[Said] = &[Refuses(0, 4, 9_000), Refuses(1, 4, 9_000), Refuses(2, 4, 9_000)];
const TWO_REFUSE: &[Said] = &[Refuses(0, 4, 9_000), Refuses(1, 4, 9_000)];
const ONE_GRANTS: &[Said] = &[Grants(0, 4), Refuses(1, 4, 9_000), Refuses(2, 4, 9_000)];
const FIRST: [bool; 3] = [true, false, false];
const AGAIN: BidNext = BidNext::End(Some(Wake::Timer));
const CALLED: BidNext = BidNext::End(Some(Wake::Message));

#[test]
fn it_is_won_with_the_grant_that_makes_a_majority() {
    let rows =
        [(2, &[Grants(0, 1)][..], NOBODY, wait(100)), (3, &[Grants(2, 1)], NOBODY, BidNext::Won)];
    check(None, &rows);
}

#[test]
fn votes_that_make_no_majority_in_time_are_given_back_at_once_and_once() {
    // A majority that grants with too little validity left.
    let late = [
        (5_001, &[Grants(0, 1), Grants(1, 1)][..], NOBODY, give_back([0, 1, 2])),
        (5_001, &[], NOBODY, BidNext::Silent),
    ];
    check(None, &late);
    check(Some(4), &[(2, ONE_GRANTS, NOBODY, give_back([0])), (2, &[], NOBODY, wait(1_000))]);
    // Our own vote is free for the next bid, so one of the other two voters is enough.
    let soon = &[Grants(0, 4), Refuses(1, 4, 500), Refuses(2, 4, 900)];
    check(Some(4), &[(2, soon, NOBODY, give_back([0])), (2, &[], NOBODY, wait(504))]);
    // The third answer is still to come. Its vote is given back even if it comes late or never.
    let grants = (50, &[Grants(2, 4)][..], NOBODY, give_back([2]));
    check(Some(4), &[(2, TWO_REFUSE, NOBODY, wait(100)), grants]);
    let rows = [
        (2, TWO_REFUSE, NOBODY, wait(100)),
        (100, &[], NOBODY, give_back([2])),
        (100, &[], NOBODY, wait(1_000)),
    ];
    check(Some(4), &rows);
    // Voters that cannot be reached do not make bid follow bid without a pause.
    let apart = &[Grants(0, 4), IsAway(1), Refuses(2, 4, 9_000)];
    check(Some(4), &[(2, apart, NOBODY, give_back([0])), (2, &[], NOBODY, wait(1_000))]);
}

#[test]
fn what_a_majority_gave_is_known_also_where_it_does_not_count() {
    let (mut late, mut wait) = waiting(Some(4), Limit::Never);
    granted(&mut late, 0, 4, 2);
    assert!(!late.votes().are_given(), "it is under way");
    granted(&mut late, 1, 4, 5_001);
    late.next(at(5_001), &NOBODY, &mut wait);
    assert!(late.votes().are_given());

    let (mut uncounted, mut wait) = waiting(Some(4), Limit::Never);
    granted(&mut uncounted, 0, 4, 2);
    quarantined(&mut uncounted, 1, 2);
    unreachable(&mut uncounted, 2, 2);
    assert_eq!(uncounted.next(at(2), &NOBODY, &mut wait), BidNext::GiveBack(vec![0, 1]));
    assert_eq!(uncounted.next(at(2), &NOBODY, &mut wait), BidNext::Silent);
    assert!(uncounted.votes().are_given());

    let (mut minority, mut wait) = waiting(Some(4), Limit::Never);
    quarantined(&mut minority, 0, 2);
    unreachable(&mut minority, 1, 2);
    minority.next(at(100), &NOBODY, &mut wait);
    assert!(!minority.votes().are_given(), "that of the third is not known");
}

#[test]
fn a_ticket_is_fixed_where_a_majority_allows_it_and_who_differs_is_told_by_another_bid() {
    // The lowest that a majority allows. The third answer is worth a moment.
    let differ = [
        (2, &[Refuses(0, 4, 9_000), Refuses(1, 6, 9_000)][..], NOBODY, wait(4)),
        (3, &[Refuses(2, 5, 9_000)], NOBODY, AGAIN),
    ];
    assert_eq!(check(None, &differ).ticket(), Some(Ticket(5)));
    let two = &[Refuses(0, 4, 9_000), Refuses(2, 4, 9_000)][..];
    let agree = [(2, two, NOBODY, wait(100)), (5, &[Refuses(1, 9, 9_000)], NOBODY, AGAIN)];
    assert_eq!(check(None, &agree).ticket(), Some(Ticket(4)));
    // If all agree, no second round trip is needed.
    let agreed = check(None, &[(2, ALL_REFUSE, NOBODY, wait(1_000))]);
    assert_eq!(agreed.ticket(), Some(Ticket(4)));
    // The voter that granted has no entry of the place, so the next bid makes one.
    check(None, &[(2, ONE_GRANTS, NOBODY, give_back([0])), (2, &[], NOBODY, AGAIN)]);
    // A fixed ticket stays, whatever a voter says later. Without a quorum none is fixed.
    let mut fixed = bid(Some(4));
    for voter in 0..3 {
        held(&mut fixed, voter, 9, 9_000, 2);
    }
    assert_eq!(fixed.ticket(), Some(Ticket(4)));
    let away = &[Refuses(0, 4, 9_000), IsAway(1), IsAway(2)];
    assert_eq!(check(None, &[(2, away, NOBODY, BidNext::Silent)]).ticket(), None);
}

#[test]
fn calls_of_enough_voters_that_refused_bring_the_next_bid() {
    let refused: Row<'_> = (2, ALL_REFUSE, NOBODY, wait(1_000));
    let called: Row<'_> = (7, &[], FIRST, wait(12));
    let two = (8, &[][..], [true, false, true], CALLED);
    check(Some(4), &[refused.clone(), called.clone(), two]);
    // One wake-up is enough after a few milliseconds.
    let rows = [refused, called, (11, &[], FIRST, wait(12)), (12, &[], FIRST, CALLED)];
    check(Some(4), &rows);
    // A wake-up of a voter that did not refuse is none; but with that voter two are a majority.
    let rows = [
        (2, ONE_GRANTS, NOBODY, give_back([0])),
        (3, &[], FIRST, wait(1_000)),
        (3, &[], [true, true, false], CALLED),
    ];
    check(Some(4), &rows);
}

#[test]
fn it_comes_back_when_a_majority_of_the_obstacles_has_ended_or_to_tell_its_place() {
    let ends = &[Refuses(0, 4, 300), Refuses(1, 4, 500), Refuses(2, 4, 9_000)];
    check(Some(4), &[(2, ends, NOBODY, wait(504)), (504, &[], NOBODY, AGAIN)]);
    let rows = [
        (2, ALL_REFUSE, NOBODY, wait(1_000)),
        (999, &[], NOBODY, wait(1_000)),
        (1_000, &[], NOBODY, AGAIN),
    ];
    check(Some(4), &rows);
}

#[test]
fn nothing_is_owed_to_whoever_refused_or_was_not_reached() {
    let mut bid = bid(Some(4));
    held(&mut bid, 0, 4, 9_000, 2);
    unreachable(&mut bid, 1, 2);
    assert_eq!([0, 1, 2].map(|voter| bid.owes(voter)), [false, false, true]);
    bid.heard(2, Verdict::Unknown(Cause::Broken("cut".into())), None, at(3));
    assert!(bid.owes(2), "it may have run");
}

#[test]
fn it_is_refused_only_once_a_majority_has_answered() {
    let (mut refused, mut wait) = waiting(Some(4), Limit::Never);
    held(&mut refused, 0, 4, 9_000, 2);
    unreachable(&mut refused, 1, 2);
    refused.next(at(2), &NOBODY, &mut wait);
    assert!(!refused.is_refused(), "the third may be as silent as the second");
    held(&mut refused, 2, 4, 9_000, 3);
    assert_eq!(refused.next(at(3), &NOBODY, &mut wait), BidNext::Refused);
    assert!(refused.is_refused());
    assert_eq!(refused.next(at(3), &NOBODY, &mut wait), self::wait(1_000), "it is said once");

    let (mut too_late, mut wait) = waiting(Some(4), Limit::Never);
    for voter in 0..2 {
        granted(&mut too_late, voter, 4, 5_001);
    }
    too_late.next(at(5_001), &NOBODY, &mut wait);
    assert!(!too_late.is_refused());
}

fn tickets(said: [Option<(u64, bool)>; 3]) -> Bid {
    let mut bid = bid(None);
    for (voter, said) in said.into_iter().enumerate() {
        match said {
            Some((ticket, true)) => held(&mut bid, voter, ticket, 9_000, 1),
            Some((ticket, false)) => granted(&mut bid, voter, ticket, 1),
            None => {}
        }
    }
    bid
}

// Every later caller has a higher ticket from one voter of the majority. A voter with another
// ticket, or without the place, must hear of this one.
#[test]
fn the_highest_of_the_lowest_majority_is_fixed_whatever_the_others_say() {
    let said = |ticket| Some((ticket, true));
    for (voters, fixed, stands, agree) in [
        ([said(7), None, said(3)], 7, false, false),
        ([said(7), said(5), said(3)], 5, false, false),
        ([said(4), said(1), said(4)], 4, true, false),
        ([said(4), said(9), said(4)], 4, true, false),
        ([said(3), said(3), None], 3, true, true),
        ([said(3), Some((3, false)), None], 3, false, false),
    ] {
        let (bid, fixed) = (tickets(voters), Ticket(fixed));
        assert_eq!(bid.ticket(), Some(fixed), "{voters:?}");
        let known = (bid.stands_at(fixed), bid.all_agree_on(fixed));
        assert_eq!(known, (stands, agree), "{voters:?}");
    }
    assert_eq!(tickets([said(7), None, None]).ticket(), None, "a minority fixes nothing");
}

#[test]
fn who_was_refused_waits_until_the_limit_or_until_calls_may_be_lost() {
    let (mut bid, mut wait) = waiting(Some(4), Limit::Until(at(300)));
    for voter in 0..3 {
        held(&mut bid, voter, 4, 9_000, 2);
    }
    assert_eq!(next(&mut bid, &mut wait, at(2), &NOBODY), self::wait(300));
    wait.miss_wakeups(at(10), 0);
    assert_eq!(bid.next(at(10), &NOBODY, &mut wait), self::wait(11));
    assert_eq!(bid.next(at(11), &NOBODY, &mut wait), BidNext::End(Some(Wake::MaybeMissed)));
    assert_eq!(bid.next(at(300), &NOBODY, &mut wait), BidNext::End(None));
}

#[test]
fn a_place_that_does_not_lead_to_the_lock_is_left_where_something_was_sent() {
    let silent = |wait: &mut Wait, ms: u64, granted_in_vain: bool| {
        let rules = bid(None).rules;
        let mut bid = Bid::start(Quorum::of(3), rules, Some(Ticket(4)), wait, at(ms));
        for voter in 0..3 {
            match voter {
                0 | 1 if granted_in_vain => quarantined(&mut bid, voter, ms),
                _ => unreachable(&mut bid, voter, ms),
            }
        }
        match bid.next(at(ms), &NOBODY, wait) {
            BidNext::GiveBack(_) => bid.next(at(ms), &NOBODY, wait),
            next => next,
        }
    };
    let everywhere = || BidNext::Leave(vec![0, 1, 2]);
    // Voters keep the place for three refreshes.
    let (_, mut wait) = waiting(None, Limit::Never);
    assert_eq!(silent(&mut wait, 6_999, false), BidNext::Silent);
    assert_eq!(silent(&mut wait, 7_000, false), everywhere());
    // From a place that no majority has stored.
    assert_eq!(silent(&mut wait, 7_001, false), BidNext::Leave(Vec::new()));
    assert_eq!(silent(&mut wait, 7_002, true), BidNext::Leave(vec![0, 1]));
    // A majority gave its votes twice, and they did not count.
    let (_, mut wait) = waiting(None, Limit::Never);
    assert_eq!(silent(&mut wait, 10, true), BidNext::Silent);
    assert_eq!(silent(&mut wait, 20, false), BidNext::Silent, "it is not in vain each time");
    assert_eq!(silent(&mut wait, 30, true), BidNext::Silent);
    assert_eq!(silent(&mut wait, 40, true), everywhere());
}
