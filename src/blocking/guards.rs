//! The guards: each is the async one, with the thread of its client.

use std::{fmt, sync::Arc, time::Duration};

use super::client_thread::ClientThread;
use crate::{
    locks,
    proto::{Error, HoldId, Token},
};

/// Makes a guard: `$acquire` is the call on a client that gives one.
macro_rules! guard {
    ($(#[$about:meta])* $name:ident, $acquire:literal) => {
        $(#[$about])*
        #[must_use = "the lock is released when the guard is dropped"]
        pub struct $name {
            guard: locks::$name,
            thread: Arc<ClientThread>,
        }

        impl $name {
            pub(super) fn new(guard: locks::$name, thread: &Arc<ClientThread>) -> Self {
                Self { guard, thread: Arc::clone(thread) }
            }

            /// The lock's name.
            pub fn name(&self) -> &str {
                self.guard.name()
            }

            /// The hold, as it stands on the voters and in other clients' errors.
            pub fn hold(&self) -> &HoldId {
                self.guard.hold()
            }

            #[doc = concat!("[`", stringify!($name), "::votes`](crate::", stringify!($name),
                "::votes).")]
            pub fn votes(&self) -> usize {
                self.guard.votes()
            }

            /// How many guards of this hold exist.
            pub fn count(&self) -> u32 {
                self.guard.count()
            }

            /// Whether the lock may still be relied on. Read from the clock at each call, and never
            /// true at or after the deadline: long work asks before each of its steps.
            pub fn is_held(&self) -> bool {
                self.guard.is_held()
            }

            /// The time for which the lock may be relied on if no renewal succeeds; zero once it is
            /// lost.
            pub fn remaining(&self) -> Duration {
                self.guard.remaining()
            }

            /// Waits until the lock is lost, no longer than `limit`, and returns why it was lost;
            /// `None` if it is still held then. A pause between two steps of work that ends at once
            /// when there is no point in going on.
            ///
            /// # Errors
            ///
            /// [`is_inside_runtime`](Error::is_inside_runtime) only.
            ///
            /// # Examples
            ///
            /// ```
            /// # fn main() -> Result<(), quorate::Error> {
            /// # let voters = quorate::embedded::voters(3);
            /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect_blocking()?;
            /// # let mut steps = 0;
            /// use std::time::Duration;
            ///
            #[doc = concat!("let guard = quorum.", $acquire, "?;")]
            /// while guard.lost_within(Duration::from_millis(10))?.is_none() {
            ///     // one step of the work
            /// #   steps += 1;
            /// #   if steps == 2 { quorum.close()?; }
            /// }
            /// # assert!(!guard.is_held() && steps == 2);
            /// # Ok(())
            /// # }
            /// ```
            pub fn lost_within(&self, limit: Duration) -> Result<Option<Error>, Error> {
                let lost = self.guard.lost();
                self.thread.wait(async move { tokio::time::timeout(limit, lost).await.ok() })
            }

            #[doc = concat!("[`", stringify!($name), "::extend`](crate::", stringify!($name),
                "::extend); blocks.")]
            ///
            /// # Errors
            ///
            #[doc = concat!("As [there](crate::", stringify!($name), "::extend).")]
            /// [`is_inside_runtime`](Error::is_inside_runtime).
            pub fn extend(&self, lease: Duration) -> Result<(), Error> {
                self.thread.wait(self.guard.extend(lease))?
            }

            #[doc = concat!("[`", stringify!($name), "::renew`](crate::", stringify!($name),
                "::renew); blocks.")]
            ///
            /// # Errors
            ///
            #[doc = concat!("As [there](crate::", stringify!($name), "::renew).")]
            /// [`is_inside_runtime`](Error::is_inside_runtime).
            pub fn renew(&self) -> Result<(), Error> {
                self.thread.wait(self.guard.renew())?
            }

            #[doc = concat!("[`", stringify!($name), "::reenter`](crate::", stringify!($name),
                "::reenter); blocks.")]
            ///
            /// # Errors
            ///
            #[doc = concat!("As [there](crate::", stringify!($name), "::reenter).")]
            /// [`is_inside_runtime`](Error::is_inside_runtime).
            pub fn reenter(&self) -> Result<Self, Error> {
                let guard = self.thread.wait(self.guard.reenter())??;
                Ok(Self::new(guard, &self.thread))
            }

            #[doc = concat!("[`", stringify!($name), "::keep_for`](crate::", stringify!($name),
                "::keep_for); blocks.")]
            ///
            /// # Errors
            ///
            #[doc = concat!("As [there](crate::", stringify!($name), "::keep_for).")]
            /// [`is_inside_runtime`](Error::is_inside_runtime): the lock is released.
            pub fn keep_for(self, time: Duration) -> Result<(), Error> {
                let Self { guard, thread } = self;
                thread.wait(guard.keep_for(time))?
            }

            #[doc = concat!("[`", stringify!($name), "::release`](crate::", stringify!($name),
                "::release); blocks.")]
            ///
            /// # Errors
            ///
            #[doc = concat!("As [there](crate::", stringify!($name), "::release).")]
            /// [`is_inside_runtime`](Error::is_inside_runtime): the lock is released in the
            /// background.
            ///
            /// # Examples
            ///
            /// ```
            /// # fn main() -> Result<(), quorate::Error> {
            /// # let voters = quorate::embedded::voters(3);
            /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect_blocking()?;
            #[doc = concat!("let guard = quorum.", $acquire, "?;")]
            /// assert!(guard.is_held());
            /// guard.release()
            /// # }
            /// ```
            pub fn release(self) -> Result<(), Error> {
                let Self { guard, thread } = self;
                thread.wait(guard.release())?
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.guard.fmt(f)
            }
        }
    };
}

guard! {
    /// [`quorate::MutexGuard`](crate::MutexGuard) for programs without async.
    ///
    /// Dropping it releases the lock in the background: dropping never blocks and never fails.
    /// [`release`](Self::release) waits, and says whether it worked.
    MutexGuard, "mutex(\"invoice:42\").lock()"
}

guard! {
    /// [`quorate::ReadGuard`](crate::ReadGuard) for programs without async.
    ///
    /// It behaves as a [`MutexGuard`] does.
    ReadGuard, "rw_lock(\"prices\").read()"
}

guard! {
    /// [`quorate::WriteGuard`](crate::WriteGuard) for programs without async.
    ///
    /// It behaves as a [`MutexGuard`] does.
    WriteGuard, "rw_lock(\"prices\").write()"
}

guard! {
    /// [`quorate::PermitGuard`](crate::PermitGuard) for programs without async.
    ///
    /// It behaves as a [`MutexGuard`] does.
    PermitGuard, "semaphore(\"exports\", 3).acquire()"
}

impl PermitGuard {
    /// How many permits it has.
    pub fn permits(&self) -> u32 {
        self.guard.permits()
    }

    /// The number of its permit, or of its first:
    /// [`PermitGuard::slot`](crate::PermitGuard::slot).
    pub fn slot(&self) -> u32 {
        self.guard.slot()
    }

    /// The numbers of all its permits.
    pub fn slots(&self) -> Vec<u32> {
        self.guard.slots()
    }
}

impl MutexGuard {
    /// The fencing token of this hold: [`MutexGuard::token`](crate::MutexGuard::token).
    pub fn token(&self) -> Token {
        self.guard.token()
    }
}

impl WriteGuard {
    /// The fencing token of this hold: [`WriteGuard::token`](crate::WriteGuard::token).
    pub fn token(&self) -> Token {
        self.guard.token()
    }

    /// [`WriteGuard::read`](crate::WriteGuard::read); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::WriteGuard::read). [`is_inside_runtime`](Error::is_inside_runtime).
    pub fn read(&self) -> Result<ReadGuard, Error> {
        let guard = self.thread.wait(self.guard.read())??;
        Ok(ReadGuard::new(guard, &self.thread))
    }

    /// [`WriteGuard::downgrade`](crate::WriteGuard::downgrade); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::WriteGuard::downgrade). [`is_inside_runtime`](Error::is_inside_runtime):
    /// the write is released.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect_blocking()?;
    /// let lock = quorum.rw_lock("prices");
    /// let reading = lock.write()?.downgrade()?;
    /// assert!(lock.try_read()?.is_some()); // others read as well
    /// assert!(lock.try_write()?.is_none());
    /// # drop(reading);
    /// # Ok(())
    /// # }
    /// ```
    pub fn downgrade(self) -> Result<ReadGuard, Error> {
        let Self { guard, thread } = self;
        let guard = thread.wait(guard.downgrade())??;
        Ok(ReadGuard::new(guard, &thread))
    }
}
