//! Where nothing goes wrong, or only at a minority of the voters, nothing fails.

use crate::sim::prelude::*;

/// Somebody was told of a failure.
pub(crate) fn failed(world: &World, client: usize, what: &str, error: &Error, hold: Option<&str>) {
    if world.plan.mood == Mood::Chaos || error.is_closed() {
        return;
    }
    // To look is to note what has just been lost.
    drop(world.held());
    let ledger = locked(&world.ledger);
    let lost_before = error.is_lost() && ledger.has_lost(client);
    let excuse = match hold {
        Some(hold) => ledger.excuse_of_loss(hold),
        None => lost_before.then_some("its owner had lost it before"),
    };
    drop(ledger);
    let what = format!("{what} fails at client {client}: {error}");
    world.breach(Law::MinorityChangesNothing, excuse, what);
}
