//! The fair mutex.

use std::{fmt, sync::Arc, time::Duration};

use super::{
    LockParts, LockView, MutexGuard,
    exclusive::Exclusive,
    handle::{enter, enter_or_busy, given_token, wait, work_under},
};
use crate::{
    kinds::FAIR_MUTEX,
    proto::{Error, Owner, Token},
};

/// A [`Mutex`](crate::Mutex) that is given in the order of asking: first come, first served, over
/// all voters and all clients.
///
/// Made by [`Quorate::fair_mutex`](crate::Quorate::fair_mutex). It has everything that a mutex has.
/// What differs is the order. Each call of [`lock`](Self::lock) that finds the lock taken stands in
/// the queue on the voters, with a ticket that a majority has agreed on and that never changes
/// afterwards. Everybody who asks after that comes later.
///
/// A release calls the first in the queue and nobody else. A waiter that gives up leaves at once;
/// one that dies is passed over after the
/// [waiter deadline](crate::Builder::waiter_deadline) (5 s), and a holder that dies when its lease
/// ends, as with a mutex. How long the lock is held does not change the order.
///
/// # What is not guaranteed
///
/// - The order of two that ask at the same time, within the round trip or two until the tickets of
///   both are fixed.
/// - The order between different clients, where more than 512 tasks of one client wait. Only 512 of
///   them stand in the queue at the same time. The others wait in the client, in their order, until
///   one of these enters or leaves.
/// - The place of a waiter, if so many voters forget it that no majority has it any more: they
///   restarted without their data, or were out of reach for longer than the waiter deadline. The
///   waiter keeps its ticket and sends it again, but others may get the lock or a lower ticket
///   first.
///
/// It costs more than a mutex where it is contended: every waiter in the queue has an entry on each
/// voter, which it refreshes every third of the waiter deadline. Uncontended it costs the same.
#[derive(Clone)]
#[must_use = "it does nothing until it is locked"]
pub struct FairMutex(pub(super) Exclusive);

impl FairMutex {
    pub(crate) fn new(parts: &Arc<LockParts>, name: &str) -> Self {
        Self(Exclusive::new(parts, name, &FAIR_MUTEX))
    }

    /// Acquires for this owner, who enters again at once while it holds the lock.
    pub fn owner(self, owner: &Owner) -> Self {
        Self(self.0.owner(*owner))
    }

    /// As [`Mutex::lease`](crate::Mutex::lease).
    pub fn lease(self, lease: Duration) -> Self {
        Self(self.0.lease(lease, true))
    }

    /// As [`Mutex::lease_fixed`](crate::Mutex::lease_fixed).
    pub fn lease_fixed(self, lease: Duration) -> Self {
        Self(self.0.lease(lease, false))
    }

    /// As [`Mutex::hold_at_most`](crate::Mutex::hold_at_most).
    pub fn hold_at_most(self, time: Duration) -> Self {
        Self(self.0.hold_at_most(time))
    }

    /// Acquires the lock, behind everybody who has asked before.
    ///
    /// # Errors
    ///
    /// As [`Mutex::lock`](crate::Mutex::lock). The place in the queue is kept until then.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up the place in the queue, and undoes on all voters whatever was
    /// sent. In `select!` in a loop, keep the future: a new one has a new place, at the end.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// let mutex = quorum.fair_mutex("invoice:42");
    /// let first = mutex.lock().await?;
    /// let mut workers = Vec::new();
    /// for waiting in 1..=2 {
    ///     workers.push(tokio::spawn(mutex.lock()));
    ///     while mutex.inspect().await?.waiting.len() < waiting {
    ///         tokio::task::yield_now().await;
    ///     }
    /// }
    /// first.release().await?;
    /// let second = workers.remove(0).await.expect("it does not panic")?;
    /// assert_eq!(mutex.inspect().await?.waiting.len(), 1); // the third still waits
    /// # drop(second);
    /// # Ok(())
    /// # }
    /// ```
    pub fn lock(&self) -> impl Future<Output = Result<MutexGuard, Error>> + Send + use<> {
        wait(self.0.request(), MutexGuard::new)
    }

    /// Locks, works and gives the lock back, as [`Mutex::run`](crate::Mutex::run) does; behind
    /// everybody who has asked before.
    ///
    /// # Errors
    ///
    /// As [`Mutex::run`](crate::Mutex::run).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work, gives up the place in the queue, and releases the lock
    /// in the background.
    pub fn run<T, E: From<Error>, F: FnOnce(Token) -> W, W: Future<Output = Result<T, E>>>(
        &self,
        work: F,
    ) -> impl Future<Output = Result<T, E>> + use<T, E, F, W> {
        work_under(self.0.request(), |entry| work(given_token(entry)))
    }

    /// Acquires the lock if no other hold has it and nobody waits for it; `None` otherwise. It does
    /// not pass those who wait, and stands in no queue itself.
    ///
    /// # Errors
    ///
    /// As [`Mutex::try_lock`](crate::Mutex::try_lock).
    ///
    /// # Cancel safety
    ///
    /// As [`Mutex::try_lock`](crate::Mutex::try_lock).
    pub fn try_lock(
        &self,
    ) -> impl Future<Output = Result<Option<MutexGuard>, Error>> + Send + use<> {
        enter(self.0.request(), self.0.handle.once(), MutexGuard::new)
    }

    /// As [`lock`](Self::lock), waiting no longer than `limit`; `None` if its turn had not come by
    /// then. Nothing is left behind in the queue.
    ///
    /// # Errors
    ///
    /// As [`Mutex::lock_within`](crate::Mutex::lock_within): `is_no_quorum` only at the limit.
    ///
    /// # Cancel safety
    ///
    /// As [`lock`](Self::lock).
    pub fn lock_within(
        &self,
        limit: Duration,
    ) -> impl Future<Output = Result<Option<MutexGuard>, Error>> + Send + use<> {
        enter(self.0.request(), self.0.handle.within(limit), MutexGuard::new)
    }

    /// As [`lock_within`](Self::lock_within), but a lock that is still taken is an error. It says
    /// who holds the lock and for how long, so an HTTP handler can answer 409. For `Retry-After`
    /// take a number of your own: see [`Error::lease_left`].
    ///
    /// # Errors
    ///
    /// [`is_busy`](Error::is_busy): another hold has the lock; see [`Error::holder`] and
    /// [`Error::lease_left`]. All others as [`lock_within`](Self::lock_within).
    ///
    /// # Cancel safety
    ///
    /// As [`lock`](Self::lock).
    pub fn lock_or_busy(
        &self,
        limit: Duration,
    ) -> impl Future<Output = Result<MutexGuard, Error>> + Send + use<> {
        enter_or_busy(self.0.request(), self.0.handle.within(limit), MutexGuard::new)
    }

    /// Whether a majority of the voters has given its vote, mostly to a holder. Returns as soon as
    /// a majority has said yes or no. The answer may be outdated at once; to work, acquire it.
    ///
    /// # Errors
    ///
    /// As [`inspect`](Self::inspect); [`is_no_quorum`](Error::is_no_quorum) also where the voters
    /// that did not answer decide.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// let mutex = quorum.fair_mutex("invoice:42");
    /// let guard = mutex.lock().await?;
    /// assert!(mutex.is_locked().await?);
    /// guard.release().await?;
    /// assert!(!mutex.is_locked().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_locked(&self) -> impl Future<Output = Result<bool, Error>> + Send + use<> {
        self.0.clone().ask_whether_locked()
    }

    /// As [`Mutex::inspect`](crate::Mutex::inspect).
    ///
    /// # Errors
    ///
    /// As [`Mutex::inspect`](crate::Mutex::inspect).
    pub fn inspect(&self) -> impl Future<Output = Result<LockView, Error>> + Send + use<> {
        self.0.clone().inspect()
    }
}

impl fmt::Debug for FairMutex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.show("FairMutex", f)
    }
}
