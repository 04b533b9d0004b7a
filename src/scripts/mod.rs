//! The Lua scripts: what there is, what they take, and how their replies read.

mod catalog;
mod replies;

#[cfg(test)]
mod headers;

pub(crate) use catalog::{ALL, Arg, Script, fair, mutex, redisson, rw, voter};
pub(crate) use replies::{
    Answer, Holding, ListEntry, Mark, MutexSeen, Renewal, RwSeen, Value, Vote,
};
