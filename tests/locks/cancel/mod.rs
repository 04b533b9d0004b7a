//! Cancellation, enumerated: every future of the public interface is polled so many times and then
//! dropped, for every number of polls until it completes, under every kind of trouble at a minority
//! and at a majority of the voters.

mod acquire;
mod check;
mod client;
mod held;
pub(crate) mod kinds;
mod polls;
mod scene;
mod trouble;
