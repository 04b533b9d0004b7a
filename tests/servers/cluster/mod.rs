//! Locks in a real cluster: where their keys are, and what redirects, migrations and failovers do
//! to them.

mod changed;
mod down;
mod election;
mod failover;
mod formed;
mod idle;
mod migration;
mod mixed;
mod places;
mod promotion;
mod rights;
mod scene;
mod wakeups;
