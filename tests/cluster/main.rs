//! Locks in a real cluster: where their keys are, and what redirects, migrations and failovers do
//! to them. CONFORMANCE 42.

mod down;
mod failover;
mod formed;
#[path = "../faults/history.rs"]
mod history;
mod load;
mod migration;
mod mixed;
mod places;
mod promotion;
mod rights;
#[path = "../faults/scene.rs"]
mod scene;
mod wakeups;

#[path = "../support/mod.rs"]
mod support;
