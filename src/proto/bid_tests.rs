use super::*;
use crate::proto::{Drift, HoldId, Quarantine, Quarantined, Terms};

const MS: fn(u64) -> Duration = Duration::from_millis;
const NOBODY: [bool; 3] = [false; 3];

fn at(ms: u64) -> Moment {
    Moment::BEGINNING + MS(ms)
}

/// A lease of 10 s, voters that have 100 ms, a refresh after 1 s.
fn bid(ticket: Option<u64>) -> Bid {
    let rules = Rules {
        terms: Terms::new(MS(10_000), Drift { ppm: 0, fixed: Duration::ZERO }),
        minimum_validity: MS(5_000),
        voter_deadline: MS(100),
        longest_deadline: MS(100),
    };
    let until = Until { refresh: MS(1_000), limit: None };
    Bid::start(Quorum::of(3), rules, ticket.map(Ticket), until, at(0))
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

/// Refused by all three within 2 ms, with ticket 4, by a holder whose lease is long.
fn waiting() -> Bid {
    let mut bid = bid(Some(4));
    for voter in 0..3 {
        held(&mut bid, voter, 4, 9_000, 2);
    }
    bid
}

#[test]
fn it_is_won_with_the_grant_that_makes_a_majority() {
    let mut bid = bid(None);
    granted(&mut bid, 0, 1, 2);
    assert_eq!(bid.next(at(2), &NOBODY), BidNext::Wait(at(100)));
    granted(&mut bid, 2, 1, 3);
    assert_eq!(bid.next(at(3), &NOBODY), BidNext::Won);
}

#[test]
fn a_majority_that_comes_with_too_little_left_is_given_back() {
    let mut bid = bid(None);
    for voter in 0..2 {
        granted(&mut bid, voter, 1, 5_001);
    }
    assert_eq!(bid.next(at(5_001), &NOBODY), BidNext::GiveBack(vec![0, 1, 2]));
    assert_eq!(bid.next(at(5_001), &NOBODY), BidNext::Silent);
}

fn quarantined(bid: &mut Bid, voter: usize, ms: u64) {
    let quarantined = Quarantined { why: Quarantine::Restarted, left: MS(9_000) };
    bid.heard(voter, Verdict::Unknown(Cause::Quarantined(quarantined)), None, at(ms));
}

#[test]
fn what_a_majority_gave_is_known_also_where_it_does_not_count() {
    let mut late = bid(Some(4));
    granted(&mut late, 0, 4, 2);
    assert!(!late.votes().are_given(), "it is under way");
    granted(&mut late, 1, 4, 5_001);
    late.next(at(5_001), &NOBODY);
    assert!(late.votes().are_given());

    let mut uncounted = bid(Some(4));
    granted(&mut uncounted, 0, 4, 2);
    quarantined(&mut uncounted, 1, 2);
    unreachable(&mut uncounted, 2, 2);
    assert_eq!(uncounted.next(at(2), &NOBODY), BidNext::GiveBack(vec![0, 1]));
    assert_eq!(uncounted.next(at(2), &NOBODY), BidNext::Silent);
    assert!(uncounted.votes().are_given());

    let mut minority = bid(Some(4));
    quarantined(&mut minority, 0, 2);
    unreachable(&mut minority, 1, 2);
    minority.next(at(100), &NOBODY);
    assert!(!minority.votes().are_given(), "that of the third is not known");
}

#[test]
fn a_minority_is_given_back_at_once_and_once() {
    let mut bid = bid(Some(4));
    granted(&mut bid, 0, 4, 2);
    held(&mut bid, 1, 4, 9_000, 2);
    held(&mut bid, 2, 4, 9_000, 2);
    assert_eq!(bid.next(at(2), &NOBODY), BidNext::GiveBack(vec![0]));
    assert_eq!(bid.next(at(2), &NOBODY), BidNext::Wait(at(1_000)));
}

/// Besides it one of the other two is enough.
#[test]
fn a_vote_that_was_given_back_is_free_for_the_next_bid() {
    let mut bid = bid(Some(4));
    granted(&mut bid, 0, 4, 2);
    held(&mut bid, 1, 4, 500, 2);
    held(&mut bid, 2, 4, 900, 2);
    assert_eq!(bid.next(at(2), &NOBODY), BidNext::GiveBack(vec![0]));
    assert_eq!(bid.next(at(2), &NOBODY), BidNext::Wait(at(504)));
}

#[test]
fn a_late_grant_is_given_back_and_so_is_what_stays_unknown() {
    let mut bid = bid(Some(4));
    held(&mut bid, 0, 4, 9_000, 2);
    held(&mut bid, 1, 4, 9_000, 2);
    assert_eq!(bid.next(at(2), &NOBODY), BidNext::Wait(at(100)), "the third is still to come");
    granted(&mut bid, 2, 4, 50);
    assert_eq!(bid.next(at(50), &NOBODY), BidNext::GiveBack(vec![2]));

    let mut bid = self::bid(Some(4));
    held(&mut bid, 0, 4, 9_000, 2);
    held(&mut bid, 1, 4, 9_000, 2);
    bid.next(at(2), &NOBODY);
    assert_eq!(bid.next(at(100), &NOBODY), BidNext::GiveBack(vec![2]));
    assert_eq!(bid.next(at(100), &NOBODY), BidNext::Wait(at(1_000)));
}

#[test]
fn different_tickets_are_fixed_at_the_lowest_that_a_majority_allows_by_another_bid_at_once() {
    let mut bid = bid(None);
    held(&mut bid, 0, 4, 9_000, 2);
    held(&mut bid, 1, 6, 9_000, 2);
    assert_eq!(bid.next(at(2), &NOBODY), BidNext::Wait(at(4)), "the third is worth a moment");
    held(&mut bid, 2, 5, 9_000, 3);
    assert_eq!(bid.next(at(3), &NOBODY), BidNext::Again);
    assert_eq!(bid.ticket(), Some(Ticket(5)));
}

#[test]
fn a_majority_with_one_ticket_needs_nobody_else() {
    let mut bid = bid(None);
    held(&mut bid, 0, 4, 9_000, 2);
    held(&mut bid, 2, 4, 9_000, 2);
    assert_eq!(bid.next(at(2), &NOBODY), BidNext::Wait(at(100)));
    held(&mut bid, 1, 9, 9_000, 5);
    assert_eq!(bid.next(at(5), &NOBODY), BidNext::Again, "the one that differs is told");
    assert_eq!(bid.ticket(), Some(Ticket(4)));
}

#[test]
fn a_ticket_that_all_agree_on_needs_no_second_trip() {
    let mut bid = bid(None);
    for voter in 0..3 {
        held(&mut bid, voter, 4, 9_000, 2);
    }
    assert_eq!(bid.next(at(2), &NOBODY), BidNext::Wait(at(1_000)));
    assert_eq!(bid.ticket(), Some(Ticket(4)));
}

#[test]
fn a_grant_without_an_entry_is_told_the_place() {
    let mut bid = bid(None);
    granted(&mut bid, 0, 1, 2);
    held(&mut bid, 1, 1, 9_000, 2);
    held(&mut bid, 2, 1, 9_000, 2);
    assert_eq!(bid.next(at(2), &NOBODY), BidNext::GiveBack(vec![0]));
    assert_eq!(bid.next(at(2), &NOBODY), BidNext::Again);
}

#[test]
fn a_fixed_ticket_stays_whatever_a_voter_says_later() {
    let mut bid = bid(Some(4));
    for voter in 0..3 {
        held(&mut bid, voter, 9, 9_000, 2);
    }
    assert_eq!(bid.ticket(), Some(Ticket(4)));
}

#[test]
fn calls_of_enough_voters_that_refused_bring_the_next_bid() {
    let mut bid = waiting();
    assert_eq!(bid.next(at(2), &NOBODY), BidNext::Wait(at(1_000)));
    assert_eq!(bid.next(at(7), &[true, false, false]), BidNext::Wait(at(12)));
    assert_eq!(bid.next(at(8), &[true, false, true]), BidNext::Again);
}

#[test]
fn one_call_is_enough_after_a_few_milliseconds() {
    let mut bid = waiting();
    bid.next(at(7), &[true, false, false]);
    assert_eq!(bid.next(at(11), &[true, false, false]), BidNext::Wait(at(12)));
    assert_eq!(bid.next(at(12), &[true, false, false]), BidNext::Again);
}

#[test]
fn calls_of_voters_that_did_not_refuse_count_for_nothing() {
    let mut bid = bid(Some(4));
    granted(&mut bid, 0, 4, 2);
    held(&mut bid, 1, 4, 9_000, 2);
    held(&mut bid, 2, 4, 9_000, 2);
    bid.next(at(2), &NOBODY);
    assert_eq!(bid.next(at(3), &[true, false, false]), BidNext::Wait(at(1_000)));
    assert_eq!(bid.next(at(3), &[true, true, false]), BidNext::Again, "two make a majority");
}

#[test]
fn it_comes_back_when_a_majority_of_the_obstacles_has_ended() {
    let mut bid = bid(Some(4));
    held(&mut bid, 0, 4, 300, 2);
    held(&mut bid, 1, 4, 500, 2);
    held(&mut bid, 2, 4, 9_000, 2);
    assert_eq!(bid.next(at(2), &NOBODY), BidNext::Wait(at(504)));
    assert_eq!(bid.next(at(504), &NOBODY), BidNext::Again);
}

#[test]
fn voters_that_cannot_be_reached_do_not_make_it_ask_in_a_circle() {
    let mut bid = bid(Some(4));
    granted(&mut bid, 0, 4, 2);
    unreachable(&mut bid, 1, 2);
    held(&mut bid, 2, 4, 9_000, 2);
    assert_eq!(bid.next(at(2), &NOBODY), BidNext::GiveBack(vec![0]));
    assert_eq!(bid.next(at(2), &NOBODY), BidNext::Wait(at(1_000)));
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
fn without_a_quorum_no_ticket_is_fixed() {
    let mut bid = bid(None);
    held(&mut bid, 0, 4, 9_000, 2);
    unreachable(&mut bid, 1, 2);
    unreachable(&mut bid, 2, 2);
    assert_eq!(bid.next(at(2), &NOBODY), BidNext::Silent);
    assert_eq!(bid.ticket(), None);
}

#[test]
fn the_place_is_refreshed_although_nothing_happens() {
    let mut bid = waiting();
    assert_eq!(bid.next(at(999), &NOBODY), BidNext::Wait(at(1_000)));
    assert_eq!(bid.next(at(1_000), &NOBODY), BidNext::Again);
}

#[test]
fn it_is_refused_only_once_a_majority_has_answered() {
    let mut refused = bid(Some(4));
    held(&mut refused, 0, 4, 9_000, 2);
    unreachable(&mut refused, 1, 2);
    refused.next(at(2), &NOBODY);
    assert!(!refused.is_refused(), "the third may be as silent as the second");
    held(&mut refused, 2, 4, 9_000, 3);
    refused.next(at(3), &NOBODY);
    assert!(refused.is_refused());

    let mut too_late = bid(Some(4));
    for voter in 0..2 {
        granted(&mut too_late, voter, 4, 5_001);
    }
    too_late.next(at(5_001), &NOBODY);
    assert!(!too_late.is_refused());
}
