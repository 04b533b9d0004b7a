//! The words everything else speaks: names, identities, verdicts and errors.

mod client_name;
mod error;
mod found_lock;
mod ids;
pub mod metric;
mod name;
mod owner;
mod quarantine;
mod rounded;
#[cfg(feature = "serde")]
mod serial;
pub(crate) mod series;
mod server_info;
mod taker;
mod token;
mod verdict;

pub(crate) use client_name::ClientName;
pub use error::{Error, ErrorKind, VoterReport};
pub(crate) use error::{Kind, Listed};
pub use found_lock::{FoundKind, FoundLock};
pub use ids::HoldId;
pub(crate) use ids::{ClientId, HoldIds};
pub(crate) use name::LockName;
pub use owner::Owner;
pub use quarantine::{Quarantine, Quarantined, RestartGuard};
pub(crate) use rounded::Rounded;
#[cfg(feature = "serde")]
pub(crate) use serial::millis;
pub use server_info::{ClockOffset, Persistence, ServerInfo, ServerReport};
pub use taker::HolderKind;
pub(crate) use taker::{Taker, Whose};
pub use token::Token;
pub use verdict::{Cause, Verdict};
