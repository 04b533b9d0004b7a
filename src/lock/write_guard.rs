//! The guard of a write.

use super::{
    ReadGuard,
    guard::{guard, token},
};
use crate::words::Error;

guard! {
    /// Proof that this client alone has an [`RwLock`](crate::RwLock), to write, for as long as
    /// [`is_held`](Self::is_held) says so.
    ///
    /// It behaves as a [`MutexGuard`](crate::MutexGuard) does.
    WriteGuard, "rw_lock(\"invoice:42\").write()"
}

token!(WriteGuard, "rw_lock(\"invoice:42\").write()");

impl WriteGuard {
    /// Reads as well, as a hold of its own with the same lease. It is given at once, whoever waits,
    /// and goes on when the write ends: nobody writes in between.
    ///
    /// # Errors
    ///
    /// [`is_lost`](Error::is_lost): the write is not held any more.
    /// [`is_not_entered`](Error::is_not_entered): no majority answered in time; the write is held
    /// as before. [`is_closed`](Error::is_closed): the client was closed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the write as it is, and undoes on all voters whatever was sent.
    pub async fn read(&self) -> Result<ReadGuard, Error> {
        self.0.granted().await.map(ReadGuard::new)
    }

    /// Makes a read of this write: nobody writes in between, and those enter who wait to read and
    /// stand behind no writer (see [`Preference`](crate::Preference)). Returns when a majority has
    /// the read, and a majority was told that the write has ended, or that takes too long; then it
    /// goes on in the background.
    ///
    /// Where the write was entered several times, only this entry of it ends.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read), and [`is_lost`](Error::is_lost) where the voters turn out to have
    /// lost the write before; then the write is released all the same. To keep it where reading
    /// fails, call [`read`](Self::read) and [`release`](Self::release) one after the other.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future releases the write, and the read if it has come.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// let lock = quorum.rw_lock("prices");
    /// let writing = lock.write().await?;
    /// let reading = writing.downgrade().await?;
    /// assert!(lock.try_read().await?.is_some()); // others read as well
    /// assert!(lock.try_write().await?.is_none());
    /// # drop(reading);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn downgrade(self) -> Result<ReadGuard, Error> {
        let read = self.read().await?;
        match self.release().await {
            // Then the read may have been given by voters that had forgotten the write.
            Err(error) if error.is_lost() => Err(error),
            // Too few answers change nothing for the read; the release is sent again.
            _ => Ok(read),
        }
    }
}
