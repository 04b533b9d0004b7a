//! The kinds of locks: which scripts each runs, and the guard it gives.

mod exclusive;
mod fair_mutex;
mod inspection;
mod mutex;
mod mutex_guard;
mod mutex_record;

pub use fair_mutex::FairMutex;
pub use inspection::{Holder, Inspection, VoterView, Waiting};
pub use mutex::Mutex;
pub use mutex_guard::MutexGuard;
