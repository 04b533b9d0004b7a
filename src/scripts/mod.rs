//! The Lua scripts: the catalog, their arguments, and their decoded replies.

mod catalog;
mod replies;
mod script;

#[cfg(test)]
mod headers;

pub(crate) use catalog::{ALL, election, mutex, once, redisson, rw, semaphore, voter};
pub(crate) use replies::{Answer, Fingerprint, Holding, ListEntry, LockSeen, Value};
pub(crate) use script::Script;
#[cfg(test)]
pub(crate) use script::{Text, test_script};
