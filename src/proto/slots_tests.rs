use std::collections::BTreeSet;

use proptest::{
    collection::{btree_set, vec},
    prelude::*,
};

use super::*;

#[test]
fn slots_are_written_as_ranges_and_keep_their_order() {
    let slots = Slots::new([7, 8, 9, 0, 2, 3]);
    assert_eq!(slots.text(), "7-9,0-0,2-3");
    assert_eq!(Slots::parse("7-9,0-0,2-3"), Some(slots));
}

#[test]
fn what_no_script_writes_is_no_slots() {
    // The second text is a token.
    let too_many = "0-255,0-0";
    for text in ["", "1763766000123456", "5", "3-2", "-1-2", "0-10000", "1-2,", too_many] {
        assert_eq!(Slots::parse(text), None, "{text}");
    }
    assert_eq!(Slots::parse("9744-9999").unwrap().list().len(), 256);
}

proptest! {
    #[test]
    fn slots_are_read_as_they_are_written(slots in vec(0..Slots::MOST, 1..20)) {
        let slots = Slots::new(slots);
        prop_assert_eq!(Slots::parse(&slots.text()), Some(slots));
    }
}

const TEN: SlotOrder = SlotOrder { start: 8, permits: 10 };

fn slots<const N: usize>(slots: [u16; N]) -> Slots {
    Slots::new(slots)
}

fn votes(voters: usize) -> SlotVotes {
    SlotVotes::new(Quorum::of(voters), TEN)
}

fn hear<const N: usize>(votes: &mut SlotVotes, gave: impl IntoIterator<Item = (usize, [u16; N])>) {
    gave.into_iter().for_each(|(voter, gave)| votes.note_slots(voter, slots(gave)));
}

#[test]
fn what_a_majority_gave_is_fixed_and_the_others_are_elsewhere() {
    let mut votes = votes(5);
    hear(&mut votes, [(0, [9]), (1, [2]), (3, [9])]);
    assert!(!matches!(votes.clone().advance(), SlotNext::Fixed(..)), "two of five");
    hear(&mut votes, [(4, [9])]);
    let SlotNext::Fixed(fixed, who) = votes.advance() else { panic!("three of five") };
    assert_eq!((fixed, who.granting()), (slots([9]), vec![0, 3, 4]));
    assert_eq!(votes.elsewhere(&slots([9])), [1]);
}

// From 8 on, 9 comes before 0 and 2. What comes before 0 is free on at most one of the three.
#[test]
fn where_voters_differ_they_are_asked_from_the_furthest_of_the_nearest_majority() {
    let mut votes = votes(3);
    hear(&mut votes, [(0, [9]), (1, [0]), (2, [2])]);
    let next = votes.advance();
    assert_eq!(next, SlotNext::Ask { floors: slots([0]), voters: vec![0] });
    assert_eq!(votes.advance(), SlotNext::Ask { floors: slots([2]), voters: vec![0, 1] });
    assert_eq!(votes.advance(), SlotNext::Wait);
    hear(&mut votes, [(1, [2])]);
    let SlotNext::Fixed(fixed, who) = votes.advance() else { panic!("two of three") };
    assert_eq!((fixed, who.granting()), (slots([2]), vec![1, 2]));
    assert!(votes.elsewhere(&slots([2])).is_empty(), "the first has been asked to go on");
}

#[test]
fn a_slot_beyond_the_permits_is_noticed() {
    assert_eq!(votes(3).stranger(&slots([8, 9, 0])), None);
    assert_eq!(votes(3).stranger(&slots([9, 10])), Some(10));
}

#[test]
fn slots_that_others_took_meanwhile_are_no_silence() {
    let mut votes = votes(3);
    hear(&mut votes, [(0, [9]), (1, [0])]);
    assert_eq!(votes.advance(), SlotNext::Ask { floors: slots([0]), voters: vec![0, 2] });
    assert_eq!(votes.loss(), Loss::NoQuorum, "one has answered");
    votes.note_none(2, false);
    assert_eq!(votes.loss(), Loss::NoQuorum, "the other cannot be reached");
    votes.note_none(2, true);
    assert_eq!(votes.loss(), Loss::Split, "one of the two that have answered gave none");
}

#[test]
fn a_minority_that_gives_something_fixes_nothing() {
    let mut votes = votes(3);
    hear(&mut votes, [(0, [9])]);
    assert_eq!(votes.advance(), SlotNext::Apart);
    hear(&mut votes, [(1, [0])]);
    assert!(matches!(votes.advance(), SlotNext::Ask { .. }));
    votes.note_none(0, true);
    votes.note_none(2, true);
    assert_eq!(votes.advance(), SlotNext::Apart, "who has no slot left");
}

#[test]
fn the_circle_begins_at_a_slot_of_the_hold_and_has_each_slot_once() {
    let starts: BTreeSet<u16> = (0..200)
        .map(|hold| SlotOrder::of(&HoldId::parse(&format!("c:{hold}")), 10).start)
        .collect();
    assert_eq!(starts.len(), 10);
    let ways: Vec<u16> = (0..10).map(|way| TEN.at(way)).collect();
    assert_eq!(ways, [8, 9, 0, 1, 2, 3, 4, 5, 6, 7]);
    assert!((0..10).all(|slot| TEN.at(TEN.way(slot)) == slot));
}

/// The first free slots of a voter from these floors on, as `semaphore/acquire` finds them.
fn give(free: &BTreeSet<u16>, wanted: usize, floors: &[u16]) -> Option<Slots> {
    let (mut found, mut way) = (Vec::new(), 0);
    for at in 0..wanted {
        way = floors.get(at).map_or(way, |floor| way.max(TEN.way(*floor)));
        way = (way..TEN.permits).find(|way| free.contains(&TEN.at(*way)))?;
        found.push(TEN.at(way));
        way += 1;
    }
    Some(Slots::new(found))
}

/// Asks voters with these free slots, all of which answer, until something is fixed or nothing is.
fn agree(free: &[BTreeSet<u16>], wanted: usize) -> Option<Slots> {
    let mut votes = votes(free.len());
    for (voter, free) in free.iter().enumerate() {
        if let Some(slots) = give(free, wanted, &[]) {
            votes.note_slots(voter, slots);
        }
    }
    loop {
        match votes.advance() {
            SlotNext::Fixed(slots, _) => return Some(slots),
            SlotNext::Ask { floors, voters } => {
                assert!(!voters.is_empty(), "a round must lead on");
                for voter in voters {
                    match give(&free[voter], wanted, floors.list()) {
                        Some(slots) => votes.note_slots(voter, slots),
                        None => votes.note_none(voter, true),
                    }
                }
            }
            SlotNext::Wait => panic!("everybody has answered"),
            SlotNext::Apart => return None,
        }
    }
}

proptest! {
    // One slot: the first that is free on a majority is found, if there is one.
    #[test]
    fn a_slot_that_is_free_on_a_majority_is_found(
        free in proptest::collection::vec(btree_set(0..10_u16, 0..10), 3)
    ) {
        let on_a_majority =
            |slot: &u16| free.iter().filter(|free| free.contains(slot)).count() >= 2;
        let first = (0..10).map(|way| TEN.at(way)).find(on_a_majority);
        prop_assert_eq!(agree(&free, 1), first.map(|first| Slots::new([first])));
    }

    // Several slots: a majority has each of the fixed ones, once.
    #[test]
    fn what_is_fixed_is_free_on_a_majority(
        free in proptest::collection::vec(btree_set(0..10_u16, 0..10), 5), wanted in 1..4_usize
    ) {
        if let Some(fixed) = agree(&free, wanted) {
            let all: BTreeSet<u16> = fixed.list().iter().copied().collect();
            prop_assert_eq!(all.len(), wanted);
            prop_assert!(free.iter().filter(|free| free.is_superset(&all)).count() >= 3);
        }
    }

    #[test]
    fn voters_where_the_same_is_free_agree_at_once(
        free in btree_set(0..10_u16, 1..10), wanted in 1..4_usize
    ) {
        let expected = give(&free, wanted, &[]);
        prop_assert_eq!(agree(&[free.clone(), free.clone(), free], wanted), expected);
    }
}
