//! At no moment are two holds of one lock both held.

use super::Law;
use crate::world::{Look, World, locked};

pub(crate) fn check(world: &World, look: &Look) {
    for (place, one) in look.held.iter().enumerate() {
        for other in look.held[..place].iter().filter(|other| other.lock == one.lock) {
            let mut ledger = locked(&world.ledger);
            let excuse = ledger.excuse(&one.hold).or_else(|| ledger.excuse(&other.hold));
            ledger.overlap(&one.hold);
            ledger.overlap(&other.hold);
            drop(ledger);
            let what = format!("lock {} is held by {} and {}", one.lock, other.hold, one.hold);
            world.breach(Law::Exclusion, excuse, what);
        }
    }
}
