//! At no moment are two holds of one lock both held, unless both read, or one reads under the
//! other, of its own owner, which writes. Of a semaphore no two have the same slot, and each slot
//! is below the number of its permits: so no more are held than there are.

use crate::sim::prelude::*;

pub(crate) fn check(world: &World, look: &Look) {
    for (place, one) in look.held.iter().enumerate() {
        check_slots(world, one);
        for other in look.held[..place].iter().filter(|other| exclude_each_other(one, other)) {
            let mut ledger = locked(&world.ledger);
            let excuse = ledger.excuse_of_two(&world.plan, &one.hold, &other.hold);
            ledger.overlapped.extend([one.hold.clone(), other.hold.clone()]);
            drop(ledger);
            let what = format!("{} is held by {} and {}", one.lock.name, other.hold, one.hold);
            world.breach(Law::Exclusion, excuse, what);
        }
    }
}

fn exclude_each_other(one: &Held, other: &Held) -> bool {
    // Each task to which a hold is handed on has a token of its own.
    let handed_on = one.hold == other.hold && one.token != other.token;
    one.lock == other.lock && (handed_on || excludes(rival(one), rival(other)))
}

fn rival(held: &Held) -> Rival<'_> {
    Rival { hold: &held.hold, access: held.access, slots: &held.slots }
}

fn check_slots(world: &World, held: &Held) {
    let steps = world.plan.clients.iter().flat_map(|client| client.tasks.iter().flatten());
    let permits = steps.filter_map(|step| match step.kind {
        Kind::Permits { of, .. } => Some(of),
        _ => None,
    });
    let permits = permits.max().unwrap_or(0);
    if held.slots.iter().any(|slot| *slot >= permits) {
        let what = format!("{} has the slots {:?} of {permits}", held.hold, held.slots);
        world.breach(Law::Exclusion, None, what);
    }
}
