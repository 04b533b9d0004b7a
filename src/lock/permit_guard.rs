//! The guard of permits.

use super::guard::guard;
use crate::words::Slots;

guard! {
    /// Proof that this client has a permit of a [`Semaphore`](crate::Semaphore), or several, for as
    /// long as [`is_held`](Self::is_held) says so.
    ///
    /// It behaves as a [`MutexGuard`](crate::MutexGuard) does. Each hold has a lease of its own:
    /// renewing or releasing it changes nothing for others. All of its permits are held, renewed
    /// and lost together.
    ///
    /// It has no token: several work at the same time, so there is no latest one for the protected
    /// side to prefer. It has [`slots`](Self::slots) instead.
    PermitGuard, "semaphore(\"exports\", 3).acquire()"
}

impl PermitGuard {
    fn given(&self) -> &Slots {
        self.0.slots().expect("whoever has permits has slots")
    }

    /// How many permits it has.
    pub fn permits(&self) -> u32 {
        u32::try_from(self.given().list().len()).unwrap_or(u32::MAX)
    }

    /// The number of its permit, or of its first: from 0 to one less than the semaphore has
    /// permits. No other hold has this number at the same time, so it can name one of so many
    /// things: a port, a shard, a connection.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// let semaphore = quorum.semaphore("exports", 2);
    /// let (one, other) = (semaphore.acquire().await?, semaphore.acquire().await?);
    /// assert_eq!(one.slot() + other.slot(), 1); // one has 0, the other 1
    /// # Ok(())
    /// # }
    /// ```
    pub fn slot(&self) -> u32 {
        u32::from(self.given().list()[0])
    }

    /// The numbers of all its permits.
    pub fn slots(&self) -> Vec<u32> {
        self.given().list().iter().copied().map(u32::from).collect()
    }
}
