//! Voters inside the process: for tests, demos and simulations without a server.
//!
//! They run the same Lua files as a server, and tests compare their answers with a server's. Time
//! is the tokio runtime's, so a test with a paused clock sees leases end without waiting. They use
//! no random numbers: on a runtime of one thread with a paused clock, the same calls give the same
//! answers at the same times.
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

mod commands;
mod data;
mod fault;
mod life;
mod lua;
mod server;
mod voter;

#[cfg(test)]
mod tests;

pub use commands::Reply;
pub use data::Record;
pub use fault::{Fault, InFlight, Ran, Sent};
pub use voter::{EmbeddedVoter, FaultGuard};

pub use crate::clock::Machine;

use crate::clock::Clock;

/// Settings for simulations. A [`Builder`](crate::Builder) has these methods if this trait is
/// imported. So a service does not have them, even if the feature `embedded` is on for one of its
/// tests.
///
/// [`connect`](crate::Builder::connect) fails if such a client has voters that are servers.
///
/// # Examples
///
/// ```
/// use quorate::{Quorate, embedded::Simulated as _};
///
/// let builder = Quorate::builder().seed(7);
/// ```
///
/// Without the trait it does not compile:
///
/// ```compile_fail,E0599
/// use quorate::Quorate;
///
/// let builder = Quorate::builder().seed(7);
/// ```
pub trait Simulated: Sized {
    /// Fixes the client's id and its random pauses, so that a simulation repeats itself. Two
    /// clients with the same seed have the same id and the same hold ids.
    #[must_use]
    fn seed(self, seed: u64) -> Self;

    /// Puts the client on this machine, which a test can stall, suspend and kill.
    #[must_use]
    fn machine(self, machine: &Machine) -> Self;
}

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
