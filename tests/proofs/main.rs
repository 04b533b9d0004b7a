//! The simulation and the models: what cannot be tried on servers often enough.

mod check;
mod hold_model;
mod mutant;
mod mutants;
mod queue_model;
mod sim;
mod slot_model;
