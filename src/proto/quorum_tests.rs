use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// Voters that are only new, in both sets, and only old.
fn any_sets(most: usize) -> impl Strategy<Value = (usize, usize, usize)> {
    (0..=most, 0..=most, 0..=most)
        .prop_filter("a set has a voter", |(new, both, old)| new + both > 0 && both + old > 0)
}

fn quorum((only_new, both, only_old): (usize, usize, usize)) -> Quorum {
    Quorum::joint(only_new, both, only_old)
}

/// The voters whose bits are set in a number.
fn has(choice: u32) -> impl Fn(usize) -> bool + Copy {
    move |voter| choice >> voter & 1 == 1
}

/// A majority of this part of the list, counted by hand.
fn is_majority(set: std::ops::Range<usize>, by: impl Fn(usize) -> bool) -> bool {
    let (all, yes) = (set.len(), set.filter(|voter| by(*voter)).count());
    2 * yes > all
}

fn new_of((only_new, both, _): (usize, usize, usize)) -> std::ops::Range<usize> {
    0..only_new + both
}

fn old_of((only_new, both, only_old): (usize, usize, usize)) -> std::ops::Range<usize> {
    only_new..only_new + both + only_old
}

#[test]
fn two_majorities_always_share_a_voter() {
    for voters in 1..=64 {
        let (needed, spare, quorum) = (needed(voters), spare(voters), Quorum::of(voters));
        // And no larger than that takes: one fewer would not.
        assert!(2 * needed > voters && 2 * (needed - 1) <= voters, "{voters}");
        assert_eq!(needed + spare, voters);
        assert_eq!([quorum.fewest(), quorum.enough()], [needed; 2], "there is one number");
        assert_eq!((quorum.least(), quorum.side(0)), (spare + 1, None));
    }
}

/// Every size of sets up to four voters each, and every choice of voters.
#[test]
fn what_has_both_majorities_meets_each_majority_of_the_old_set_and_of_the_new_one() {
    for sets in (0..5_usize).flat_map(|a| (0..5).flat_map(move |b| (0..5).map(move |c| (a, b, c))))
    {
        let (new, old) = (new_of(sets), old_of(sets));
        if new.is_empty() || old.is_empty() {
            continue;
        }
        let quorum = quorum(sets);
        let (mut fewest, mut enough, mut least) = (usize::MAX, 0, usize::MAX);
        for choice in 0..1_u32 << quorum.voters() {
            let (by, size) = (has(choice), choice.count_ones() as usize);
            let each = [new.clone(), old.clone()].map(|set| is_majority(set, by));
            assert_eq!(quorum.reached(by), each == [true; 2], "{sets:?} {choice:b}");
            assert_eq!(quorum.reached_in_one(by), each.contains(&true), "{sets:?} {choice:b}");
            // Whether the voters that are left can still be a majority of each set.
            let rest = quorum.reached(|voter| !by(voter));
            assert_eq!(quorum.missed(by), !rest, "{sets:?} {choice:b}");
            if quorum.reached(by) {
                fewest = fewest.min(size);
            } else {
                enough = enough.max(size + 1);
            }
            if quorum.missed(by) {
                least = least.min(size);
            }
        }
        let numbers = (quorum.fewest(), quorum.enough(), quorum.least());
        assert_eq!(numbers, (fewest, enough, least), "{sets:?}");
    }
}

proptest! {
    #[test]
    fn sides_tell_the_sets(sets in any_sets(5)) {
        let quorum = quorum(sets);
        let sides = (0..quorum.voters()).map(|voter| quorum.side(voter));
        prop_assert_eq!(Quorum::of_sides(sides), quorum);
        let each: Vec<_> = quorum.each().collect();
        prop_assert_eq!(each, [(Some(Side::New), new_of(sets)), (Some(Side::Old), old_of(sets))]);
        let one = Quorum::of(quorum.voters());
        prop_assert_eq!(Quorum::of_sides((0..one.voters()).map(|_| None)), one);
    }

    /// The lowest maximum of all choices of voters that are a majority of each set.
    #[test]
    fn the_lowest_is_that_of_the_best_choice(
        sets in any_sets(3),
        values in prop::collection::vec(prop::option::weighted(0.8, 0..6_u8), 9),
    ) {
        let quorum = quorum(sets);
        let choices = (0..1_u32 << quorum.voters()).filter(|choice| quorum.reached(has(*choice)));
        let highest = |choice: u32| {
            let chosen = (0..quorum.voters()).filter(|voter| has(choice)(*voter));
            chosen.map(|voter| values[voter]).try_fold(0, |most, value| Some(value?.max(most)))
        };
        let best = choices.filter_map(highest).min();
        prop_assert_eq!(quorum.lowest(|voter| values[voter]), best);
        // If a majority of each set says the same, that is it, whatever the others say.
        for value in values.iter().flatten().collect::<BTreeSet<_>>() {
            if quorum.reached(|voter| values[voter] == Some(*value)) {
                prop_assert_eq!(best, Some(*value));
            }
        }
    }
}
