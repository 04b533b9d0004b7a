//! Kinds of locks as data: which scripts each has, with which keys and arguments.
//!
//! [`Kind`] is a row for each kind, [`LockRecord`] one lock of a client. Every request of every
//! kind is made in one place (`record`), by the labels in the headers of the scripts.

mod kind;
mod record;

pub use kind::Preference;
pub(crate) use kind::{
    ELECTION, FAIR_MUTEX, Form, Forms, Kind, MUTEX, ONCE, READ, SEMAPHORE, WRITE, kind_of,
};
pub(crate) use record::{AnnouncedValue, Ask, LockRecord};

#[cfg(test)]
mod tests;
