//! The blocking client.

use std::fmt;

use super::{
    Admin, Election, FairMutex, LockAll, Mutex, RwLock, Semaphore, caller, mirror::Mirrored as _,
};
use crate::{
    client::{self, Builder, Status, Survey},
    locks::Lockable,
    proto::Error,
};

/// [`quorate::Quorate`](crate::Quorate) for programs without async. Clones are the same client.
#[derive(Clone)]
pub struct Quorate {
    client: client::Quorate,
}

impl Quorate {
    /// [`Quorate::connect`](crate::Quorate::connect); blocks.
    ///
    /// Other settings: [`builder`](Self::builder).
    ///
    /// # Errors
    ///
    /// As [`Builder::connect_blocking`].
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn connect() -> Result<(), quorate::Error> {
    /// use quorate::blocking::Quorate;
    ///
    /// let quorum =
    ///     Quorate::connect(["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"])?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn connect<A: AsRef<str>>(addresses: impl IntoIterator<Item = A>) -> Result<Self, Error> {
        Self::builder().voters(addresses).connect_blocking()
    }

    /// Sets out the settings first; then [`Builder::connect_blocking`].
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// [`Quorate::mutex`](crate::Quorate::mutex).
    pub fn mutex(&self, name: impl AsRef<str>) -> Mutex {
        self.client.mutex(name).mirrored()
    }

    /// [`Quorate::fair_mutex`](crate::Quorate::fair_mutex).
    pub fn fair_mutex(&self, name: impl AsRef<str>) -> FairMutex {
        self.client.fair_mutex(name).mirrored()
    }

    /// [`Quorate::rw_lock`](crate::Quorate::rw_lock).
    pub fn rw_lock(&self, name: impl AsRef<str>) -> RwLock {
        self.client.rw_lock(name).mirrored()
    }

    /// [`Quorate::semaphore`](crate::Quorate::semaphore).
    pub fn semaphore(&self, name: impl AsRef<str>, permits: u32) -> Semaphore {
        self.client.semaphore(name, permits).mirrored()
    }

    /// [`Quorate::election`](crate::Quorate::election).
    pub fn election(&self, name: impl AsRef<str>) -> Election {
        self.client.election(name).mirrored()
    }

    /// [`Quorate::redisson`](crate::Quorate::redisson).
    pub fn redisson(&self) -> Redisson {
        Redisson { locks: self.client.redisson() }
    }

    /// [`Quorate::admin`](crate::Quorate::admin).
    pub fn admin(&self) -> Admin {
        self.client.admin().mirrored()
    }

    /// [`Quorate::lock_all`](crate::Quorate::lock_all).
    pub fn lock_all<L: Into<Lockable>>(&self, locks: impl IntoIterator<Item = L>) -> LockAll {
        self.client.lock_all(locks).mirrored()
    }

    /// [`Quorate::status`](crate::Quorate::status); blocks.
    ///
    /// # Errors
    ///
    /// [`is_inside_runtime`](Error::is_inside_runtime) only.
    pub fn status(&self) -> Result<Status, Error> {
        caller::wait(self.client.status())
    }

    /// [`Quorate::survey`](crate::Quorate::survey); blocks.
    ///
    /// # Errors
    ///
    /// [`is_inside_runtime`](Error::is_inside_runtime) only.
    pub fn survey(&self) -> Result<Survey, Error> {
        caller::wait(self.client.survey())
    }

    /// [`Quorate::close`](crate::Quorate::close); blocks.
    ///
    /// # Errors
    ///
    /// [`is_inside_runtime`](Error::is_inside_runtime) only; then the client is not closed.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect_blocking()?;
    /// let guard = quorum.mutex("invoice:42").lock()?;
    /// quorum.close()?;
    /// assert!(!guard.is_held());
    /// # Ok(())
    /// # }
    /// ```
    pub fn close(&self) -> Result<(), Error> {
        caller::wait(self.client.close())
    }
}

impl fmt::Debug for Quorate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.client.fmt(f)
    }
}

/// [`quorate::Redisson`](crate::Redisson) for programs without async.
#[derive(Clone)]
pub struct Redisson {
    locks: crate::redisson::Redisson,
}

impl fmt::Debug for Redisson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.locks.fmt(f)
    }
}

impl Redisson {
    /// [`Redisson::mutex`](crate::Redisson::mutex).
    pub fn mutex(&self, name: impl AsRef<str>) -> Mutex {
        self.locks.mutex(name).mirrored()
    }

    /// [`Redisson::fair_mutex`](crate::Redisson::fair_mutex).
    pub fn fair_mutex(&self, name: impl AsRef<str>) -> FairMutex {
        self.locks.fair_mutex(name).mirrored()
    }

    /// [`Redisson::rw_lock`](crate::Redisson::rw_lock).
    pub fn rw_lock(&self, name: impl AsRef<str>) -> RwLock {
        self.locks.rw_lock(name).mirrored()
    }

    /// [`Redisson::admin`](crate::Redisson::admin).
    pub fn admin(&self) -> Admin {
        self.locks.admin().mirrored()
    }
}

impl Builder {
    /// Connects a client for programs without async. Blocks.
    ///
    /// Voters inside the process live in real time with it.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect). [`is_inside_runtime`](Error::is_inside_runtime): this would
    /// block a thread on which tokio runs tasks.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), quorate::Error> {
    /// use std::time::Duration;
    ///
    /// use quorate::blocking::Quorate;
    ///
    /// let voters = quorate::embedded::voters(5);
    /// let settings = Quorate::builder().embedded(&voters).lease(Duration::from_secs(10));
    /// let quorum = settings.connect_blocking()?;
    /// assert!(quorum.status()?.has_quorum());
    /// # Ok(())
    /// # }
    /// ```
    pub fn connect_blocking(self) -> Result<Quorate, Error> {
        Ok(Quorate { client: caller::wait(self.connect())?? })
    }
}
