//! The semaphore: the async one, with the thread of its client.

use std::{fmt, sync::Arc, time::Duration};

use super::{PermitGuard, client_thread::ClientThread};
use crate::{
    locks::{self, after_work, inspection::SemaphoreInspection},
    proto::{Error, HoldId, Owner},
};

/// [`quorate::Semaphore`](crate::Semaphore) for programs without async.
#[derive(Clone)]
#[must_use = "it does nothing until a permit is acquired"]
pub struct Semaphore {
    semaphore: locks::Semaphore,
    thread: Arc<ClientThread>,
}

impl Semaphore {
    pub(super) fn new(semaphore: locks::Semaphore, thread: &Arc<ClientThread>) -> Self {
        Self { semaphore, thread: Arc::clone(thread) }
    }

    /// Acquires for this owner, who enters again at once what it holds.
    pub fn owner(self, owner: &Owner) -> Self {
        Self { semaphore: self.semaphore.owner(owner), ..self }
    }

    /// As [`Mutex::lease`](crate::Mutex::lease).
    pub fn lease(self, lease: Duration) -> Self {
        Self { semaphore: self.semaphore.lease(lease), ..self }
    }

    /// As [`Mutex::lease_fixed`](crate::Mutex::lease_fixed).
    pub fn lease_fixed(self, lease: Duration) -> Self {
        Self { semaphore: self.semaphore.lease_fixed(lease), ..self }
    }

    fn guard(&self, guard: locks::PermitGuard) -> PermitGuard {
        PermitGuard::new(guard, &self.thread)
    }

    /// [`Semaphore::acquire`](crate::Semaphore::acquire); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::Semaphore::acquire). [`is_inside_runtime`](Error::is_inside_runtime):
    /// nothing was sent.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect_blocking()?;
    /// let exports = quorum.semaphore("exports", 2);
    /// let (one, other) = (exports.acquire()?, exports.acquire()?);
    /// assert!(exports.try_acquire()?.is_none());
    /// one.release()?;
    /// other.release()
    /// # }
    /// ```
    pub fn acquire(&self) -> Result<PermitGuard, Error> {
        self.acquire_many(1)
    }

    /// Acquires a permit, works and gives it back: waits as [`acquire`](Self::acquire) does, runs
    /// the work on the calling thread, with the number of its permit, and releases when the work is
    /// done, has failed or panics.
    ///
    /// **The work is not stopped when the permit is lost**: see [`Mutex::run`](super::Mutex::run).
    ///
    /// # Errors
    ///
    /// That of the work; or, made into one of those: as [`acquire`](Self::acquire), and
    /// [`is_lost`](Error::is_lost) if the permit was lost before the work was done.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # fn export(slot: u32) -> Result<u32, quorate::Error> { Ok(slot) }
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect_blocking()?;
    /// assert!(quorum.semaphore("exports", 2).run(export)? < 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn run<T, E: From<Error>>(&self, work: impl FnOnce(u32) -> Result<T, E>) -> Result<T, E> {
        let guard = self.acquire()?;
        let done = work(guard.slot());
        after_work(done, guard.release())
    }

    /// [`Semaphore::try_acquire`](crate::Semaphore::try_acquire); blocks for no longer than it
    /// takes to ask.
    ///
    /// # Errors
    ///
    /// As [there](crate::Semaphore::try_acquire). [`is_inside_runtime`](Error::is_inside_runtime):
    /// nothing was sent.
    pub fn try_acquire(&self) -> Result<Option<PermitGuard>, Error> {
        self.try_acquire_many(1)
    }

    /// [`Semaphore::acquire_within`](crate::Semaphore::acquire_within); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::Semaphore::acquire_within).
    /// [`is_inside_runtime`](Error::is_inside_runtime): nothing was sent.
    pub fn acquire_within(&self, limit: Duration) -> Result<Option<PermitGuard>, Error> {
        self.acquire_many_within(1, limit)
    }

    /// [`Semaphore::acquire_or_busy`](crate::Semaphore::acquire_or_busy); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::Semaphore::acquire_or_busy).
    /// [`is_inside_runtime`](Error::is_inside_runtime): nothing was sent.
    pub fn acquire_or_busy(&self, limit: Duration) -> Result<PermitGuard, Error> {
        self.acquire_many_or_busy(1, limit)
    }

    /// [`Semaphore::acquire_many`](crate::Semaphore::acquire_many); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::Semaphore::acquire_many). [`is_inside_runtime`](Error::is_inside_runtime):
    /// nothing was sent.
    pub fn acquire_many(&self, wanted: u32) -> Result<PermitGuard, Error> {
        Ok(self.guard(self.thread.wait(self.semaphore.acquire_many(wanted))??))
    }

    /// [`Semaphore::try_acquire_many`](crate::Semaphore::try_acquire_many); blocks for no longer
    /// than it takes to ask.
    ///
    /// # Errors
    ///
    /// As [there](crate::Semaphore::try_acquire_many).
    /// [`is_inside_runtime`](Error::is_inside_runtime): nothing was sent.
    pub fn try_acquire_many(&self, wanted: u32) -> Result<Option<PermitGuard>, Error> {
        let guard = self.thread.wait(self.semaphore.try_acquire_many(wanted))??;
        Ok(guard.map(|guard| self.guard(guard)))
    }

    /// [`Semaphore::acquire_many_within`](crate::Semaphore::acquire_many_within); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::Semaphore::acquire_many_within).
    /// [`is_inside_runtime`](Error::is_inside_runtime): nothing was sent.
    pub fn acquire_many_within(
        &self,
        wanted: u32,
        limit: Duration,
    ) -> Result<Option<PermitGuard>, Error> {
        let guard = self.thread.wait(self.semaphore.acquire_many_within(wanted, limit))??;
        Ok(guard.map(|guard| self.guard(guard)))
    }

    /// [`Semaphore::acquire_many_or_busy`](crate::Semaphore::acquire_many_or_busy); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::Semaphore::acquire_many_or_busy).
    /// [`is_inside_runtime`](Error::is_inside_runtime): nothing was sent.
    pub fn acquire_many_or_busy(&self, wanted: u32, limit: Duration) -> Result<PermitGuard, Error> {
        let guard = self.thread.wait(self.semaphore.acquire_many_or_busy(wanted, limit))??;
        Ok(self.guard(guard))
    }

    /// [`Semaphore::inspect`](crate::Semaphore::inspect); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::Semaphore::inspect). [`is_inside_runtime`](Error::is_inside_runtime):
    /// nothing was sent.
    pub fn inspect(&self) -> Result<SemaphoreInspection, Error> {
        self.thread.wait(self.semaphore.inspect())?
    }

    /// [`Semaphore::force_release`](crate::Semaphore::force_release); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::Semaphore::force_release).
    /// [`is_inside_runtime`](Error::is_inside_runtime): nothing was sent.
    pub fn force_release(&self) -> Result<bool, Error> {
        self.thread.wait(self.semaphore.force_release())?
    }

    /// [`Semaphore::force_release_hold`](crate::Semaphore::force_release_hold); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::Semaphore::force_release_hold).
    /// [`is_inside_runtime`](Error::is_inside_runtime): nothing was sent.
    pub fn force_release_hold(&self, hold: &HoldId) -> Result<(), Error> {
        self.thread.wait(self.semaphore.force_release_hold(hold))?
    }

    /// [`Semaphore::force_clear`](crate::Semaphore::force_clear); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::Semaphore::force_clear). [`is_inside_runtime`](Error::is_inside_runtime):
    /// nothing was sent.
    pub fn force_clear(&self) -> Result<bool, Error> {
        self.thread.wait(self.semaphore.force_clear())?
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.semaphore.fmt(f)
    }
}
