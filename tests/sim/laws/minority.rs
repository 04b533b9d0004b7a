//! Where nothing goes wrong, or only at a minority of the voters, nothing fails.

use quorate::Error;

use super::Law;
use crate::{
    plan::Mood,
    world::{World, locked},
};

/// Somebody was told of a failure.
pub(crate) fn failed(world: &World, client: usize, what: &str, error: &Error, hold: Option<&str>) {
    if world.plan.mood == Mood::Chaos || error.is_closed() {
        return;
    }
    let excuse = match hold {
        Some(hold) => locked(&world.ledger).excuse_of_loss(hold),
        None => error.is_lost().then_some("its owner had lost it before"),
    };
    let what = format!("{what} fails at client {client}: {error}");
    world.breach(Law::MinorityChangesNothing, excuse, what);
}
