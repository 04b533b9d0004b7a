//! The kinds of locks: which scripts each runs, and the guard it gives.

mod inspection;
mod mutex;
mod mutex_guard;
mod mutex_record;

pub use inspection::{Holder, Inspection, VoterView};
pub use mutex::Mutex;
pub use mutex_guard::MutexGuard;
