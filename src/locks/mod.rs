//! The kinds of locks: what a caller asks each for, and the guard it gives.

mod admin;
mod election;
mod guard;
mod handle;
mod lead;
mod lock_all;
mod mutex;
mod once;
mod rw_lock;
mod semaphore;
mod view;

pub use admin::{Admin, FoundLocks};
pub use election::{Election, Leadership, Observed, Observer};
#[cfg(feature = "blocking")]
pub(crate) use handle::after_work;
pub(crate) use handle::{Dialect, LockHandle, LockParts};
pub use lock_all::{AllGuard, LockAll, Lockable};
pub use mutex::{Mutex, MutexGuard};
pub use once::{Firing, Once, OnceGuard, OnceOutcome};
pub use rw_lock::{ReadGuard, RwLock, WriteGuard};
pub use semaphore::{PermitGuard, Semaphore};
pub use view::{FiringDone, Holder, LockState, LockView, SemaphoreView, VoterView, Waiting};
