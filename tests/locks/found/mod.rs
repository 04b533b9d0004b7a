//! Schedules that broke a law or a promise, or would have: bugs that were found by the simulation,
//! by reading or in use. Each test's name is the claim, and its comment says what went wrong.
//!
//! Every such bug stands here, by the kind of lock that it was found with.

mod mutex;
mod permits;
mod queues;
