//! Where the mark of a server is: in one of its own slots.

use std::sync::Arc;

use super::{
    map::Map,
    seat::{SLOTS, led_into},
};

/// The key of the mark for the server that leads this shard; nothing where that has no slots, and
/// so nothing that it could have forgotten.
pub(super) fn mark_of(shard: usize, map: &Map, key: &str) -> Option<Arc<str>> {
    led_into(chosen(map.slots(shard))?, key)
}

/// The one of these slots that comes first in an order of all. All clients choose the same, and it
/// stays the same for as long as it is among them, whatever other slots come and go.
fn chosen(slots: impl Iterator<Item = u16>) -> Option<u16> {
    slots.min_by_key(|slot| rank(*slot))
}

/// An order without sense, but that in up to twelve equal parts of a cluster the first is not near
/// the ends, from where slots are taken when the cluster grows.
fn rank(slot: u16) -> u32 {
    let (factor, summand) = (15_689, 5_958);
    (u32::from(slot) * factor + summand) % u32::from(SLOTS)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, ops::Range};

    use proptest::prelude::*;

    use super::*;
    use crate::{
        keys::Prefix,
        voter::cluster::{
            map::tests::{map_of, server},
            seat::slot_of,
        },
    };

    /// The slots of a server of so many, as `redis-cli --cluster create` deals them out.
    fn part(at: u32, servers: u32) -> Range<u16> {
        let start = |at: u32| (2 * at * u32::from(SLOTS) + servers) / (2 * servers);
        let start = |at| u16::try_from(start(at)).expect("a slot");
        start(at)..start(at + 1)
    }

    fn slots() -> impl Strategy<Value = BTreeSet<u16>> {
        proptest::collection::btree_set(0..SLOTS, 1..200)
    }

    #[test]
    fn every_slot_has_a_rank_of_its_own() {
        let ranks: BTreeSet<u32> = (0..SLOTS).map(rank).collect();
        assert_eq!(ranks.len(), usize::from(SLOTS));
    }

    #[test]
    fn it_stays_when_a_sixteenth_is_taken_from_either_end() {
        for servers in 1..=12 {
            for part in (0..servers).map(|at| part(at, servers)) {
                let taken = u16::try_from(part.len() / 16).expect("few");
                let left = part.start + taken..part.end - taken;
                assert_eq!(chosen(part), chosen(left), "one of {servers}");
            }
        }
    }

    #[test]
    fn a_shard_without_slots_has_none() {
        let map = map_of(&[server("a", true, &[]), server("b", true, &[3..=3])]);
        assert_eq!(mark_of(0, &map, "quorate:{%voter}"), None);
        assert!(mark_of(1, &map, "quorate:{%voter}").is_some());
    }

    proptest! {
        #[test]
        fn the_slot_of_a_mark_is_one_of_the_servers(own in slots()) {
            let ranges: Vec<_> = own.iter().map(|slot| *slot..=*slot).collect();
            let others = (0..SLOTS).filter(|slot| !own.contains(slot));
            let others: Vec<_> = others.map(|slot| slot..=slot).collect();
            let servers = [server("a", true, &others), server("b", true, &ranges)];
            let mark = mark_of(1, &map_of(&servers), &Prefix::default().mark());
            let mark = mark.expect("it has slots");
            prop_assert!(own.contains(&slot_of(&mark)), "{}", mark);
        }

        #[test]
        fn it_stays_until_it_is_taken_itself(mut own in slots(), other in 0..SLOTS) {
            let before = chosen(own.iter().copied());
            if own.remove(&other) {
                let after = chosen(own.iter().copied());
                prop_assert!(before == Some(other) || before == after);
            } else {
                own.insert(other);
                let after = chosen(own.iter().copied());
                prop_assert!(after == before || after == Some(other));
            }
        }
    }
}
