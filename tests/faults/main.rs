//! Live faults: real `redis-server` processes that are killed, stopped, cut off and restarted, and
//! what users of a lock see of it. CONFORMANCE 10, 11, 16, 20, 22, 28, 30 to 32, 34, 35 and 39.
//!
//! Starting a server blocks the thread of the test. Where a lock is to be renewed meanwhile the
//! runtime has others.

mod contention;
mod down;
mod forgotten;
mod harm;
mod history;
mod holding;
mod leaks;
mod minority;
mod once;
mod order;
mod readers;
mod renewal;
mod scene;
mod split;
mod status;
mod twins;
mod waiting;

#[path = "../support/mod.rs"]
mod support;
