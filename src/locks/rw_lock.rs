//! The read/write lock.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use super::{
    LockParts, LockView,
    guard::{guard, token},
    handle::{LockHandle, enter, enter_or_busy, given_token, wait, work_under},
    look::look,
};
use crate::{
    hold::LockRequest,
    kinds::{Kind, LockRecord, Preference, READ, WRITE},
    proto::{Error, Owner, Token},
};

/// A reentrant read/write lock held by majorities of the voters: one writes alone, or many read.
///
/// Made by [`Quorate::rw_lock`](crate::Quorate::rw_lock); a cheap value that says which lock and
/// how. Each read and each write is a *hold* with a lease of its own, renewed by itself: a reader
/// that dies is gone at its own deadline, whatever other readers do.
///
/// All waiters stand in one queue on the voters, writers in the order of asking; their
/// [`Preference`] decides where readers stand. A release wakes the first writer, or all readers
/// before it, and nobody else. A waiter that gives up leaves at once, and one that dies is
/// passed over after the [waiter deadline](crate::Builder::waiter_deadline) (5 s).
///
/// # Owners
///
/// Without [`owner`](Self::owner) every acquisition is a hold of its own. An owner enters again
/// what it reads, also past writers that wait, and what it writes. While it writes, it may read as
/// well, at once: such a read goes on when the write ends, before anybody else can write (see
/// [`WriteGuard::downgrade`]). While it only reads, it cannot write: that would wait for itself,
/// and is [refused](Error::is_deadlock) at once, also where its read came while its write was
/// waiting.
///
/// Without an owner nothing shows that two guards are of one task, so a task that holds one and
/// waits for another may wait for itself for ever: a write waits for the task's own read, and a
/// second read stands behind a writer that waits for the first.
///
/// # What is not guaranteed
///
/// A read/write lock is another lock than the mutex of the same name, but for those of
/// [Redisson](crate::Redisson). Holds have the same
/// guarantees as those of a [`Mutex`](crate::Mutex): see there, and at the top of this crate.
#[derive(Clone)]
#[must_use = "it does nothing until it is locked"]
pub struct RwLock {
    handle: LockHandle,
    /// Unless the lock is as any other.
    preference: Option<Preference>,
    /// What a call asks with, to read and to write; made when it is first asked with.
    reads: OnceLock<Result<LockRecord, Error>>,
    writes: OnceLock<Result<LockRecord, Error>>,
}

impl RwLock {
    pub(crate) fn new(parts: &Arc<LockParts>, name: &str) -> Self {
        Self::made(LockHandle::new(parts, name), None)
    }

    fn made(handle: LockHandle, preference: Option<Preference>) -> Self {
        Self { handle, preference, reads: OnceLock::new(), writes: OnceLock::new() }
    }

    /// Acquires for this owner, who enters again at once what it holds.
    pub fn owner(self, owner: &Owner) -> Self {
        Self { handle: self.handle.owner(*owner), ..self }
    }

    /// As [`Mutex::lease`](crate::Mutex::lease).
    pub fn lease(self, lease: Duration) -> Self {
        Self::made(self.handle.lease(lease, true), self.preference)
    }

    /// As [`Mutex::lease_fixed`](crate::Mutex::lease_fixed).
    pub fn lease_fixed(self, lease: Duration) -> Self {
        Self::made(self.handle.lease(lease, false), self.preference)
    }

    /// As [`Mutex::hold_at_most`](crate::Mutex::hold_at_most), for each read and each write. A read
    /// that comes from a write guard, by [`downgrade`](WriteGuard::downgrade) or
    /// [`read`](WriteGuard::read), ends when the write would have ended. One that an owner asks for
    /// while it writes counts from its own grant.
    pub fn hold_at_most(self, time: Duration) -> Self {
        Self::made(self.handle.hold_at_most(time), self.preference)
    }

    /// Whom its readers let pass; by default all [writers](Preference::Writers). A lock of
    /// [Redisson](crate::Redisson::rw_lock) knows [readers](Preference::Readers) only.
    pub fn preference(self, preference: Preference) -> Self {
        Self::made(self.handle, Some(preference))
    }

    /// Acquires the lock to read, waiting for as long as somebody writes or comes before.
    ///
    /// # Errors
    ///
    /// As [`Mutex::lock`](crate::Mutex::lock). [`is_not_entered`](Error::is_not_entered) also where
    /// this owner writes, and no majority answered in time that it reads as well.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up the place in the queue, and undoes on all voters whatever was
    /// sent. In `select!` in a loop, keep the future: a new one has a new place.
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
    pub fn read(&self) -> impl Future<Output = Result<ReadGuard, Error>> + Send + use<> {
        wait(self.request(&READ), ReadGuard::new)
    }

    /// Acquires the lock to read, if nobody writes and no writer comes before; `None` otherwise.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read); `is_no_quorum` and `is_overloaded` as
    /// [`Mutex::try_lock`](crate::Mutex::try_lock).
    ///
    /// # Cancel safety
    ///
    /// As [`read`](Self::read).
    pub fn try_read(
        &self,
    ) -> impl Future<Output = Result<Option<ReadGuard>, Error>> + Send + use<> {
        enter(self.request(&READ), self.handle.once(), ReadGuard::new)
    }

    /// As [`read`](Self::read), waiting no longer than `limit`; `None` if the lock was not acquired
    /// by then. Nothing is left behind.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read), but `is_no_quorum` only at the limit; `is_overloaded` as
    /// [`Mutex::lock_within`](crate::Mutex::lock_within).
    ///
    /// # Cancel safety
    ///
    /// As [`read`](Self::read).
    pub fn read_within(
        &self,
        limit: Duration,
    ) -> impl Future<Output = Result<Option<ReadGuard>, Error>> + Send + use<> {
        enter(self.request(&READ), self.handle.within(limit), ReadGuard::new)
    }

    /// As [`read_within`](Self::read_within), but a lock that is still taken is an error. It says
    /// who holds the lock and for how long, so an HTTP handler can answer 409. For `Retry-After`
    /// take a number of your own: see [`Error::lease_left`].
    ///
    /// # Errors
    ///
    /// [`is_busy`](Error::is_busy): another hold has the lock; see [`Error::holder`] and
    /// [`Error::lease_left`]. All others as [`read_within`](Self::read_within).
    ///
    /// # Cancel safety
    ///
    /// As [`read`](Self::read).
    pub fn read_or_busy(
        &self,
        limit: Duration,
    ) -> impl Future<Output = Result<ReadGuard, Error>> + Send + use<> {
        enter_or_busy(self.request(&READ), self.handle.within(limit), ReadGuard::new)
    }

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
    /// # Ok(())
    /// # }
    /// ```
    pub fn write(&self) -> impl Future<Output = Result<WriteGuard, Error>> + Send + use<> {
        wait(self.request(&WRITE), WriteGuard::new)
    }

    /// Acquires the lock to write, if nobody holds it and nobody comes before; `None` otherwise. Of
    /// several tries at the same moment one succeeds.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write); `is_no_quorum` and `is_overloaded` as
    /// [`Mutex::try_lock`](crate::Mutex::try_lock).
    ///
    /// # Cancel safety
    ///
    /// As [`write`](Self::write).
    pub fn try_write(
        &self,
    ) -> impl Future<Output = Result<Option<WriteGuard>, Error>> + Send + use<> {
        enter(self.request(&WRITE), self.handle.once(), WriteGuard::new)
    }

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
    pub fn write_within(
        &self,
        limit: Duration,
    ) -> impl Future<Output = Result<Option<WriteGuard>, Error>> + Send + use<> {
        enter(self.request(&WRITE), self.handle.within(limit), WriteGuard::new)
    }

    /// As [`write_within`](Self::write_within), but a lock that is still taken is an error. It says
    /// who holds the lock and for how long, so an HTTP handler can answer 409. For `Retry-After`
    /// take a number of your own: see [`Error::lease_left`].
    ///
    /// # Errors
    ///
    /// [`is_busy`](Error::is_busy): another hold has the lock; see [`Error::holder`] and
    /// [`Error::lease_left`]. All others as [`write_within`](Self::write_within).
    ///
    /// # Cancel safety
    ///
    /// As [`write`](Self::write).
    pub fn write_or_busy(
        &self,
        limit: Duration,
    ) -> impl Future<Output = Result<WriteGuard, Error>> + Send + use<> {
        enter_or_busy(self.request(&WRITE), self.handle.within(limit), WriteGuard::new)
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
    /// use quorate::HolderKind;
    ///
    /// let lock = quorum.rw_lock("prices");
    /// let reading = lock.read().await?;
    /// let seen = lock.inspect().await?;
    /// assert_eq!(seen.holders[0].kind, HolderKind::Read);
    /// assert_eq!(&seen.holders[0].hold, reading.hold());
    /// # Ok(())
    /// # }
    /// ```
    pub fn inspect(&self) -> impl Future<Output = Result<LockView, Error>> + Send + use<> {
        let (record, handle) = (self.checked(&READ), self.handle.clone());
        async move { look(&handle, &record?).await }
    }

    /// The request for it.
    pub(super) fn request(&self, kind: &'static Kind) -> Result<LockRequest, Error> {
        Ok(self.handle.request(self.checked(kind)?))
    }

    fn checked(&self, kind: &'static Kind) -> Result<LockRecord, Error> {
        let made = if kind.is_shared { &self.reads } else { &self.writes };
        let made = made.get_or_init(|| self.handle.record(kind, self.preference));
        made.clone()
    }
}

impl fmt::Debug for RwLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle.show("RwLock", f).field("preference", &self.preference).finish_non_exhaustive()
    }
}

// Work that is run under a read/write lock.

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
    pub fn run_read<T, E: From<Error>, F: FnOnce() -> W, W: Future<Output = Result<T, E>>>(
        &self,
        work: F,
    ) -> impl Future<Output = Result<T, E>> + use<T, E, F, W> {
        work_under(self.request(&READ), |_| work())
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
    pub fn run_write<T, E: From<Error>, F: FnOnce(Token) -> W, W: Future<Output = Result<T, E>>>(
        &self,
        work: F,
    ) -> impl Future<Output = Result<T, E>> + use<T, E, F, W> {
        work_under(self.request(&WRITE), |entry| work(given_token(entry)))
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

    /// Makes a read of this write: nobody writes in between, and waiting readers that stand behind
    /// no writer enter (see [`Preference`](crate::Preference)). Returns when a majority has the
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
            // Then the read may have been given by voters that had forgotten the write.
            Err(error) if error.is_lost() => Err(error),
            // Too few answers change nothing for the read; the release is sent again.
            _ => Ok(read),
        }
    }
}
