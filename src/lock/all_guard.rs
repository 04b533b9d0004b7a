//! The guard of several locks.

use std::{fmt, future::poll_fn, pin::pin, task::Poll, time::Duration};

use futures::future::join_all;

use crate::{
    hold::{Entry, Lost, first_loss, one_is_lost, stand_or_fall},
    words::{Error, HoldId, Token},
};

/// Proof that this client holds all locks of a [`LockAll`](crate::LockAll), for as long as
/// [`is_held`](Self::is_held) says so.
///
/// They stand or fall together: when one of them is lost, this guard is, and the others are given
/// back. Dropping it releases all of them in the background: dropping never blocks and never fails.
#[must_use = "the locks are released when the guard is dropped"]
pub struct AllGuard(Vec<Entry>);

impl AllGuard {
    pub(super) fn new(entries: Vec<Entry>) -> Self {
        stand_or_fall(&entries);
        Self(entries)
    }

    /// The names of the locks, in the order of the list.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(Entry::name)
    }

    /// The name and the hold of each lock, in the order of the list.
    pub fn holds(&self) -> impl Iterator<Item = (&str, &HoldId)> {
        self.0.iter().map(|entry| (entry.name(), entry.id()))
    }

    /// The name of each lock with its fencing token, in the order of the list; a read has none.
    pub fn tokens(&self) -> impl Iterator<Item = (&str, Option<Token>)> {
        self.0.iter().map(|entry| (entry.name(), entry.token()))
    }

    /// Whether all locks may still be relied on. Read from the clock at each call: never true at or
    /// after the earliest of their deadlines.
    pub fn is_held(&self) -> bool {
        self.0.iter().all(Entry::is_held)
    }

    /// The time for which all locks may be relied on if no renewal succeeds; zero once one is lost.
    pub fn remaining(&self) -> Duration {
        self.0.iter().map(Entry::remaining).min().unwrap_or_default()
    }

    /// Completes when one of the locks is lost, with the reason. [`Error::lock`] says which. What
    /// is returned borrows nothing and can be cloned and spawned; once the locks are
    /// [released](Self::release), it completes as well.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect on the locks.
    pub fn lost(&self) -> Lost {
        one_is_lost(&self.0)
    }

    /// Runs `work` as long as all locks are held: drops it the moment one is lost.
    ///
    /// # Errors
    ///
    /// [`is_lost`](Error::is_lost): this lock was lost, and `work` was dropped unfinished; or it
    /// has ended after the loss, and what it returned is dropped.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `work`; the locks stay held.
    pub async fn while_held<F: Future>(&self, work: F) -> Result<F::Output, Error> {
        let done = self.until_lost(work).await?;
        // Its thread may have been blocked since a lock was lost.
        first_loss(&self.0).map_or(Ok(done), Err)
    }

    async fn until_lost<F: Future>(&self, work: F) -> Result<F::Output, Error> {
        let (mut lost, mut work) = (pin!(self.lost()), pin!(work));
        poll_fn(|context| {
            // The clock first: a timer may be late, and no work may follow the deadline.
            if let Some(error) = first_loss(&self.0) {
                return Poll::Ready(Err(error));
            }
            if let Poll::Ready(error) = lost.as_mut().poll(context) {
                return Poll::Ready(Err(error));
            }
            work.as_mut().poll(context).map(Ok)
        })
        .await
    }

    /// [`while_held`](Self::while_held) for work that can fail: its error and the loss of a lock
    /// are one result.
    ///
    /// # Errors
    ///
    /// That of `work`; or, made into one of those, [`is_lost`](Error::is_lost).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `work`; the locks stay held.
    pub async fn try_while_held<T, E: From<Error>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let done = self.until_lost(work).await?;
        match first_loss(&self.0) {
            Some(error) if done.is_ok() => Err(error.into()),
            _ => done,
        }
    }

    /// Renews all leases now, and makes them this long at least, as
    /// [`MutexGuard::extend`](crate::MutexGuard::extend) does one.
    ///
    /// # Errors
    ///
    /// As [there](crate::MutexGuard::extend), for the first lock of the list that has one.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the locks held, with the old leases or the new ones.
    pub async fn extend(&self, lease: Duration) -> Result<(), Error> {
        let all = self.0.iter().map(|entry| entry.extend(Some(lease)));
        join_all(all).await.into_iter().collect()
    }

    /// Gives all locks back. Returns when a majority has confirmed each; slow voters are told in
    /// the background.
    ///
    /// # Errors
    ///
    /// The first of these in the order of the list; all locks are given back all the same.
    /// [`is_lost`](Error::is_lost): one had been lost before; of several the one that took the
    /// others along. [`is_unconfirmed`](Error::is_unconfirmed): no majority confirmed in time; it
    /// goes on in the background.
    ///
    /// # Cancel safety
    ///
    /// The releases are sent when this is first polled; dropping the future afterwards loses only
    /// the answers. Dropped before, the guard is dropped: that releases as well.
    pub async fn release(self) -> Result<(), Error> {
        let lost = first_loss(&self.0);
        let released = join_all(self.0.into_iter().map(Entry::release)).await;
        lost.map_or_else(|| released.into_iter().collect(), Err)
    }
}

impl fmt::Debug for AllGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AllGuard")
            .field("holds", &self.holds().collect::<Vec<_>>())
            .field("remaining", &self.remaining())
            .finish()
    }
}
