//! The Lua scripts: what there is, what they take, and how their replies read.

#[macro_use]
mod script;

mod catalog;
pub(crate) mod election;
mod replies;
pub(crate) mod semaphore;

#[cfg(test)]
mod headers;

pub(crate) use catalog::{ALL, mutex, redisson, rw, voter};
pub(crate) use replies::{Answer, Holding, ListEntry, LockSeen, Mark, Value};
pub(crate) use script::Script;
