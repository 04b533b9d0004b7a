//! Distributed locks held by a quorum of independent Redis servers.
//!
//! A lock is asked of all servers at once. Whoever has the votes of a majority holds it, for as
//! long as the lease lasts that the voters gave, and renews it by asking all of them again. A
//! minority that is down, slow or cut off changes nothing, and nobody waits for it.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), quorate::Error> {
//! # async fn send_invoice() {}
//! use quorate::{Quorate, embedded};
//!
//! // Voters in this process, by the feature `embedded`; servers by `Quorate::connect`.
//! let voters = embedded::voters(5);
//! let quorum = Quorate::builder().embedded(&voters).connect().await?;
//!
//! let guard = quorum.mutex("invoice:42").lock().await?;
//! guard.while_held(send_invoice()).await?;
//! guard.release().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Words
//!
//! - *Voter*: one server, a part of a cluster, or one embedded voter, that casts one vote.
//! - *Quorum*: a majority of all voters that were configured: three of five, three of four.
//! - *Owner*: an identity that may enter a lock again while it holds it. A value ([`Owner`]), never
//!   a thread or a task.
//! - *Hold*: one outermost acquisition of one lock ([`HoldId`]). It ends by its last release, or by
//!   loss.
//! - *Lease*: the time for which voters give their votes to a hold. By default 30 s, renewed from a
//!   third of it on.
//! - *Validity*: the part of the lease that may be relied on: it counts from before the first
//!   request was sent, and is shorter by what clocks may differ.
//! - *Lost*: ended without being released; somebody else may hold the lock.
//! - *Token*: the number of an exclusive hold, higher than those of all holds of the lock before it
//!   ([`Token`]).
//! - *Quarantine*: the time for which a voter that may have forgotten votes does not count for new
//!   holds ([`Quarantine`]).
//! - *Ticket*: the number of a place in the queue of a fair or a read/write lock, the same on every
//!   voter.
//!
//! # I need ...
//!
//! | I need | use |
//! |---|---|
//! | one at a time, waiting for it | [`Mutex::lock`] |
//! | to skip the work where another does it | [`Mutex::try_lock`] |
//! | to say who has the lock, and when to come again | [`Mutex::lock_or_busy`] |
//! | to wait for a limited time | [`Mutex::lock_within`] |
//! | first come, first served | [`Quorate::fair_mutex`] |
//! | many who read, or one who writes | [`RwLock::read`], [`RwLock::write`] |
//! | to choose whom readers let pass | [`RwLock::preference`] |
//! | to read on without a gap after writing | [`WriteGuard::downgrade`] |
//! | to see who waits, in which order | [`FairMutex::inspect`], [`Inspection::queue`] |
//! | work that stops when the lock is lost | [`MutexGuard::while_held`] |
//! | to be told of the loss | [`MutexGuard::lost`] |
//! | to know whether it is still mine | [`MutexGuard::is_held`] |
//! | a number that grows from holder to holder | [`MutexGuard::token`] |
//! | to know how many voters have it | [`MutexGuard::votes`] |
//! | to know for how long it is | [`MutexGuard::remaining`] |
//! | to enter again what I hold | [`Mutex::owner`], or [`MutexGuard::reenter`] |
//! | a lock that ends by itself | [`Mutex::lease_fixed`] |
//! | to know whether giving back worked | [`MutexGuard::release`] |
//! | to see who holds it, voter by voter | [`Mutex::inspect`], [`RwLock::inspect`] |
//! | to end a hold whose holder is stuck | [`Mutex::force_release`] |
//! | to repair a lock that nobody holds and nobody gets | [`Mutex::force_clear`] |
//! | to refuse a late writer at what the lock protects | [`FenceGate`] |
//! | to end everything before the program does | [`Quorate::close`] |
//! | passwords that change | [`Builder::credentials`] |
//! | other settings | [`Quorate::builder`] |
//! | settings from the environment | [`Builder::from_env`] |
//! | to exclude Java services that use Redisson | [`KeyScheme::Redisson`] |
#![cfg_attr(feature = "blocking", doc = "| locks in a program without async | [`blocking`] |")]
#![cfg_attr(feature = "tls", doc = "| my own authority, client certificates | [`Builder::tls`] |")]
#![cfg_attr(feature = "embedded", doc = "| tests without a server | [`embedded`] |")]
//!
//! [`Inspection::queue`]: inspection::Inspection::queue
//!
//! # What happens ...
//!
//! **... when a reply is lost.** An answer that did not come is *unknown*, never a yes and never a
//! no. An attempt that fails is undone wherever it may have been granted, at voters that did not
//! answer too, on the same connection and so behind what it undoes. Undos and releases are sent
//! again to each voter until it answers or until the lease would have ended. A request that arrives
//! twice does no more than one that arrives once.
//!
//! **... when a renewal fails.** It is repeated after a short pause, until the deadline. A failed
//! renewal takes no vote away. A voter that lost its data gives its vote again at the next renewal,
//! if nobody else has it.
//!
//! **... at the deadline.** The hold is lost, by the clock alone: [`is_held`](MutexGuard::is_held)
//! is false, [`lost`](MutexGuard::lost) completes, [`while_held`](MutexGuard::while_held) drops its
//! work. A hold is lost before that when a majority of the voters is another's, or when it was
//! ended by force.
//!
//! **... when the holder dies.** Its votes expire with its lease, and the waiters ask again then;
//! each reader has a lease of its own. In a queue (of a fair or a read/write lock) a waiter that
//! dies is passed over once it has not asked for the [waiter deadline](Builder::waiter_deadline).
//!
//! **... when a guard is dropped.** The release is queued; dropping neither blocks nor fails. A
//! program that ends right afterwards may not send it: end with [`release`](MutexGuard::release) or
//! [`close`](Quorate::close).
//!
//! ```
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), quorate::Error> {
//! # let voters = quorate::embedded::voters(3);
//! # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
//! let guard = quorum.mutex("invoice:42").lock().await?;
//! voters[0].kill();
//! voters[1].kill();
//! let endless = std::future::pending::<()>();
//! let error = guard.while_held(endless).await.unwrap_err();
//! assert!(error.is_lost() && !guard.is_held());
//! assert_eq!(error.voters().len(), 3); // each one's answer to the last renewal
//! # Ok(())
//! # }
//! ```
//!
//! # What is not guaranteed
//!
//! - That the work of a lost hold has stopped everywhere. `while_held` lets it take no further
//!   step, but what it sent or spawned before cannot be called back: let what it works on check the
//!   [token](MutexGuard::token).
//! - Exclusion where a majority of voters forgets votes within a lease, or one does so unnoticed: a
//!   disk that lost the last of what it had confirmed; for ten seconds at most also data that are
//!   deleted in a running server. Restarts without data and clocks that jump are noticed
//!   ([`Quarantine`]), but for one of all voters together that a new client takes for their first
//!   start ([`RestartGuard`]).
//! - Tokens that grow where voters lose data and the wall clocks of two clients are further apart
//!   than the [longest lease](Builder::longest_lease), or than the
//!   [fence memory](Builder::fence_memory) where nobody takes the lock for that long.
//! - Exclusion between clients that were given different voters or different [`KeyScheme`]s, or
//!   after [`Mutex::force_release`] or [`Mutex::force_clear`] until the holder has learnt of it.
//! - Any order between waiters of different processes, but with [`FairMutex`] and [`RwLock`]; or
//!   that a wake-up comes: it is a hint, and waiters ask again without it.
//! - On systems other than Linux, that time for which the machine slept is counted.
//!
//! # Cancel safety
//!
//! Every future may be dropped at any await.
//!
//! | dropped | leaves |
//! |---|---|
//! | `lock`, `try_lock`, `lock_within` | nothing: what was sent is undone, the queue left |
//! | `read`, `write` and their like | the same |
//! | `downgrade` | nothing: the write is released |
//! | `reenter` | the count as it was before |
//! | `release` | the lock released: only the answer is lost |
//! | `while_held` | the work dropped, the lock held |
//! | `lost`, `inspect`, `connect` | nothing |
//! | `force_release`, `force_clear` | the hold ended or not; calling again finishes it |
//! | `close` | a client that acquires nothing more; calling again finishes it |
//!
//! # Errors
//!
//! That another holds the lock is no error: `try_lock`, `lock_within` and their like answer `None`.
//! `lock_or_busy` and its like make it one, which says who holds the lock and when to ask again.
//!
//! | [`ErrorKind`] | means |
//! |---|---|
//! | [`Invalid`](ErrorKind::Invalid) | a setting, an address or a name cannot be used |
//! | [`NotConnected`](ErrorKind::NotConnected) | too few voters could be reached at first |
//! | [`NoQuorum`](ErrorKind::NoQuorum) | too few voters answered |
//! | [`Busy`](ErrorKind::Busy) | another hold has the lock: only from `lock_or_busy` and its like |
//! | [`Lost`](ErrorKind::Lost) | the hold has ended without being released |
//! | [`Released`](ErrorKind::Released) | its last guard has left the hold: told to a [`Lost`] |
//! | [`Unconfirmed`](ErrorKind::Unconfirmed) | no majority confirmed the release in time |
//! | [`NotEntered`](ErrorKind::NotEntered) | no majority confirmed a re-entry in time |
//! | [`Deadlock`](ErrorKind::Deadlock) | the owner reads the lock that it wants to write |
//! | [`Overloaded`](ErrorKind::Overloaded) | no voter was asked: this client has much to ask |
//! | [`Closed`](ErrorKind::Closed) | the client was closed |
//! | [`InsideRuntime`](ErrorKind::InsideRuntime) | a blocking call was made inside a future |
//!
//! [`Error::voters`] has what each voter said, or why it said nothing.
//!
#![doc = include_str!("../docs/metrics.md")]
//!
//! # Log
//!
//! By `tracing`, with targets that begin with `quorate`. Spans, at *debug*, last from the request
//! to its answer:
//!
//! | span | fields |
//! |---|---|
//! | `acquire` | `kind`, `lock`, `outcome`; where a majority was won `hold`, `attempts`, `token` |
//! | `renew` | `kind`, `lock`, `hold`, `outcome` |
//! | `release` | `kind`, `lock`, `hold`, `outcome`: released, lost or unconfirmed |
//!
//! Events; `voters` is what each voter said last, or why it said nothing, `shard` is 0 but in a
//! cluster:
//!
//! | level | event | fields |
//! |---|---|---|
//! | error | two voters are one server: one vote less | `voter`, `twin` |
//! | error | two voters share a server: one vote less | `voter`, `other`, `server` |
//! | warn | lock lost | `lock`, `hold`, `why`, `voters` |
//! | warn | renewal failed | `lock`, `hold`, `left`, `voters` |
//! | warn | voter in quarantine | `voter`, `why`, `left` |
//! | warn | connection lost | `voter`, `shard`, `why` |
//! | warn | not reached yet; it is tried again and again | `voter`, `why` |
//! | warn | no server tells of the cluster | `cause` |
//! | warn | it is not known since when a server is a primary | `server`, `cause` |
//! | warn | two voters share a server | `voter`, `other`, `server` |
//! | warn | an even number of voters survives no more failures than one voter fewer | `voters` |
//! | info | connected | `voter`, `shard`, `run_id`, `age` |
//! | info | connection closed | `voter`, `shard` |
//! | info | a voter came back as another | `voter`, `durable` |
//! | debug | renewal failed | `lock`, `hold`, `left`, `voters` |
//! | debug | a server that was promoted cannot be marked now | `server`, `why` |
//! | debug | hash slots have moved | `voter`, `from`, `to`, `lost` |
//! | debug | redirected | `voter`, `slot`, `at`, `redirect` |
//!
//! `left` is what is left of the validity. Of renewals that fail one after the other the first is a
//! warning.
//!
//! # Features
//!
//! All are off by default.
//!
//! | feature | adds |
//! |---|---|
//! | `tls` | `rediss://` addresses |
//! | `embedded` | voters inside the process, for tests without a server |
//! | `blocking` | locks for programs without async, in the module `blocking` |
//! | `serde` | what `inspect` and `status` return, ids, owners and tokens as JSON, for instance |
//!
//! With `serde`, [`HoldId`], [`Owner`], [`Token`] and [`inspection::Access`] are `Serialize` and
//! `Deserialize`. [`Status`], what [`inspection`] has, [`Cause`] and [`Quarantine`] are `Serialize`
//! only: they say how things stood at one moment. Times are whole milliseconds, in fields that end
//! with `_ms`. In place of an answer that a voter did not give there is an `error`.
//!
//! # Runtime
//!
//! Connect inside a tokio runtime with time and I/O enabled; its tasks renew and clean up, so it
//! must live as long as the client. Guards may be dropped on any thread. A client of the feature
//! `blocking` brings its own runtime.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "blocking")]
pub mod blocking;
mod client;
mod clock;
mod coordinator;
mod engine;
mod fence;
mod hold;
mod keys;
mod lock;
mod mutant;
mod node;
mod scripts;
mod settings;
mod signal;
mod wakeup;
mod words;

use mutant::mutant;

pub use client::{Builder, Cluster, Quorate, SharedPrimaries, Status, VoterStatus};
pub use fence::{FenceGate, Stale};
pub use hold::Lost;
pub use keys::KeyScheme;
pub use lock::{
    FairMutex, Mutex, MutexGuard, Preference, ReadGuard, RwLock, WriteGuard, inspection,
};
pub use node::Credentials;
#[cfg(feature = "tls")]
pub use node::Tls;
#[cfg(feature = "embedded")]
pub use node::embedded;
pub use words::metric;
pub use words::{
    Cause, Error, ErrorKind, HoldId, Owner, Quarantine, Quarantined, RestartGuard, Token, Verdict,
    VoterReport,
};

/// Every Lua script this crate runs, as name and source, for audits.
///
/// ```
/// assert!(quorate::scripts().any(|(name, _)| name == "mutex/acquire"));
/// ```
pub fn scripts() -> impl Iterator<Item = (&'static str, &'static str)> {
    scripts::ALL.iter().map(|script| (script.name, script.source))
}

/// The code in the README and in the book is run as well.
#[cfg(doctest)]
mod book {
    #[doc = include_str!("../README.md")]
    mod readme {}
    #[doc = include_str!("../docs/README.md")]
    mod contents {}
    #[doc = include_str!("../docs/protocol.md")]
    mod protocol {}
    #[doc = include_str!("../docs/connecting.md")]
    mod connecting {}
    #[doc = include_str!("../docs/failures.md")]
    mod failures {}
    #[doc = include_str!("../docs/fencing.md")]
    mod fencing {}
    #[doc = include_str!("../docs/testing.md")]
    mod testing {}
    #[doc = include_str!("../docs/simulation.md")]
    mod simulation {}
    #[doc = include_str!("../docs/model.md")]
    mod model {}
}
