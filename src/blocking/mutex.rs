//! The mutex and the fair mutex: each is the async one, with the thread of its client.

use std::{fmt, sync::Arc, time::Duration};

use super::{MutexGuard, client_thread::ClientThread};
use crate::{
    locks::{self, after_work, inspection::Inspection},
    proto::{Error, HoldId, Owner, Token},
};

/// Defines a type of lock, mutex or fair mutex. `$make` is the method of a client that returns it.
macro_rules! exclusive {
    ($(#[$about:meta])* $name:ident, $make:literal) => {
        $(#[$about])*
        #[derive(Clone)]
        #[must_use = "it does nothing until it is locked"]
        pub struct $name {
            lock: locks::$name,
            thread: Arc<ClientThread>,
        }

        impl $name {
            pub(super) fn new(lock: locks::$name, thread: &Arc<ClientThread>) -> Self {
                Self { lock, thread: Arc::clone(thread) }
            }

            /// Acquires for this owner, who may enter again while it holds the lock.
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

            #[doc = concat!("[`", stringify!($name), "::lock`](crate::", stringify!($name),
                "::lock); blocks.")]
            ///
            /// # Errors
            ///
            #[doc = concat!("As [there](crate::", stringify!($name), "::lock).")]
            /// [`is_inside_runtime`](Error::is_inside_runtime): nothing was sent.
            ///
            /// # Examples
            ///
            /// ```
            /// # fn main() -> Result<(), quorate::Error> {
            /// # let voters = quorate::embedded::voters(3);
            /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect_blocking()?;
            #[doc = concat!("let guard = quorum.", $make, ".lock()?;")]
            /// assert!(guard.is_held());
            /// guard.release()
            /// # }
            /// ```
            pub fn lock(&self) -> Result<MutexGuard, Error> {
                let guard = self.thread.wait(self.lock.lock())??;
                Ok(MutexGuard::new(guard, &self.thread))
            }

            /// Locks, works and gives the lock back: waits as [`lock`](Self::lock) does, runs the
            /// work on the calling thread, and releases when the work is done, has failed or
            /// panics. The work is given its [`Token`].
            ///
            /// **The work is not stopped when the lock is lost.** It runs to its end, and the error
            /// says afterwards that it was not covered throughout: somebody else may have done the
            /// same meanwhile. Long work looks by itself, with a guard.
            ///
            /// Work that is done stays done: a release that no majority has confirmed in time goes
            /// on in the background, and is no error here.
            ///
            /// # Errors
            ///
            /// That of the work; or, made into one of those: as [`lock`](Self::lock), and
            /// [`is_lost`](Error::is_lost) if the lock was lost before the work was done.
            ///
            /// # Examples
            ///
            /// ```
            /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
            /// # fn charge(_: quorate::Token) -> Result<u32, quorate::Error> { Ok(42) }
            /// # let voters = quorate::embedded::voters(3);
            /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect_blocking()?;
            #[doc = concat!("let charged = quorum.", $make, ".run(charge)?;")]
            /// assert_eq!(charged, 42);
            /// # Ok(())
            /// # }
            /// ```
            pub fn run<T, E: From<Error>>(
                &self,
                work: impl FnOnce(Token) -> Result<T, E>,
            ) -> Result<T, E> {
                let guard = self.lock()?;
                // Outside of the client's runtime: the work may have one of its own.
                let done = work(guard.token());
                after_work(done, guard.release())
            }

            #[doc = concat!("[`", stringify!($name), "::try_lock`](crate::", stringify!($name),
                "::try_lock); blocks for no longer than it takes to ask.")]
            ///
            /// # Errors
            ///
            #[doc = concat!("As [there](crate::", stringify!($name), "::try_lock).")]
            /// [`is_inside_runtime`](Error::is_inside_runtime): nothing was sent.
            pub fn try_lock(&self) -> Result<Option<MutexGuard>, Error> {
                let guard = self.thread.wait(self.lock.try_lock())??;
                Ok(guard.map(|guard| MutexGuard::new(guard, &self.thread)))
            }

            #[doc = concat!("[`", stringify!($name), "::lock_within`](crate::", stringify!($name),
                "::lock_within); blocks.")]
            ///
            /// # Errors
            ///
            #[doc = concat!("As [there](crate::", stringify!($name), "::lock_within).")]
            /// [`is_inside_runtime`](Error::is_inside_runtime): nothing was sent.
            pub fn lock_within(&self, limit: Duration) -> Result<Option<MutexGuard>, Error> {
                let guard = self.thread.wait(self.lock.lock_within(limit))??;
                Ok(guard.map(|guard| MutexGuard::new(guard, &self.thread)))
            }

            #[doc = concat!("[`", stringify!($name), "::lock_or_busy`](crate::", stringify!($name),
                "::lock_or_busy); blocks.")]
            ///
            /// # Errors
            ///
            #[doc = concat!("As [there](crate::", stringify!($name), "::lock_or_busy).")]
            /// [`is_inside_runtime`](Error::is_inside_runtime): nothing was sent.
            pub fn lock_or_busy(&self, limit: Duration) -> Result<MutexGuard, Error> {
                let guard = self.thread.wait(self.lock.lock_or_busy(limit))??;
                Ok(MutexGuard::new(guard, &self.thread))
            }

            #[doc = concat!("[`", stringify!($name), "::is_locked`](crate::", stringify!($name),
                "::is_locked); blocks.")]
            ///
            /// # Errors
            ///
            #[doc = concat!("As [there](crate::", stringify!($name), "::is_locked).")]
            /// [`is_inside_runtime`](Error::is_inside_runtime).
            pub fn is_locked(&self) -> Result<bool, Error> {
                self.thread.wait(self.lock.is_locked())?
            }

            #[doc = concat!("[`", stringify!($name), "::inspect`](crate::", stringify!($name),
                "::inspect); blocks.")]
            ///
            /// # Errors
            ///
            #[doc = concat!("As [there](crate::", stringify!($name), "::inspect).")]
            /// [`is_inside_runtime`](Error::is_inside_runtime).
            pub fn inspect(&self) -> Result<Inspection, Error> {
                self.thread.wait(self.lock.inspect())?
            }

            #[doc = concat!("[`", stringify!($name), "::force_release`](crate::",
                stringify!($name), "::force_release); blocks.")]
            ///
            /// # Errors
            ///
            #[doc = concat!("As [there](crate::", stringify!($name), "::force_release).")]
            /// [`is_inside_runtime`](Error::is_inside_runtime).
            pub fn force_release(&self) -> Result<bool, Error> {
                self.thread.wait(self.lock.force_release())?
            }

            #[doc = concat!("[`", stringify!($name), "::force_release_hold`](crate::",
                stringify!($name), "::force_release_hold); blocks.")]
            ///
            /// # Errors
            ///
            #[doc = concat!("As [there](crate::", stringify!($name), "::force_release_hold).")]
            /// [`is_inside_runtime`](Error::is_inside_runtime).
            pub fn force_release_hold(&self, hold: &HoldId) -> Result<(), Error> {
                self.thread.wait(self.lock.force_release_hold(hold))?
            }

            #[doc = concat!("[`", stringify!($name), "::force_clear`](crate::",
                stringify!($name), "::force_clear); blocks.")]
            ///
            /// # Errors
            ///
            #[doc = concat!("As [there](crate::", stringify!($name), "::force_clear).")]
            /// [`is_inside_runtime`](Error::is_inside_runtime).
            pub fn force_clear(&self) -> Result<bool, Error> {
                self.thread.wait(self.lock.force_clear())?
            }
        }

        impl From<$name> for locks::Lockable {
            fn from(mutex: $name) -> Self {
                mutex.lock.into()
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.lock.fmt(f)
            }
        }
    };
}

exclusive! {
    /// [`quorate::Mutex`](crate::Mutex) for programs without async.
    ///
    /// The same lock as the async mutex of this name, in this process and in others. Threads of one
    /// client that wait stand in line, and come in the order of asking.
    Mutex, "mutex(\"invoice:42\")"
}

exclusive! {
    /// [`quorate::FairMutex`](crate::FairMutex) for programs without async.
    ///
    /// A [`Mutex`] that is given in the order of asking, over all voters and all clients.
    FairMutex, "fair_mutex(\"invoice:42\")"
}
