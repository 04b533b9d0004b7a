//! At no moment are two holds of one lock both held, unless both read, or one reads under the
//! other, of its own owner, which writes.

use super::Law;
use crate::sim::{
    locks::excludes,
    world::{Held, Look, World, locked},
};

pub(crate) fn check(world: &World, look: &Look) {
    for (place, one) in look.held.iter().enumerate() {
        for other in look.held[..place].iter().filter(|other| exclude_each_other(one, other)) {
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

fn exclude_each_other(one: &Held, other: &Held) -> bool {
    one.lock == other.lock && excludes((&one.hold, one.access), (&other.hold, other.access))
}
