//! The read/write lock: the async one, with the thread of its client.

use std::{fmt, sync::Arc, time::Duration};

use super::{ReadGuard, WriteGuard, client_thread::ClientThread};
use crate::{
    locks::{
        self, Lockable, Preference, after_work,
        inspection::{Access, RwInspection},
    },
    proto::{Error, HoldId, Owner, Token},
};

/// [`quorate::RwLock`](crate::RwLock) for programs without async.
///
/// Without an owner nothing tells that two guards are of one thread: see
/// [there](crate::RwLock#owners).
#[derive(Clone)]
#[must_use = "it does nothing until it is locked"]
pub struct RwLock {
    lock: locks::RwLock,
    thread: Arc<ClientThread>,
}

impl RwLock {
    pub(super) fn new(lock: locks::RwLock, thread: &Arc<ClientThread>) -> Self {
        Self { lock, thread: Arc::clone(thread) }
    }

    /// Acquires for this owner, who enters again at once what it holds.
    pub fn owner(self, owner: &Owner) -> Self {
        Self { lock: self.lock.owner(owner), ..self }
    }

    /// As [`Mutex::lease`](crate::Mutex::lease).
    pub fn lease(self, lease: Duration) -> Self {
        Self { lock: self.lock.lease(lease), ..self }
    }

    /// As [`Mutex::lease_fixed`](crate::Mutex::lease_fixed).
    pub fn lease_fixed(self, lease: Duration) -> Self {
        Self { lock: self.lock.lease_fixed(lease), ..self }
    }

    /// Whom its readers let pass; by default all [writers](Preference::Writers).
    pub fn preference(self, preference: Preference) -> Self {
        Self { lock: self.lock.preference(preference), ..self }
    }

    /// [`RwLock::reading`](crate::RwLock::reading).
    pub fn reading(&self) -> Lockable {
        self.lock.reading()
    }

    /// [`RwLock::writing`](crate::RwLock::writing).
    pub fn writing(&self) -> Lockable {
        self.lock.writing()
    }

    /// [`RwLock::read`](crate::RwLock::read); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::RwLock::read). [`is_inside_runtime`](Error::is_inside_runtime): nothing
    /// was sent.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect_blocking()?;
    /// let lock = quorum.rw_lock("prices");
    /// let (one, other) = (lock.read()?, lock.read()?);
    /// assert!(lock.try_write()?.is_none());
    /// one.release()?;
    /// other.release()
    /// # }
    /// ```
    pub fn read(&self) -> Result<ReadGuard, Error> {
        let guard = self.thread.wait(self.lock.read())??;
        Ok(ReadGuard::new(guard, &self.thread))
    }

    /// Reads, works and gives the read back: waits as [`read`](Self::read) does, runs the work on
    /// the calling thread, and releases when the work is done, has failed or panics.
    ///
    /// **The work is not stopped when the read is lost**: see [`Mutex::run`](super::Mutex::run).
    ///
    /// # Errors
    ///
    /// That of the work; or, made into one of those: as [`read`](Self::read), and
    /// [`is_lost`](Error::is_lost) if the read was lost before the work was done.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # fn total() -> Result<u32, quorate::Error> { Ok(42) }
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect_blocking()?;
    /// assert_eq!(quorum.rw_lock("prices").run_read(total)?, 42);
    /// # Ok(())
    /// # }
    /// ```
    pub fn run_read<T, E: From<Error>>(&self, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let guard = self.read()?;
        let done = work();
        after_work(done, guard.release())
    }

    /// [`RwLock::try_read`](crate::RwLock::try_read); blocks for no longer than it takes to ask.
    ///
    /// # Errors
    ///
    /// As [there](crate::RwLock::try_read). [`is_inside_runtime`](Error::is_inside_runtime):
    /// nothing was sent.
    pub fn try_read(&self) -> Result<Option<ReadGuard>, Error> {
        let guard = self.thread.wait(self.lock.try_read())??;
        Ok(guard.map(|guard| ReadGuard::new(guard, &self.thread)))
    }

    /// [`RwLock::read_within`](crate::RwLock::read_within); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::RwLock::read_within). [`is_inside_runtime`](Error::is_inside_runtime):
    /// nothing was sent.
    pub fn read_within(&self, limit: Duration) -> Result<Option<ReadGuard>, Error> {
        let guard = self.thread.wait(self.lock.read_within(limit))??;
        Ok(guard.map(|guard| ReadGuard::new(guard, &self.thread)))
    }

    /// [`RwLock::read_or_busy`](crate::RwLock::read_or_busy); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::RwLock::read_or_busy). [`is_inside_runtime`](Error::is_inside_runtime):
    /// nothing was sent.
    pub fn read_or_busy(&self, limit: Duration) -> Result<ReadGuard, Error> {
        let guard = self.thread.wait(self.lock.read_or_busy(limit))??;
        Ok(ReadGuard::new(guard, &self.thread))
    }

    /// [`RwLock::write`](crate::RwLock::write); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::RwLock::write). [`is_inside_runtime`](Error::is_inside_runtime): nothing
    /// was sent.
    pub fn write(&self) -> Result<WriteGuard, Error> {
        let guard = self.thread.wait(self.lock.write())??;
        Ok(WriteGuard::new(guard, &self.thread))
    }

    /// Writes, works and gives the write back: waits as [`write`](Self::write) does, runs the work
    /// on the calling thread, and releases when the work is done, has failed or panics. The work is
    /// given its [`Token`].
    ///
    /// **The work is not stopped when the write is lost**: see [`Mutex::run`](super::Mutex::run).
    ///
    /// # Errors
    ///
    /// That of the work; or, made into one of those: as [`write`](Self::write), and
    /// [`is_lost`](Error::is_lost) if the write was lost before the work was done.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # fn raise(_: quorate::Token) -> Result<u32, quorate::Error> { Ok(43) }
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect_blocking()?;
    /// assert_eq!(quorum.rw_lock("prices").run_write(raise)?, 43);
    /// # Ok(())
    /// # }
    /// ```
    pub fn run_write<T, E: From<Error>>(
        &self,
        work: impl FnOnce(Token) -> Result<T, E>,
    ) -> Result<T, E> {
        let guard = self.write()?;
        let done = work(guard.token());
        after_work(done, guard.release())
    }

    /// [`RwLock::try_write`](crate::RwLock::try_write); blocks for no longer than it takes to ask.
    ///
    /// # Errors
    ///
    /// As [there](crate::RwLock::try_write). [`is_inside_runtime`](Error::is_inside_runtime):
    /// nothing was sent.
    pub fn try_write(&self) -> Result<Option<WriteGuard>, Error> {
        let guard = self.thread.wait(self.lock.try_write())??;
        Ok(guard.map(|guard| WriteGuard::new(guard, &self.thread)))
    }

    /// [`RwLock::write_within`](crate::RwLock::write_within); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::RwLock::write_within). [`is_inside_runtime`](Error::is_inside_runtime):
    /// nothing was sent.
    pub fn write_within(&self, limit: Duration) -> Result<Option<WriteGuard>, Error> {
        let guard = self.thread.wait(self.lock.write_within(limit))??;
        Ok(guard.map(|guard| WriteGuard::new(guard, &self.thread)))
    }

    /// [`RwLock::write_or_busy`](crate::RwLock::write_or_busy); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::RwLock::write_or_busy). [`is_inside_runtime`](Error::is_inside_runtime):
    /// nothing was sent.
    pub fn write_or_busy(&self, limit: Duration) -> Result<WriteGuard, Error> {
        let guard = self.thread.wait(self.lock.write_or_busy(limit))??;
        Ok(WriteGuard::new(guard, &self.thread))
    }

    /// [`RwLock::inspect`](crate::RwLock::inspect); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::RwLock::inspect). [`is_inside_runtime`](Error::is_inside_runtime).
    pub fn inspect(&self) -> Result<RwInspection, Error> {
        self.thread.wait(self.lock.inspect())?
    }

    /// [`RwLock::force_release`](crate::RwLock::force_release); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::RwLock::force_release). [`is_inside_runtime`](Error::is_inside_runtime).
    pub fn force_release(&self, access: Access) -> Result<bool, Error> {
        self.thread.wait(self.lock.force_release(access))?
    }

    /// [`RwLock::force_release_hold`](crate::RwLock::force_release_hold); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::RwLock::force_release_hold).
    /// [`is_inside_runtime`](Error::is_inside_runtime).
    pub fn force_release_hold(&self, hold: &HoldId) -> Result<(), Error> {
        self.thread.wait(self.lock.force_release_hold(hold))?
    }

    /// [`RwLock::force_clear`](crate::RwLock::force_clear); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::RwLock::force_clear). [`is_inside_runtime`](Error::is_inside_runtime).
    pub fn force_clear(&self) -> Result<bool, Error> {
        self.thread.wait(self.lock.force_clear())?
    }
}

impl fmt::Debug for RwLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lock.fmt(f)
    }
}
