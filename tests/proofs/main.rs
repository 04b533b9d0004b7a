//! The simulation and the models: what cannot be tried on servers often enough.

#![cfg_attr(
    not(quorate_mutants),
    expect(
        clippy::duplicate_mod,
        reason = "the model of rw locks queues by files of the fair one"
    )
)]

#[cfg(not(quorate_mutants))]
mod check;
#[cfg(not(quorate_mutants))]
mod fair_model;
#[cfg(not(quorate_mutants))]
mod model;
mod mutants;
#[cfg(not(quorate_mutants))]
mod rw_model;
mod sim;
#[cfg(not(quorate_mutants))]
mod token_model;
