//! The same locks for programs without async.
//!
//! Each type does what its namesake at the [root of the crate](crate) does, and each call that
//! waits there blocks the calling thread here. What is guaranteed, what happens when something
//! fails, and what costs how much is the same.
//!
//! ```
//! # fn main() -> Result<(), quorate::Error> {
//! # fn send_invoice(_: quorate::Token) -> Result<(), quorate::Error> { Ok(()) }
//! use quorate::{Quorate, embedded};
//!
//! // Voters in this process, by the feature `embedded`; servers by `blocking::Quorate::connect`.
//! let voters = embedded::voters(3);
//! let quorum = Quorate::builder().embedded(&voters).connect_blocking()?;
//!
//! // Waits for the lock, works, gives it back, and says whether it was held throughout.
//! quorum.mutex("invoice:42").run(send_invoice)?;
//!
//! // The same by hand.
//! let guard = quorum.mutex("invoice:42").lock()?;
//! let sent = send_invoice(guard.token());
//! guard.release()?; // or drop the guard
//! sent?;
//! quorum.close()
//! # }
//! ```
//!
//! # Threads
//!
//! Any number of threads can share a client: it is cheap to clone, and it is `Send` and `Sync`, as
//! locks and guards are. What they hold is renewed by the [thread of the clients](crate#runtime),
//! whatever the threads of the program do meanwhile.
//!
//! Locks and guards keep the client. When the last of them is dropped, the releases that are still
//! owed are sent in the background. Nothing waits for that: end a program with
//! [`MutexGuard::release`] or [`Quorate::close`].
//!
//! # Work and loss
//!
//! Nobody can stop a function in the middle, so nothing here drops the work when the lock is lost,
//! as [`while_held`](crate::MutexGuard::while_held) does. Long work looks now and then:
//!
//! | to | use |
//! |---|---|
//! | look at once | [`MutexGuard::is_held`], [`MutexGuard::remaining`] |
//! | pause between two steps, and wake at a loss | [`MutexGuard::lost_within`] |
//! | learn at the end whether all of it was covered | [`Mutex::run`], [`MutexGuard::release`] |
//! | have a late write refused | [`MutexGuard::token`] |
//!
//! Calls that begin with `try` block for no longer than it takes to ask the voters; what a guard
//! knows, such as `is_held`, is read from the clock and blocks nobody.
//!
//! # Inside a tokio runtime
//!
//! A call that blocks would stop the other tasks of the thread, and could wait for one of them for
//! ever. So every such call fails at once inside a future that tokio runs, and sends nothing:
//! [`is_inside_runtime`](crate::Error::is_inside_runtime). Use the types at the root of the crate
//! there. Where code without async is called from a task, run it by `tokio::task::spawn_blocking`
//! or `block_in_place`: there these calls work.
//!
//! Dropping never blocks, so clients, locks and guards may be dropped anywhere.

mod caller;
mod guards;
mod kinds;
mod mirror;

pub use guards::{
    AllGuard, Leadership, MutexGuard, Observer, OnceGuard, PermitGuard, ReadGuard, WriteGuard,
};
pub use kinds::{Admin, Election, LockAll, Mutex, Once, Quorate, Redisson, RwLock, Semaphore};
