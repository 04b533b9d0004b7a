//! The kinds of locks: which scripts each runs, and the guard it gives.

mod access;
mod asking;
mod exclusive;
mod fair_mutex;
mod forms;
mod guard;
pub mod inspection;
mod mutex;
mod mutex_guard;
mod mutex_record;
mod permit_guard;
mod read_guard;
mod request;
mod rw_java;
mod rw_lock;
mod rw_made;
mod rw_record;
mod rw_work;
mod semaphore;
mod semaphore_record;
mod semaphore_seen;
mod write_guard;

use access::Access;
pub use access::Preference;
pub(crate) use asking::LockParts;
#[cfg(feature = "blocking")]
pub(crate) use exclusive::after_work;
pub use fair_mutex::FairMutex;
pub(crate) use forms::Forms;
pub use mutex::Mutex;
pub use mutex_guard::MutexGuard;
pub use permit_guard::PermitGuard;
pub use read_guard::ReadGuard;
pub use rw_lock::RwLock;
pub use semaphore::Semaphore;
pub use write_guard::WriteGuard;
