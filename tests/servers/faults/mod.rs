//! Live faults: real `redis-server` processes that are killed, stopped, cut off and restarted, and
//! what users of a lock see of it.
//!
//! Starting a server blocks the thread of the test. Where a lock is to be renewed meanwhile the
//! runtime has others.

mod changed;
mod contention;
mod crowd;
mod down;
mod emptied;
mod far;
mod full;
mod harm;
mod holding;
mod leaks;
mod lean;
mod minority;
mod once;
mod queue;
mod renewal;
mod runtime;
mod split;
mod status;
mod trial;
mod twins;
mod waiting;
mod young;
