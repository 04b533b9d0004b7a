//! The words everything else speaks: names, identities, verdicts and errors.

mod client_name;
mod error;
mod found_lock;
mod ids;
mod leader;
mod majorities;
pub mod metric;
mod name;
mod owner;
mod quarantine;
mod report;
mod roster;
mod rounded;
#[cfg(feature = "serde")]
mod serial;
pub(crate) mod series;
mod server_info;
mod slots;
mod taker;
mod token;
mod verdict;

pub(crate) use client_name::ClientName;
pub(crate) use error::CLOSED;
pub(crate) use error::Kind;
pub use error::{Error, ErrorKind};
pub use found_lock::{FoundKind, FoundLock};
pub use ids::HoldId;
pub(crate) use ids::{ClientId, HoldIds};
pub use leader::Leader;
pub(crate) use leader::{Incumbent, LeaderValue, Proclaimed};
pub(crate) use majorities::Majorities;
pub use majorities::Side;
pub(crate) use name::LockName;
pub use owner::Owner;
pub use quarantine::{Quarantine, Quarantined, RestartGuard};
pub use report::VoterReport;
pub(crate) use report::{Listed, Sided};
pub(crate) use roster::Belief;
pub use roster::RosterEntry;
pub(crate) use rounded::Rounded;
#[cfg(feature = "serde")]
pub(crate) use serial::millis;
pub use server_info::{ClockOffset, Persistence, ServerInfo, ServerReport};
pub(crate) use slots::Slots;
pub use taker::HolderKind;
pub(crate) use taker::Taker;
pub use token::Token;
pub use verdict::{Cause, Verdict};
