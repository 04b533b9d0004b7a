//! Distributed locks held by a quorum.
mod clock;
mod node;
mod scripts;
mod words;

pub use words::{Cause, Error, HoldId, Owner, Verdict, VoterReport};
