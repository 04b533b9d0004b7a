//! Cancellation, enumerated: every future of the public interface is polled so many times and then
//! dropped, for every number of polls until it completes, under every kind of trouble at a minority
//! and at a majority of the voters.

mod acquire;
mod check;
mod client;
mod election;
mod fair;
mod guard;
mod permits;
mod polls;
mod rw;
mod scene;
mod several;
mod trouble;
