//! Distributed locks held by a quorum.

mod client;
mod clock;
mod coordinator;
mod engine;
mod hold;
mod keys;
mod lock;
mod node;
mod scripts;
mod settings;
mod wakeup;
mod words;

pub use client::{Builder, Quorate};
pub use keys::KeyScheme;
pub use lock::{Holder, Inspection, Mutex, MutexGuard, VoterView};
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
