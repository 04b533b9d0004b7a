//! Holding: one outermost acquisition of one lock, from its majority to its end.

mod agenda;
mod enter;
mod entry;
mod held;
mod holds;
mod keeper;
mod lost;
mod together;

pub(crate) use enter::LockRequest;
pub(crate) use entry::Entry;
pub(crate) use held::Hold;
pub(crate) use holds::Holds;
pub use lost::Lost;
pub(crate) use together::{first_loss, one_is_lost, stand_or_fall};
