//! Distributed locks held by a quorum.
mod clock;
mod node;
mod scripts;
mod words;

#[cfg(feature = "embedded")]
pub use node::embedded;
pub use words::{Cause, Error, HoldId, Owner, Verdict, VoterReport};

/// Every Lua script this crate runs, as name and source: for audits, and for loading ahead.
///
/// ```
/// assert!(quorate::scripts().any(|(name, _)| name == "mutex/acquire"));
/// ```
pub fn scripts() -> impl Iterator<Item = (&'static str, &'static str)> {
    scripts::ALL.iter().map(|script| (script.name, script.source))
}
