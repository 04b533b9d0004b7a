//! The guard of a mutex.

use std::{fmt, time::Duration};

use crate::{
    hold::Entry,
    words::{Error, HoldId},
};

/// Proof that this client holds a [`Mutex`](crate::Mutex) or a [`FairMutex`](crate::FairMutex), for
/// as long as [`is_held`](Self::is_held) says so.
///
/// Dropping it releases the lock in the background: dropping never blocks and never fails.
/// [`release`](Self::release) does the same and says whether it worked. Neither a guard nor the
/// watchdog behind it can keep a lock whose voters are gone: watch [`lost`](Self::lost), or do the
/// work inside [`while_held`](Self::while_held).
#[must_use = "the lock is released when the guard is dropped"]
pub struct MutexGuard(Entry);

impl MutexGuard {
    pub(super) fn new(entry: Entry) -> Self {
        Self(entry)
    }

    /// The lock's name.
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// The hold, as it stands on the voters and in other clients' errors.
    pub fn hold(&self) -> &HoldId {
        self.0.id()
    }

    /// How often the owner has entered and not left.
    pub fn count(&self) -> u32 {
        self.0.count()
    }

    /// Whether the lock may still be relied on. Read from the clock at each call: never true at or
    /// after the deadline, whatever the network, the watchdog or the machine did meanwhile.
    pub fn is_held(&self) -> bool {
        self.0.is_held()
    }

    /// The time for which the lock may be relied on if no renewal succeeds; zero once it is lost.
    pub fn remaining(&self) -> Duration {
        self.0.remaining()
    }

    /// Completes when the lock is lost, with the reason: at the deadline by the clock alone, or as
    /// soon as the voters say that another hold has them or that this one was ended by force.
    ///
    /// On Linux the deadline counts time for which the machine was suspended; after such a sleep
    /// this future completes within half a second, while [`is_held`](Self::is_held) and
    /// [`while_held`](Self::while_held) know at once.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect on the lock.
    pub async fn lost(&self) -> Error {
        self.0.lost().await
    }

    /// Runs `work` as long as the lock is held: drops it the moment the lock is lost.
    ///
    /// What `work` has spawned, or has already sent elsewhere, is not called back.
    ///
    /// # Errors
    ///
    /// [`is_lost`](Error::is_lost): the lock was lost and `work` was dropped unfinished.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `work`; the lock stays held.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// let guard = quorum.mutex("invoice:42").lock().await?;
    /// let sum = guard.while_held(async { 20 + 22 }).await?;
    /// assert_eq!(sum, 42);
    /// guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn while_held<F: Future>(&self, work: F) -> Result<F::Output, Error> {
        self.0.while_held(work).await
    }

    /// Enters again; the lock is released when every guard of it is. Goes through the quorum and
    /// renews the lease on the way.
    ///
    /// # Errors
    ///
    /// [`is_lost`](Error::is_lost): the lock is not held any more.
    /// [`is_unconfirmed`](Error::is_unconfirmed): no majority answered in time; the lock is still
    /// held, but this entry does not count.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the count as it was before.
    pub async fn reenter(&self) -> Result<Self, Error> {
        self.0.reenter().await.map(Self)
    }

    /// Leaves: the last guard of a hold gives the lock back. Returns when a majority has confirmed;
    /// slow voters are told in the background.
    ///
    /// # Errors
    ///
    /// [`is_lost`](Error::is_lost): the lock had been lost before; nothing of the next holder's was
    /// touched. [`is_unconfirmed`](Error::is_unconfirmed): no majority confirmed in time; it goes
    /// on in the background, and the lock is free when the lease ends at the latest.
    ///
    /// # Cancel safety
    ///
    /// The release is sent when this is first polled; dropping the future afterwards loses only the
    /// answer. Dropped before, the guard is dropped: that releases as well.
    pub async fn release(self) -> Result<(), Error> {
        self.0.release().await
    }
}

impl fmt::Debug for MutexGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MutexGuard")
            .field("name", &self.name())
            .field("hold", self.hold())
            .field("count", &self.count())
            .field("remaining", &self.remaining())
            .finish()
    }
}
