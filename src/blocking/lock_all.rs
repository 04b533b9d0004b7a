//! Several locks at once: the async ones, with the thread of their client.

use std::{fmt, sync::Arc, time::Duration};

use super::client_thread::ClientThread;
use crate::{
    locks::{self, after_work},
    proto::{Error, HoldId, Token},
};

/// [`quorate::LockAll`](crate::LockAll) for programs without async.
#[derive(Clone)]
#[must_use = "it does nothing until it is locked"]
pub struct LockAll {
    all: locks::LockAll,
    thread: Arc<ClientThread>,
}

impl LockAll {
    pub(super) fn new(all: locks::LockAll, thread: &Arc<ClientThread>) -> Self {
        Self { all, thread: Arc::clone(thread) }
    }

    /// [`LockAll::lock`](crate::LockAll::lock); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::LockAll::lock). [`is_inside_runtime`](Error::is_inside_runtime): nothing
    /// was sent.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect_blocking()?;
    /// let accounts = [quorum.mutex("account:1"), quorum.mutex("account:2")];
    /// let guard = quorum.lock_all(accounts).lock()?;
    /// assert!(guard.is_held());
    /// guard.release()
    /// # }
    /// ```
    pub fn lock(&self) -> Result<AllGuard, Error> {
        let guard = self.thread.wait(self.all.lock())??;
        Ok(AllGuard { guard, thread: Arc::clone(&self.thread) })
    }

    /// [`LockAll::try_lock`](crate::LockAll::try_lock); blocks for no longer than it takes to ask.
    ///
    /// # Errors
    ///
    /// As [there](crate::LockAll::try_lock). [`is_inside_runtime`](Error::is_inside_runtime):
    /// nothing was sent.
    pub fn try_lock(&self) -> Result<Option<AllGuard>, Error> {
        let guard = self.thread.wait(self.all.try_lock())??;
        Ok(guard.map(|guard| AllGuard { guard, thread: Arc::clone(&self.thread) }))
    }

    /// [`LockAll::lock_or_busy`](crate::LockAll::lock_or_busy); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::LockAll::lock_or_busy). [`is_inside_runtime`](Error::is_inside_runtime):
    /// nothing was sent.
    pub fn lock_or_busy(&self, limit: Duration) -> Result<AllGuard, Error> {
        let guard = self.thread.wait(self.all.lock_or_busy(limit))??;
        Ok(AllGuard { guard, thread: Arc::clone(&self.thread) })
    }

    /// Locks all, works and gives them back, as
    /// [`Mutex::run`](crate::blocking::Mutex::run) does for one: the work runs to its end also
    /// where a lock is lost. It is given the tokens, in the order of the list.
    ///
    /// # Errors
    ///
    /// As [there](crate::blocking::Mutex::run).
    pub fn run<T, E: From<Error>>(
        &self,
        work: impl FnOnce(Vec<Option<Token>>) -> Result<T, E>,
    ) -> Result<T, E> {
        let guard = self.lock()?;
        let done = work(guard.tokens().map(|(_, token)| token).collect());
        after_work(done, guard.release())
    }

    /// [`LockAll::lock_within`](crate::LockAll::lock_within); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::LockAll::lock_within). [`is_inside_runtime`](Error::is_inside_runtime):
    /// nothing was sent.
    pub fn lock_within(&self, limit: Duration) -> Result<Option<AllGuard>, Error> {
        let guard = self.thread.wait(self.all.lock_within(limit))??;
        Ok(guard.map(|guard| AllGuard { guard, thread: Arc::clone(&self.thread) }))
    }
}

impl fmt::Debug for LockAll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.all.fmt(f)
    }
}

/// [`quorate::AllGuard`](crate::AllGuard) for programs without async.
///
/// Dropping it releases all locks in the background: dropping never blocks and never fails.
#[must_use = "the locks are released when the guard is dropped"]
pub struct AllGuard {
    guard: locks::AllGuard,
    thread: Arc<ClientThread>,
}

impl AllGuard {
    /// The names of the locks, in the order of the list.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.guard.names()
    }

    /// The name and the hold of each lock, in the order of the list.
    pub fn holds(&self) -> impl Iterator<Item = (&str, &HoldId)> {
        self.guard.holds()
    }

    /// The name of each lock with its fencing token, in the order of the list; a read has none.
    pub fn tokens(&self) -> impl Iterator<Item = (&str, Option<Token>)> {
        self.guard.tokens()
    }

    /// Whether all locks may still be relied on. Read from the clock at each call: long work asks
    /// before each of its steps.
    pub fn is_held(&self) -> bool {
        self.guard.is_held()
    }

    /// The time for which all locks may be relied on if no renewal succeeds; zero once one is lost.
    pub fn remaining(&self) -> Duration {
        self.guard.remaining()
    }

    /// Waits until one of the locks is lost, no longer than `limit`, and returns why; `None` if all
    /// are still held then.
    ///
    /// # Errors
    ///
    /// [`is_inside_runtime`](Error::is_inside_runtime) only.
    pub fn lost_within(&self, limit: Duration) -> Result<Option<Error>, Error> {
        let Self { guard, thread } = self;
        thread.wait(async move { tokio::time::timeout(limit, guard.lost()).await.ok() })
    }

    /// [`AllGuard::extend`](crate::AllGuard::extend); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::AllGuard::extend). [`is_inside_runtime`](Error::is_inside_runtime).
    pub fn extend(&self, lease: Duration) -> Result<(), Error> {
        self.thread.wait(self.guard.extend(lease))?
    }

    /// [`AllGuard::release`](crate::AllGuard::release); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::AllGuard::release). [`is_inside_runtime`](Error::is_inside_runtime): the
    /// locks are released in the background.
    pub fn release(self) -> Result<(), Error> {
        let Self { guard, thread } = self;
        thread.wait(guard.release())?
    }
}

impl fmt::Debug for AllGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.guard.fmt(f)
    }
}
