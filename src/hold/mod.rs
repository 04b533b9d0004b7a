//! Holding: one outermost acquisition of one lock, from its majority to its end.

mod enter;
mod entry;
mod held;
mod holds;
mod keeper;
mod lost;
mod once;
mod ticket;

pub(crate) use enter::LockRequest;
pub(crate) use entry::Entry;
pub(crate) use held::Hold;
pub(crate) use holds::Holds;
use holds::{Agenda, AgendaPlace};
pub use lost::{HoldView, Lost};
pub(crate) use lost::{first_loss, lose_together, one_is_lost, try_while_held, while_held};
