//! Distributed locks held by a quorum.
mod clock;
mod engine;
mod keys;
mod node;
mod scripts;
mod settings;
mod words;

pub use keys::KeyScheme;
pub use words::{Cause, Error, HoldId, Owner, Verdict, VoterReport};
