//! Distributed locks that are held by a majority of independent Redis servers.
//!
//! Every lock request goes to all servers in parallel. You hold the lock once a majority grants it.
//! It is renewed in the background. If no majority renews it, you stop holding it before the
//! servers give it to somebody else. A minority that is down, slow or cut off changes nothing.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), quorate::Error> {
//! # async fn send_invoice() {}
//! use quorate::{Quorate, embedded};
//!
//! // Servers inside this process, with the feature `embedded`.
//! // Real ones: `Quorate::connect(["redis://10.0.0.1", ..])`.
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
//! # I need ...
//!
//! | I need | use |
//! |---|---|
//! | one at a time | [`Mutex::lock`], or [`Mutex::run`] with the work inside |
//! | to skip the work if somebody else does it | [`Mutex::try_lock`] |
//! | to wait for a limited time | [`Mutex::lock_within`] |
//! | an error that says who holds it, and what is left of its lease | [`Mutex::lock_or_busy`] |
//! | the order of asking, across processes | [`Quorate::fair_mutex`] |
//! | at most a certain number at once | [`Quorate::semaphore`], [`Semaphore::acquire`] |
//! | several permits, or none | [`Semaphore::acquire_many`] |
//! | to know which of the permits I have | [`PermitGuard::slot`] |
//! | many readers or one writer | [`RwLock::read`], [`RwLock::write`], [`RwLock::run_read`] |
//! | to choose whether readers or writers go first | [`RwLock::preference`] |
//! | several locks, all or none | [`Quorate::lock_all`] |
//! | to know in spawned work whether the lock is still held | [`MutexGuard::view`] |
//! | a job that is done once on all machines | [`Quorate::once`], [`Once::run`] |
//! | one leader among many, whom others can find | [`Quorate::election`] |
//! | to lead for as long as a service runs | [`Election::lead`] |
//! | to follow who leads | [`Election::observe`] |
//! | to go on reading after a write | [`WriteGuard::downgrade`] |
//! | work that stops if the lock is lost | [`MutexGuard::while_held`] |
//! | to learn of the loss | [`MutexGuard::lost`] |
//! | to know whether I still hold the lock | [`MutexGuard::is_held`], [`MutexGuard::remaining`] |
//! | a number that grows from holder to holder | [`MutexGuard::token`] |
//! | to refuse a late writer at what the lock protects | [`FenceGate`] |
//! | to enter again what I hold | [`Mutex::owner`], or [`MutexGuard::reenter`] |
//! | to keep the lock for a while after the work | [`MutexGuard::keep_for`] |
//! | to hand the lock to another process | [`MutexGuard::detach_for`], [`Quorate::resume`] |
//! | a lock that ends by itself | [`Mutex::lease_fixed`] |
//! | a lock that a stuck program does not keep | [`Mutex::hold_at_most`] |
//! | to know whether the release worked | [`MutexGuard::release`] |
//! | to see who holds the lock and who waits | [`Mutex::inspect`], or [`Admin::look`] for any |
//! | to see how the servers are | [`Quorate::status`] |
//! | to see how the servers are set up | [`Quorate::survey`] |
//! | to see which locks there are | [`Admin::find`] |
//! | to find the process that holds it | [`Builder::client_name`] |
//! | to say what it is held for | [`Mutex::note`] |
//! | to end a hold whose holder is stuck | [`Admin::end`] |
//! | to end whatever is held of a lock | [`Admin::end_all`] |
//! | to repair a lock that nobody holds and nobody gets | [`Admin::clear`] |
//! | to release everything before the program ends | [`Quorate::close`] |
//! | other settings | [`Quorate::builder`], [`Builder::from_env`] |
//! | passwords of any characters | [`Address::credentials`] |
//! | passwords that change | [`Builder::credentials`] |
//! | to share locks with Java services that use Redisson | [`Quorate::redisson`] |
#![cfg_attr(feature = "blocking", doc = "| locks in a program without async | [`blocking`] |")]
#![cfg_attr(feature = "tls", doc = "| my own authority, client certificates | [`Builder::tls`] |")]
#![cfg_attr(feature = "embedded", doc = "| tests without a server | [`embedded`] |")]
//!
//! # Words
//!
//! - *Voter*: a server, a part of a cluster, or an embedded voter. Each has one vote, and can fail
//!   while the others go on.
//! - *Quorum*: a majority of all voters that were configured: two of three, three of five.
//! - *Hold*: one outermost acquisition of one lock ([`HoldId`]), until its release or its loss.
//! - *Owner*: an identity that may enter a lock again while it holds it. A value ([`Owner`]), not a
//!   thread or a task.
//! - *Lease*: the time for which voters give their votes to a hold. 30 s by default, renewed after
//!   a third of it.
//! - *Deadline*: the moment until which the holder relies on the lock:
//!   `start of the first request + lease - drift`.
//! - *Lost*: ended without a release. Somebody else may hold the lock.
//! - *Token*: a number that grows with each exclusive hold of a lock ([`Token`]).
//! - *Quarantine*: the time for which a voter that may have forgotten its votes does not count for
//!   new holds ([`Quarantine`]).
//! - *Slot*: the number of a semaphore's permit. No two holds have the same at the same time.
//! - *Ticket*: the number of a waiter in a queue, the same on every voter.
//!
//! # What happens ...
//!
//! **... when a reply is lost.** The answer is *unknown*: neither a yes nor a no. An attempt that
//! fails is undone on every voter that may have granted it, over the same connection and therefore
//! after the request. Undos and releases are repeated until the voter answers. A request that
//! arrives twice has the effect of one request.
//!
//! **... when a renewal fails.** It is repeated after a short pause, until the deadline. A failed
//! renewal takes no vote away. A voter that lost its data votes again at the next renewal, if
//! nobody else has its vote.
//!
//! **... at the deadline.** The hold is lost, by the local clock alone:
//! [`is_held`](MutexGuard::is_held) is false, [`lost`](MutexGuard::lost) completes,
//! [`while_held`](MutexGuard::while_held) drops its work. A hold is lost earlier if another hold
//! has a majority, if a majority has forgotten it, or if somebody ended it by force.
//!
//! **... when the holder dies.** Its votes expire with its lease, and waiters ask again then. Each
//! reader has a lease of its own. A waiter in a queue that dies is skipped after the
//! [waiter deadline](Builder::waiter_deadline).
//!
//! **... when a guard is dropped.** The release is sent in the background; dropping neither blocks
//! nor fails. A program that ends right afterwards may not send it: end with
//! [`release`](MutexGuard::release) or [`close`](Quorate::close).
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
//! assert_eq!(error.voters().len(), 3); // the answer of each voter to the last renewal
//! # Ok(())
//! # }
//! ```
//!
//! # What is not guaranteed
//!
//! - **That the work of a lost hold has stopped everywhere.** `while_held` drops the work at its
//!   next await. What the work has sent or spawned goes on. Let the receiver check the
//!   [token](MutexGuard::token).
//! - **Exclusion, if a majority of the voters forgets its votes within one lease.** The same holds
//!   for a minority that forgets unnoticed: a disk that lost its last writes, a single key that
//!   somebody deleted, or, in a cluster and for ten seconds at most, all data of a running server.
//!   Restarts without data, deleted data of other servers and clocks that jump are noticed
//!   ([`Quarantine`]). One case is not: all voters restart at once, and a new client takes that for
//!   their first start ([`RestartGuard`]).
//! - **Exclusion, after [`Admin::end`], [`Admin::end_all`] or [`Admin::clear`]**, until the old
//!   holder has noticed.
//! - **Exclusion between clients with different voters** or different [prefixes](Builder::prefix).
//! - **Tokens that grow, if voters lose data** and the wall clocks of two clients differ by more
//!   than the [longest lease](Builder::longest_lease); or if nobody uses the lock for longer than
//!   the [fence memory](Builder::fence_memory) and the clocks differ by more than that; or over a
//!   change of the voters, if nobody uses the lock meanwhile and the clocks differ by more than the
//!   longest lease and 30 s.
//! - **An order between waiters of different processes,** except with
//!   [fair mutexes](Quorate::fair_mutex), [`RwLock`], [`Semaphore`] and [`Election`].
//! - **That leases end on time while the machine sleeps**, on systems other than Linux, **or while
//!   a hypervisor pauses it**, on any system.
//!
//! # Cancel safety
//!
//! Every future may be dropped at any await.
//!
//! | dropped | leaves |
//! |---|---|
//! | `lock` and the like | nothing: what was sent is undone, the queue left |
//! | `read`, `write`, `acquire` and the like | the same |
//! | `run` and the like | the work dropped, the lock released |
//! | `downgrade` | nothing: the write is released |
//! | `campaign` and the like | nothing: what was sent is undone, the queue left |
//! | `proclaim` | the lead, with the new value once it was polled |
//! | `resign` | the lead given up: only the answer is lost |
//! | `leader`, `Observer::next` | nothing |
//! | `reenter` | the count as it was before |
//! | `extend`, `renew` | the lock held, with the old lease or the new one |
//! | `keep_for` | the lock released, or kept for that time once it was stored |
//! | `detach_for` | the lock released |
//! | `resume` | the votes with the ticket, which can be resumed as before |
//! | `release` | the lock released: only the answer is lost |
//! | `while_held`, `try_while_held` | the work dropped, the lock held |
//! | `lost`, `inspect`, `is_locked`, `look`, `find`, `status`, `survey`, `connect` | nothing |
//! | `Admin::end`, `end_all`, `clear` | the holds ended or not; call again to finish it |
//! | `close` | a client that acquires nothing more; call again to finish it |
//!
//! # Errors
//!
//! A lock that is taken is not an error: `try_lock`, `lock_within` and the like return `None`. Only
//! `lock_or_busy` and the like return it as an error, which says who holds the lock and what is
//! left of its lease.
//!
//! | [`ErrorKind`] | means |
//! |---|---|
//! | [`Invalid`](ErrorKind::Invalid) | a setting, an address or a name cannot be used |
//! | [`NotConnected`](ErrorKind::NotConnected) | `connect` reached no majority of the voters |
//! | [`NoQuorum`](ErrorKind::NoQuorum) | no majority of the voters answered |
//! | [`Busy`](ErrorKind::Busy) | somebody else holds the lock |
//! | [`Lost`](ErrorKind::Lost) | the hold ended without a release |
//! | [`Released`](ErrorKind::Released) | the hold was released: only as the answer of a [`Lost`] |
//! | [`Unconfirmed`](ErrorKind::Unconfirmed) | no majority confirmed the release in time |
//! | [`NotEntered`](ErrorKind::NotEntered) | no majority confirmed in time; the hold is as before |
//! | [`NotHolding`](ErrorKind::NotHolding) | the hold to be ended by force has no vote |
//! | [`TicketEnded`](ErrorKind::TicketEnded) | a ticket was resumed before, or its hold has ended |
//! | [`Deadlock`](ErrorKind::Deadlock) | the owner reads the lock that it wants to write |
//! | [`Overloaded`](ErrorKind::Overloaded) | no voter was asked: this client has too much to ask |
//! | [`ConfigurationMismatch`](ErrorKind::ConfigurationMismatch) | clients disagree about who the voters are |
//! | [`Closed`](ErrorKind::Closed) | the client was closed |
//! | [`InsideRuntime`](ErrorKind::InsideRuntime) | a blocking call was made inside a future |
//!
//! [`Error::voters`] has the answer of each voter, or the reason why there is none.
//!
#![doc = include_str!("../docs/metrics.md")]
//!
//! # Log
//!
//! The library reports to `tracing`, with targets that begin with `quorate`. Spans, at level
//! *debug*, last from the request to its answer:
//!
//! | span | fields |
//! |---|---|
//! | `acquire` | `kind`, `lock`, `note`, `outcome`; once it is won `hold`, `attempts`, `token` |
//! | `renew` | `kind`, `lock`, `hold`, `outcome` |
//! | `release` | `kind`, `lock`, `hold`, `outcome`: released, lost or unconfirmed |
//!
//! Events. `voters` has the last answer of each voter, `left` the rest of the validity, `note` what
//! the user [says of the hold](Mutex::note), if anything; `shard` is 0 except in a cluster:
//!
//! | level | event | fields |
//! |---|---|---|
//! | error | two voters are one server: one vote less | `voter`, `twin` |
//! | error | two voters share a server: one vote less | `voter`, `other`, `server` |
//! | error | votes may be gone at any time | `server`, `why` |
//! | error | clients disagree about the voters: no locks | `voter`, `why` |
//! | warn | lock lost | `lock`, `hold`, `note`, `why`, `voters` |
//! | warn | renewal failed | `lock`, `hold`, `left`, `voters` |
//! | warn | a task waits long behind a hold of its own client | `lock`, `hold`, `waits` |
//! | warn | renewed again | `lock`, `hold` |
//! | warn | not released yet | `lock`, `error` |
//! | warn | campaigns again | `election`, `error` |
//! | info | firing passed | `lock`, `firing`, `latest` |
//! | info | ticket ended | `lock`, `hold`, `why` |
//! | warn | others use the semaphore with fewer permits | `lock`, `permits`, `fewer` |
//! | warn | voter in quarantine: its votes count for no new lock | `voter`, `why`, `ends_in` |
//! | warn | quarantine over: the voter's votes count for new locks | `voter` |
//! | warn | no quorum: no lock is given or renewed | `answering`, `needed`, `voters`, `missing` |
//! | warn | the quorum is back | `answering`, `needed`, `voters`, `missing` |
//! | warn | the voter takes no new votes | `voter`, `shard`, `why` |
//! | warn | the voter takes new votes again | `voter`, `shard` |
//! | warn | connection lost | `voter`, `shard`, `why` |
//! | warn | connected | `voter`, `shard`, `run_id`, `age` |
//! | warn | clients agree about the voters again | `voter` |
//! | warn | the voter is a server of its own again | `voter` |
//! | warn | the voter shares no server any more | `voter` |
//! | warn | the server deletes no votes any more | `server` |
//! | warn | not reached yet; it is tried again and again | `voter`, `why` |
//! | warn | this machine stood still: leases end sooner | `by` |
//! | warn | votes may be gone at any time | `server`, `why` |
//! | warn | the fingerprint of a server cannot be read: deleted data go unnoticed | `server`, `cause` |
//! | warn | the fingerprint of a server can be read again | `server` |
//! | warn | no server tells of the cluster | `cause` |
//! | warn | a server tells of the cluster again | `servers` |
//! | warn | cluster-require-full-coverage: one dead primary takes the whole cluster | `server` |
//! | warn | two voters share a server | `voter`, `other`, `server` |
//! | warn | an even number of voters survives no more failures than one voter fewer | `voters` |
//! | warn | events are missing: the log takes too long | `missing` |
//! | info | client connected | `client` |
//! | info | connected | `voter`, `shard`, `run_id`, `age` |
//! | info | connection closed | `voter`, `shard` |
//! | info | a voter came back as another | `voter`, `durable`, `data` |
//! | debug | renewal failed | `lock`, `hold`, `left`, `voters` |
//! | debug | the fingerprint of a server cannot be read now | `server`, `why` |
//! | debug | hash slots have moved | `voter`, `from`, `to`, `lost` |
//! | debug | redirected | `voter`, `slot`, `at`, `redirect` |
//!
//! A thread named `quorate-log` reports the events and the span `renew`, in their order. So no lock
//! waits for a subscriber that blocks. If 16,384 events wait, further events are dropped and
//! counted. Each event goes to the subscriber that was current where the event arose.
//! [`Quorate::close`] waits for the log; a program that ends without it can call [`log::flush`].
//! The spans `acquire` and `release` begin and end in the task of the caller. Recorders of metrics
//! are called where something is counted, so they must not block.
//!
//! fred, the Redis client underneath, writes two lines of its own by the crate `log` for each
//! server that is lost. They add nothing to the events above. **Switch them off** if your logger
//! may block, because they come from the thread that renews locks: with `tracing-subscriber`, by
//! the filter `info,fred=off`. On the thread of the clients, no subscriber of `tracing` gets them.
//!
//! `left` is the rest of the validity. If renewals fail one after the other, only the first failure
//! is a warning. The end of a trouble is logged at *warn* too, so that a service that logs from
//! *warn* on sees both: *connected* is a warning after *connection lost* and *not reached yet*.
//!
//! # Features
//!
//! All are off by default.
//!
//! | feature | adds |
//! |---|---|
//! | `tls` | `rediss://` addresses |
//! | `embedded` | voters inside the process, for tests without a server |
//! | `blocking` | the module `blocking`: locks for programs without async |
//! | `serde` | `Serialize` for what clients report, and for ids, owners and tokens: see below |
//! | `cli` | the program `quorate`, with `serde` and `tls`; nothing else for the library |
//!
//! With `serde`, [`HoldId`], [`HoldTicket`], [`Owner`] and [`Token`] are `Serialize` and
//! `Deserialize`. An owner that is read in another process is another owner there. [`Status`],
//! [`Survey`], [`FoundLocks`], [`LockView`], [`Cause`] and [`Quarantine`] are `Serialize` only.
//! Times are whole milliseconds, in fields that end with `_ms`, or microseconds (`_us`). A voter
//! that did not answer has an `error` instead.
//!
//! # Runtime
//!
//! All clients of servers share one thread of the process, with a tokio runtime of its own. It
//! drives their connections, and renews and releases what they hold, whatever the threads of the
//! program do. Call from any runtime that has a timer (`enable_time`), from several runtimes, or
//! from threads without one. Guards may be dropped on any thread. A forked process has to connect
//! anew: in it, all clients of its parent are closed, and all locks of its parent have ended. The
//! parent keeps them. [`Builder::runtime`] runs a client on another runtime. A second thread
//! reports the [log](#log).

#![cfg_attr(docsrs, feature(doc_cfg))]

mod acquire;
#[cfg(feature = "blocking")]
pub mod blocking;
mod client;
mod client_thread;
mod clock;
#[cfg(feature = "embedded")]
pub mod embedded;
mod fence;
mod hold;
mod keys;
mod kinds;
mod locks;
pub mod log;
pub mod metric;
mod mutant;
// Public, so that the models in `tests/proofs` run the decisions themselves, and no copy of them
// (design 1); hidden, as it is no part of the interface.
#[doc(hidden)]
pub mod proto;
mod redisson;
mod scripts;
mod series;
mod settings;
mod signal;
mod sync;
mod voter;

use mutant::mutant;

pub use client::{
    Builder, Cluster, Quorate, SetStatus, SharedPrimaries, Status, Survey, VoterSet, VoterStatus,
    VoterSurvey,
};
pub use fence::{FenceGate, Stale};
pub use hold::{HoldView, Lost};
pub use kinds::Preference;
pub use locks::{
    Admin, AllGuard, Election, Firing, FiringDone, FoundLocks, Holder, Leadership, LockAll,
    LockState, LockView, Lockable, Mutex, MutexGuard, Observed, Observer, Once, OnceGuard,
    OnceOutcome, PermitGuard, ReadGuard, RwLock, Semaphore, SemaphoreView, VoterView, Waiting,
    WriteGuard,
};
pub use proto::{
    Cause, ClockOffset, ConfigurationEntry, Error, ErrorKind, FoundLock, HoldId, HoldTicket,
    HolderKind, Leader, LockKind, Owner, Permission, Persistence, Quarantine, Quarantined, Reason,
    RestartGuard, ServerError, ServerInfo, ServerReport, Side, Token, Verdict, VoterReport,
};
pub use redisson::Redisson;
#[cfg(feature = "tls")]
pub use voter::Tls;
pub use voter::{Address, Credentials};

/// Every Lua script this crate runs, as name and source, for audits.
///
/// ```
/// assert!(quorate::scripts().any(|(name, _)| name == "mutex/acquire"));
/// ```
pub fn scripts() -> impl Iterator<Item = (&'static str, &'static str)> {
    scripts::ALL.iter().map(|script| (script.name, script.source.as_str()))
}

/// The code in the README and in the book is run as well.
#[cfg(doctest)]
mod book {
    #[doc = include_str!("../README.md")]
    mod readme {}
    #[doc = include_str!("../docs/README.md")]
    mod contents {}
    #[doc = include_str!("../docs/start.md")]
    mod start {}
    #[doc = include_str!("../docs/kinds.md")]
    mod kinds {}
    #[doc = include_str!("../docs/addresses.md")]
    mod addresses {}
    #[doc = include_str!("../docs/deployment.md")]
    mod deployment {}
    #[doc = include_str!("../docs/guarantees.md")]
    mod guarantees {}
    #[doc = include_str!("../docs/failures.md")]
    mod failures {}
    #[doc = include_str!("../docs/fencing.md")]
    mod fencing {}
    #[doc = include_str!("../docs/testing.md")]
    mod testing {}
    #[doc = include_str!("../docs/redisson.md")]
    mod redisson {}
    #[doc = include_str!("../docs/operations.md")]
    mod operations {}
    #[doc = include_str!("../docs/changing-voters.md")]
    mod changing_voters {}
    #[doc = include_str!("../docs/performance.md")]
    mod performance {}
    #[doc = include_str!("../docs/how-it-works.md")]
    mod how_it_works {}
    #[doc = include_str!("../docs/settings.md")]
    mod settings {}
    #[doc = include_str!("../docs/comparison.md")]
    mod comparison {}
    #[doc = include_str!("../docs/switching.md")]
    mod switching {}
    #[doc = include_str!("../docs/protocol.md")]
    mod protocol {}
    #[doc = include_str!("../docs/versions.md")]
    mod versions {}
}
