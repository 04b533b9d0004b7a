//! Voters that forget, and what that does to nobody: tokens grow, and whoever holds a lock holds it
//! alone. On voters inside the process, in paused time, and on real servers.

mod clocks;
mod emptied;
mod growth;
mod guard;
pub(crate) mod inside;
mod kinds;
mod paused;
mod restarts;
mod retry;
mod rolling;
mod seen;
mod stored;
mod told;
