//! Live faults: real `redis-server` processes that are killed, stopped, cut off and restarted, and
//! what users of a lock see of it.
//!
//! Starting a server blocks the thread of the test. Where a lock is to be renewed meanwhile the
//! runtime has others.

mod away;
mod cost;
mod known;
#[cfg(target_os = "linux")]
mod names;
mod runtime;
