//! What the voters say about a lock: the answers of `inspect`.
//!
//! [`Mutex::inspect`](crate::Mutex::inspect) and [`FairMutex::inspect`](crate::FairMutex::inspect)
//! return an [`Inspection`], [`RwLock::inspect`](crate::RwLock::inspect) an [`RwInspection`], and
//! [`Semaphore::inspect`](crate::Semaphore::inspect) a [`SemaphoreInspection`]. Each has what every
//! voter said, and methods that say what a majority of them agrees on.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), quorate::Error> {
//! use quorate::inspection::Inspection;
//!
//! /// Who holds a lock, for an operator.
//! fn holder(seen: &Inspection) -> String {
//!     seen.holder().map_or("nobody".into(), |holder| holder.hold.to_string())
//! }
//!
//! # let voters = quorate::embedded::voters(3);
//! # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
//! let guard = quorum.mutex("invoice:42").lock().await?;
//! let seen = quorum.mutex("invoice:42").inspect().await?;
//! assert_eq!(holder(&seen), guard.hold().to_string());
//! # Ok(())
//! # }
//! ```
//!
//! With the feature `serde` all of them can be written as JSON, for instance. They cannot be read
//! back: what voters said at one moment is for people and dashboards, and may get further fields.

mod mutex;
mod rw;
mod semaphore;
#[cfg(feature = "serde")]
mod serial;

pub use mutex::{Holder, Inspection, VoterView, Waiting};
pub use rw::{Reader, RwInspection, RwState, RwView};
pub use semaphore::{PermitHolder, SemaphoreInspection, SemaphoreState, SemaphoreView};

pub use super::rw_record::Access;
