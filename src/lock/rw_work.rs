//! Work that is run under a read/write lock.

use super::{RwLock, exclusive::after_work};
use crate::words::{Error, Token};

impl RwLock {
    /// Reads, works and gives the read back, as [`Mutex::run`](crate::Mutex::run) does: waits as
    /// [`read`](Self::read) does, drops the work the moment the read is lost, and releases when the
    /// work is done or has failed. Reads have no [`Token`], so the work is given none.
    ///
    /// # Errors
    ///
    /// That of the work; or, made into one of those: as [`read`](Self::read), and
    /// [`is_lost`](Error::is_lost) if the read was lost before the work was done.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work, gives up the place in the queue, and releases the read
    /// in the background.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # type Error = Box<dyn std::error::Error>;
    /// # async fn total() -> Result<u32, Error> { Ok(42) }
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// let total = quorum.rw_lock("prices").run_read(total).await?;
    /// assert_eq!(total, 42);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn run_read<T, E: From<Error>, W: Future<Output = Result<T, E>>>(
        &self,
        work: impl FnOnce() -> W,
    ) -> Result<T, E> {
        let guard = self.read().await?;
        let done = guard.try_while_held(work()).await;
        after_work(done, guard.release().await)
    }

    /// Writes, works and gives the write back, as [`Mutex::run`](crate::Mutex::run) does: waits as
    /// [`write`](Self::write) does, drops the work the moment the write is lost, and releases when
    /// the work is done or has failed. The work is given its [`Token`].
    ///
    /// # Errors
    ///
    /// That of the work; or, made into one of those: as [`write`](Self::write), and
    /// [`is_lost`](Error::is_lost) if the write was lost before the work was done.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work, gives up the place in the queue, and releases the write
    /// in the background.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # type Error = Box<dyn std::error::Error>;
    /// # async fn raise(_: quorate::Token) -> Result<u32, Error> { Ok(43) }
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// let price = quorum.rw_lock("prices").run_write(raise).await?;
    /// assert_eq!(price, 43);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn run_write<T, E: From<Error>, W: Future<Output = Result<T, E>>>(
        &self,
        work: impl FnOnce(Token) -> W,
    ) -> Result<T, E> {
        let guard = self.write().await?;
        let done = guard.try_while_held(work(guard.token())).await;
        after_work(done, guard.release().await)
    }
}
