//! The simulation and the models: what cannot be tried on servers often enough.

#[cfg(not(quorate_mutants))]
mod check;
#[cfg(not(quorate_mutants))]
mod hold_model;
mod mutants;
#[cfg(not(quorate_mutants))]
mod queue_model;
mod sim;
#[cfg(not(quorate_mutants))]
mod slot_model;

#[cfg(not(quorate_mutants))]
mod clock;
/// The library's own engine, which models drive. It needs no runtime, no clock and no voters, so
/// its files can be a part of this program too; its unit tests come along.
#[cfg(not(quorate_mutants))]
#[path = "../../src/engine/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the models do not need all of it")]
mod engine;
#[cfg(not(quorate_mutants))]
mod mutant;
#[cfg(not(quorate_mutants))]
mod words;

#[cfg(not(quorate_mutants))]
use mutant::mutant;
