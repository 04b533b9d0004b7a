//! The read/write lock.

use std::time::Duration;

use super::{
    LockView,
    admin::{inspect, is_locked},
    guard::{guard, token},
    handle::{given_token, lock, taking},
};
use crate::{
    hold::{Entry, HoldView, Lost},
    kinds::{Preference, READ, WRITE},
    proto::{Error, HoldId, Owner, Token},
};

lock! {
    /// A reentrant read/write lock held by majorities of the voters: one writes alone, or many
    /// read.
    ///
    /// Made by [`Quorate::rw_lock`](crate::Quorate::rw_lock); a cheap value that says which lock
    /// and how. Each read and each write is a *hold* with a lease of its own, renewed by itself: a
    /// reader that dies is gone at its own deadline, whatever other readers do.
    ///
    /// All waiters are in one queue on the voters, writers in the order of asking. The
    /// [`Preference`] of a reader decides where it waits. A release wakes the first writer, or all
    /// readers before it, and nobody else. A waiter that gives up leaves at once, and one that dies
    /// is passed over after the [waiter deadline](crate::Builder::waiter_deadline) (5 s).
    ///
    /// # Owners
    ///
    /// Without [`owner`](Self::owner) every acquisition is a hold of its own. An owner enters again
    /// what it reads, also past writers that wait, and what it writes. While it writes, it may read
    /// as well, at once: such a read goes on when the write ends, before anybody else can write
    /// (see [`WriteGuard::downgrade`]). While it only reads, it cannot write: that would wait for
    /// itself, and is [refused](Error::is_deadlock) at once, also where its read came while its
    /// write was waiting.
    ///
    /// Without an owner nothing shows that two guards are of one task, so a task that holds one and
    /// waits for another may wait for itself for ever: a write waits for the task's own read, and a
    /// second read waits behind a writer that waits for the first.
    ///
    /// # What is not guaranteed
    ///
    /// A read/write lock and the mutex of its name are two locks. (In [Redisson](crate::Redisson)
    /// they share one record.) Holds have the same guarantees as holds of a
    /// [`Mutex`](crate::Mutex): see there, and at the top of this crate.
    #[must_use = "it does nothing until it is locked"]
    RwLock;

    /// Acquires for this owner, who enters again at once what it holds.
    owner(owner: &Owner);

    /// As [`Mutex::lease`](crate::Mutex::lease).
    lease(lease: Duration);

    /// As [`Mutex::lease_fixed`](crate::Mutex::lease_fixed).
    lease_fixed(lease: Duration);

    /// As [`Mutex::hold_at_most`](crate::Mutex::hold_at_most), for each read and each write. A read
    /// that comes from a write guard, by [`downgrade`](WriteGuard::downgrade) or
    /// [`read`](WriteGuard::read), ends when the write would have ended. One that an owner asks for
    /// while it writes counts from its own grant.
    hold_at_most(time: Duration);

    /// As [`Mutex::note`](crate::Mutex::note), for each read and each write. A read that comes from
    /// a write has the note of the write.
    note(note: impl AsRef<str>);

    /// Whom its readers let pass; by default all [writers](Preference::Writers). A lock of
    /// [Redisson](crate::Redisson::rw_lock) knows [readers](Preference::Readers) only.
    preference(preference: Preference);
}

impl RwLock {
    taking! {
        |self| self.0.request(&READ) => ReadGuard;
        /// Acquires the lock to read, waiting for as long as somebody writes or comes before.
        ///
        /// # Errors
        ///
        /// As [`Mutex::lock`](crate::Mutex::lock). [`is_not_entered`](Error::is_not_entered) also
        /// where this owner writes, and no majority answered in time that it reads as well.
        ///
        /// # Cancel safety
        ///
        /// Dropping the future gives up the place in the queue, and undoes on all voters whatever
        /// was sent. In `select!` in a loop, keep the future: a new one has a new place.
        ///
        /// # Examples
        ///
        /// ```
        /// # #[tokio::main(flavor = "current_thread")]
        /// # async fn main() -> Result<(), quorate::Error> {
        /// # let voters = quorate::embedded::voters(3);
        /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
        /// let lock = quorum.rw_lock("prices");
        /// let (one, other) = (lock.read().await?, lock.read().await?);
        /// assert!(lock.try_write().await?.is_none());
        /// one.release().await?;
        /// other.release().await?;
        /// # Ok(())
        /// # }
        /// ```
        read;

        /// Acquires the lock to read, if nobody writes and no writer comes before; `None`
        /// otherwise.
        ///
        /// # Errors
        ///
        /// As [`read`](Self::read); `is_no_quorum` and `is_overloaded` as
        /// [`Mutex::try_lock`](crate::Mutex::try_lock).
        ///
        /// # Cancel safety
        ///
        /// As [`read`](Self::read).
        try_read;

        /// As [`read`](Self::read), waiting no longer than `limit`; `None` if the lock was not
        /// acquired by then. Nothing is left behind.
        ///
        /// # Errors
        ///
        /// As [`read`](Self::read), but `is_no_quorum` only at the limit; `is_overloaded` as
        /// [`Mutex::lock_within`](crate::Mutex::lock_within).
        ///
        /// # Cancel safety
        ///
        /// As [`read`](Self::read).
        read_within;

        /// As [`read_within`](Self::read_within), but a lock that is still taken is an error. It
        /// says who holds the lock and for how long, so an HTTP handler can answer 409. For
        /// `Retry-After` take a number of your own: see [`Error::lease_left`].
        ///
        /// # Errors
        ///
        /// [`is_busy`](Error::is_busy): another hold has the lock; see [`Error::holder`] and
        /// [`Error::lease_left`]. All others as [`read_within`](Self::read_within).
        ///
        /// # Cancel safety
        ///
        /// As [`read`](Self::read).
        read_or_busy;

        /// Reads, works and gives the read back, as [`Mutex::run`](crate::Mutex::run) does: waits
        /// as [`read`](Self::read) does, drops the work the moment the read is lost, and releases
        /// when the work is done or has failed. Reads have no [`Token`], so the work is given a
        /// [view](HoldView) of the hold.
        ///
        /// # Errors
        ///
        /// The error of the work; or, made into its type: as [`read`](Self::read), and
        /// [`is_lost`](Error::is_lost) if the read was lost before the work was done.
        ///
        /// # Cancel safety
        ///
        /// Dropping the future drops the work, gives up the place in the queue, and releases the
        /// read in the background.
        ///
        /// # Examples
        ///
        /// ```
        /// # #[tokio::main(flavor = "current_thread")]
        /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
        /// # type Error = Box<dyn std::error::Error>;
        /// # async fn total(_: quorate::HoldView) -> Result<u32, Error> { Ok(42) }
        /// # let voters = quorate::embedded::voters(3);
        /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
        /// let total = quorum.rw_lock("prices").run_read(total).await?;
        /// assert_eq!(total, 42);
        /// # Ok(())
        /// # }
        /// ```
        run_read[work: fn(HoldView)] => |entry| work(entry.view());
    }

    taking! {
        |self| self.0.request(&WRITE) => WriteGuard;
        /// Acquires the lock to write, behind everybody who comes before and all who read.
        ///
        /// # Errors
        ///
        /// As [`Mutex::lock`](crate::Mutex::lock). [`is_deadlock`](Error::is_deadlock): this owner
        /// reads the lock and does not write it. It is refused at once, also if its read came while
        /// this write was waiting.
        ///
        /// # Cancel safety
        ///
        /// As [`read`](Self::read).
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
        /// assert!(lock.try_read().await?.is_none());
        /// writing.release().await?;
        ///
        /// // With an owner, who may read it already:
        /// use quorate::{ErrorKind, Owner};
        ///
        /// let lock = lock.owner(&Owner::new());
        /// let reading = lock.read().await?;
        /// match lock.write().await {
        ///     Ok(writing) => writing.release().await?,
        ///     Err(error) => match error.kind() {
        ///         ErrorKind::Deadlock => reading.release().await?, // and write then
        ///         ErrorKind::NoQuorum => println!("try again later: {error}"),
        ///         ErrorKind::Lost | ErrorKind::NotEntered => println!("{error}"),
        ///         _ => return Err(error), // Invalid, Closed
        ///     },
        /// }
        /// # Ok(())
        /// # }
        /// ```
        write;

        /// Acquires the lock to write, if nobody holds it and nobody comes before; `None`
        /// otherwise. Of several tries at the same moment one succeeds.
        ///
        /// # Errors
        ///
        /// As [`write`](Self::write); `is_no_quorum` and `is_overloaded` as
        /// [`Mutex::try_lock`](crate::Mutex::try_lock).
        ///
        /// # Cancel safety
        ///
        /// As [`write`](Self::write).
        try_write;

        /// As [`write`](Self::write), waiting no longer than `limit`; `None` if the lock was not
        /// acquired by then. Nothing is left behind.
        ///
        /// # Errors
        ///
        /// As [`write`](Self::write), but `is_no_quorum` only at the limit; `is_overloaded` as
        /// [`Mutex::lock_within`](crate::Mutex::lock_within).
        ///
        /// # Cancel safety
        ///
        /// As [`write`](Self::write).
        write_within;

        /// As [`write_within`](Self::write_within), but a lock that is still taken is an error. It
        /// says who holds the lock and for how long, so an HTTP handler can answer 409. For
        /// `Retry-After` take a number of your own: see [`Error::lease_left`].
        ///
        /// # Errors
        ///
        /// [`is_busy`](Error::is_busy): another hold has the lock; see [`Error::holder`] and
        /// [`Error::lease_left`]. All others as [`write_within`](Self::write_within).
        ///
        /// # Cancel safety
        ///
        /// As [`write`](Self::write).
        write_or_busy;

        /// Writes, works and gives the write back, as [`Mutex::run`](crate::Mutex::run) does: waits
        /// as [`write`](Self::write) does, drops the work the moment the write is lost, and
        /// releases when the work is done or has failed. The work is given its [`Token`].
        ///
        /// # Errors
        ///
        /// The error of the work; or, made into its type: as [`write`](Self::write), and
        /// [`is_lost`](Error::is_lost) if the write was lost before the work was done.
        ///
        /// # Cancel safety
        ///
        /// Dropping the future drops the work, gives up the place in the queue, and releases the
        /// write in the background.
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
        run_write[work: fn(Token)] => |entry| work(given_token(entry));
    }

    /// Whether a majority of the voters has given its vote, to a writer or to readers, as
    /// [`Mutex::is_locked`](crate::Mutex::is_locked).
    ///
    /// # Errors
    ///
    /// As [there](crate::Mutex::is_locked).
    pub fn is_locked(&self) -> impl Future<Output = Result<bool, Error>> + Send + use<> {
        is_locked(&self.0, &READ)
    }

    /// Asks every voter who reads, who writes, and who waits, as
    /// [`Mutex::inspect`](crate::Mutex::inspect) does.
    ///
    /// # Errors
    ///
    /// As [`Mutex::inspect`](crate::Mutex::inspect).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// let lock = quorum.rw_lock("prices");
    /// let reading = lock.read().await?;
    /// let seen = lock.inspect().await?;
    /// assert_eq!(&seen.readers()[0].hold, reading.hold());
    /// assert_eq!((seen.writer(), seen.waiting()), (None, 0));
    /// # Ok(())
    /// # }
    /// ```
    pub fn inspect(&self) -> impl Future<Output = Result<LockView, Error>> + Send + use<> {
        inspect(&self.0, &READ)
    }
}

// The guard of a read.

guard! {
    /// Proof that this client reads under an [`RwLock`](crate::RwLock), maybe among others, for as
    /// long as [`is_held`](Self::is_held) says so. Nobody else writes meanwhile.
    ///
    /// It behaves as a [`MutexGuard`](crate::MutexGuard) does. Each read has a lease of its own:
    /// renewing or releasing it changes nothing for other readers.
    ReadGuard, "rw_lock(\"invoice:42\").read()"
}

// The guard of a write.

guard! {
    /// Proof that this client alone has an [`RwLock`](crate::RwLock), to write, for as long as
    /// [`is_held`](Self::is_held) says so.
    ///
    /// It behaves as a [`MutexGuard`](crate::MutexGuard) does.
    WriteGuard, "rw_lock(\"invoice:42\").write()"
}

token!(WriteGuard, "rw_lock(\"invoice:42\").write()");

impl WriteGuard {
    /// Reads as well, as a hold of its own with the same lease. It is given at once, past all
    /// waiters, and goes on when the write ends: nobody writes in between.
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

    /// Makes a read of this write: nobody writes in between, and waiting readers enter that have no
    /// writer before them (see [`Preference`](crate::Preference)). Returns when a majority has the
    /// read, and has confirmed the end of the write. If this end takes too long, it goes on in the
    /// background.
    ///
    /// Where the write was entered several times, only this entry of it ends. A read that the owner
    /// had beside the write stays another hold than this one.
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
            // Voters that had forgotten the write may have given the read: another may have written
            // before it (law 1).
            Err(error) if error.is_lost() => Err(error),
            // Too few answers change nothing for the read: the release is sent again until voters
            // answer, and the lease of the write ends in any case.
            _ => Ok(read),
        }
    }
}
