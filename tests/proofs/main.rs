//! The simulation, the models and the specification: what cannot be tried on servers often enough.

mod change;
mod check;
mod hold_model;
mod mutant;
mod mutants;
mod network;
mod queue_model;
#[cfg_attr(not(feature = "full"), allow(dead_code, reason = "some of it is for `spec` alone"))]
mod sim;
mod slot_model;
#[cfg(feature = "full")]
mod spec;
mod ticket_model;
