//! At no moment are two holds of one lock both held, unless both read, or one reads under the
//! other, of its own owner, which writes.

use quorate::Access;

use super::Law;
use crate::sim::{
    locks::is_under,
    world::{Held, Look, World, locked},
};

pub(crate) fn check(world: &World, look: &Look) {
    for (place, one) in look.held.iter().enumerate() {
        for other in look.held[..place].iter().filter(|other| excludes(one, other)) {
            let mut ledger = locked(&world.ledger);
            let excuse = ledger.excuse_of_two(&world.plan, &one.hold, &other.hold);
            ledger.overlap(&one.hold);
            ledger.overlap(&other.hold);
            drop(ledger);
            let what = format!("{} is held by {} and {}", one.lock.name(), other.hold, one.hold);
            world.breach(Law::Exclusion, excuse, what);
        }
    }
}

fn excludes(one: &Held, other: &Held) -> bool {
    let both_read = one.access == Access::Read && other.access == Access::Read;
    let own = is_under(&one.hold, &other.hold) || is_under(&other.hold, &one.hold);
    one.lock == other.lock && !both_read && !own
}
