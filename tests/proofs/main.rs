//! The simulation, the models and the specification: what cannot be tried on servers often enough.

mod change;
mod check;
mod hold_model;
mod mutant;
mod mutants;
mod network;
mod queue_model;
mod sim;
mod slot_model;
mod spec;
mod ticket_model;
