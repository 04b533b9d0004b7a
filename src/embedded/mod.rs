//! Voters inside the process: for tests, demos and simulations without a server.
//!
//! They run the same Lua files as a server, and tests hold their answers equal to a server's. Time
//! is the tokio runtime's, so a test with a paused clock sees leases end without waiting. Nothing
//! in them is left to chance: on a runtime of one thread with a paused clock, the same calls give
//! the same answers at the same times.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), quorate::Error> {
//! let voters = quorate::embedded::voters(3);
//! let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
//! voters[0].kill();
//! let guard = quorum.mutex("invoice:42").lock().await?; // two of three are a quorum
//! assert!(voters[0].command(&["KEYS", "*"]).is_err());
//! assert_eq!(voters[1].keys(), ["quorate:{invoice:42}", "quorate:{invoice:42}:fence"]);
//! # Ok(())
//! # }
//! ```

mod channels;
mod command;
mod commands;
mod connection;
mod cut;
mod fault;
mod fault_guard;
mod keyspace;
mod life;
mod link;
mod lua;
mod observe;
mod record;
mod reply;
mod score;
mod sent;
mod server;
mod sorted_set;
mod sorted_set_commands;
mod survey;
mod traffic;
mod voter;
mod wall;

#[cfg(test)]
mod tests;

pub use cut::InFlight;
pub use fault::Fault;
pub use fault_guard::FaultGuard;
pub use observe::Ran;
pub use record::Record;
pub use reply::Reply;
pub use sent::Sent;
pub use voter::EmbeddedVoter;

pub use crate::clock::Machine;

use crate::clock::Clock;

/// Makes `count` voters of one clock, labelled `embedded-1`, `embedded-2` and so on.
///
/// ```
/// let voters = quorate::embedded::voters(3);
/// assert_eq!(voters[2].label(), "embedded-3");
/// ```
pub fn voters(count: usize) -> Vec<EmbeddedVoter> {
    let clock = Clock::tokio();
    let voter = |number| EmbeddedVoter::with_clock(format!("embedded-{number}"), clock.clone());
    (1..=count).map(voter).collect()
}
