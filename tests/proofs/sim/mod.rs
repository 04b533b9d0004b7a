//! The library in deterministic simulation: one seed decides everything that happens.
//!
//! ```sh
//! tests/run proofs sim                                                 # the usual sweep
//! QUORATE_SIM_SEEDS=100000 tests/run proofs sweep --nocapture          # a long one
//! QUORATE_SIM_SEED=1234 tests/run proofs sweep --nocapture             # one seed, traced
//! ```
//!
//! The clients, their watchdogs and waiters are the library's own, on embedded voters that run the
//! library's own scripts, under a paused clock, on one thread. `plan` says what may happen; `laws`
//! says what must hold; `tests/proofs/simulation.md` says what that proves.

mod amnesia;
mod clients;
pub(crate) mod draft;
mod jobs;
pub(crate) mod laws;
mod ledger;
mod locks;
mod plan;
mod prelude;
pub(crate) mod schedule;
pub(crate) mod steps;
mod sweep;
mod tasks;
mod tickets;
mod together;
mod trace;
mod troubles;
mod voters;
mod world;
