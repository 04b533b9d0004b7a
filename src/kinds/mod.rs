//! Kinds of locks as data: which scripts each has, with which keys and arguments.
//!
//! [`Kind`] is a row for each kind, [`LockRecord`] one lock of a client. Every request of every
//! kind is made in one place (`record`), by the labels in the headers of the scripts.

mod form;
mod kind;
mod record;

pub use form::Preference;
pub(crate) use form::{Form, Forms};
pub(crate) use kind::{ELECTION, FAIR_MUTEX, Kind, MUTEX, ONCE, READ, SEMAPHORE, WRITE, kind_of};
pub(crate) use record::{AnnouncedValue, Ask, LockRecord};

#[cfg(test)]
mod tests;
