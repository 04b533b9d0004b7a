//! The kinds of locks: which scripts each runs, and the guard it gives.

mod admin;
mod election;
mod exclusive;
mod fair_mutex;
mod guard;
mod handle;
mod lock_all;
mod mutex;
mod mutex_record;
mod record;
mod request;
mod rw_lock;
mod rw_record;
mod semaphore;
mod semaphore_record;
mod speech;
mod view;

pub use admin::{Admin, FoundLocks};
pub use election::{Election, Leadership, Observed, Observer};
pub use fair_mutex::FairMutex;
#[cfg(feature = "blocking")]
pub(crate) use handle::after_work;
pub(crate) use handle::{Dialect, Forms, LockHandle, LockParts};
pub use lock_all::{AllGuard, LockAll, Lockable};
pub use mutex::{Mutex, MutexGuard};
pub(crate) use mutex_record::{ExclusiveKind, MutexRecord, MutexTerms};
pub(crate) use request::{Form, LockAsked, flag, millis, token};
pub use rw_lock::{ReadGuard, RwLock, WriteGuard};
pub use rw_record::Preference;
pub(crate) use rw_record::{Access, RwTerms};
pub use semaphore::{PermitGuard, Semaphore};
pub use view::{Holder, LockState, LockView, VoterView, Waiting};
