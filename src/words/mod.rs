//! The words everything else speaks: names, identities, verdicts and errors.

mod error;
mod ids;
pub mod metric;
mod name;
mod owner;
mod quarantine;
mod rounded;
#[cfg(feature = "serde")]
mod serial;
pub(crate) mod series;
mod token;
mod verdict;

pub use error::{Error, ErrorKind, VoterReport};
pub(crate) use error::{Kind, Listed};
pub use ids::HoldId;
pub(crate) use ids::{ClientId, HoldIds};
pub(crate) use name::LockName;
pub use owner::Owner;
pub use quarantine::{Quarantine, Quarantined, RestartGuard};
pub(crate) use rounded::Rounded;
#[cfg(feature = "serde")]
pub(crate) use serial::millis;
pub use token::Token;
pub use verdict::{Cause, Verdict};
