//! The guards, the leadership and the observer of programs without async.

use std::{fmt, time::Duration};

use super::{
    caller,
    mirror::{Mirrored, mirror},
};
use crate::{
    hold::HoldView,
    locks::{self, Observed},
    proto::{Error, HoldId, HoldTicket, Token},
};

macro_rules! guard {
    ($(#[$about:meta])* $name:ident; $($more:tt)*) => {
        mirror! {
            $(#[$about])*
            #[must_use = "the lock is released when the guard is dropped"]
            locks::$name;
            get name() -> &str;
            get hold() -> &HoldId;
            get votes() -> usize;
            get count() -> u32;
            get is_held() -> bool;
            get remaining() -> Duration;
            get view() -> HoldView;
            call extend(lease: Duration) -> ();
            call renew() -> ();
            call reenter() -> Self;
            last keep_for(time: Duration) -> () = "the lock is released, and not kept";
            last release() -> () = "the lock is released in the background";
            lost lost_within(limit: Duration);
            $($more)*
        }
    };
}

guard! {
    /// [`quorate::MutexGuard`](crate::MutexGuard) for programs without async.
    ///
    /// Dropping it releases the lock in the background: dropping never blocks and never fails.
    /// [`release`](Self::release) waits, and says whether it worked.
    MutexGuard;
    get token() -> Token;
    last detach_for(time: Duration) -> HoldTicket = "the lock is released, and not parked";
}

guard! {
    /// [`quorate::ReadGuard`](crate::ReadGuard) for programs without async.
    ///
    /// It behaves as a [`MutexGuard`] does.
    ReadGuard;
}

guard! {
    /// [`quorate::WriteGuard`](crate::WriteGuard) for programs without async.
    ///
    /// It behaves as a [`MutexGuard`] does.
    WriteGuard;
    get token() -> Token;
    call read() -> ReadGuard;
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
    last downgrade() -> ReadGuard = "the write is released";
}

guard! {
    /// [`quorate::PermitGuard`](crate::PermitGuard) for programs without async.
    ///
    /// It behaves as a [`MutexGuard`] does.
    PermitGuard;
    get permits() -> u32;
    get slot() -> u32;
    get slots() -> Vec<u32>;
}

mirror! {
    /// [`quorate::AllGuard`](crate::AllGuard) for programs without async.
    ///
    /// Dropping it releases all locks in the background: dropping never blocks and never fails.
    #[must_use = "the locks are released when the guard is dropped"]
    locks::AllGuard;
    get names() -> impl Iterator<Item = &str>;
    get holds() -> impl Iterator<Item = (&str, &HoldId)>;
    get tokens() -> impl Iterator<Item = (&str, Option<Token>)>;
    get is_held() -> bool;
    get remaining() -> Duration;
    call extend(lease: Duration) -> ();
    call renew() -> ();
    last keep_for(time: Duration) -> () = "the locks are released, and not kept";
    last release() -> () = "the locks are released in the background";
    lost lost_within(limit: Duration);
}

mirror! {
    /// [`quorate::OnceGuard`](crate::OnceGuard) for programs without async.
    ///
    /// Dropping it releases the lock in the background, and the firing is not done.
    #[must_use = "the lock is released when the guard is dropped"]
    locks::OnceGuard;
    get hold() -> &HoldId;
    get token() -> Token;
    get is_held() -> bool;
    get remaining() -> Duration;
    last done() -> () = "the lock is released, and the firing is not done";
    last release() -> () = "the lock is released in the background";
    lost lost_within(limit: Duration);
}

mirror! {
    /// [`quorate::Leadership`](crate::Leadership) for programs without async.
    ///
    /// Dropping it resigns in the background: dropping never blocks and never fails.
    #[must_use = "it resigns when it is dropped"]
    locks::Leadership;
    get name() -> &str;
    get hold() -> &HoldId;
    get votes() -> usize;
    get token() -> Token;
    get is_held() -> bool;
    get remaining() -> Duration;
    call proclaim(value: impl AsRef<[u8]>) -> ();
    last resign() -> () = "it resigns in the background";
    lost lost_within(limit: Duration);
}

impl Leadership {
    /// Waits until the lead is nearly lost, as [`ending`](crate::Leadership::ending) does, no
    /// longer than `limit`. False if the lead goes on after that.
    ///
    /// # Errors
    ///
    /// [`is_inside_runtime`](Error::is_inside_runtime) only.
    pub fn ending_within(&self, limit: Duration) -> Result<bool, Error> {
        // In an async block, so that the timer is made within a runtime, which `wait` enters.
        let ending = async { tokio::time::timeout(limit, self.inner.ending()).await };
        Ok(caller::wait(ending)?.is_ok())
    }
}

mirror! {
    /// [`quorate::Observer`](crate::Observer) for programs without async: an iterator whose `next`
    /// blocks until something has changed. It ends when the client is closed. The only error of its
    /// items is [`is_inside_runtime`](Error::is_inside_runtime).
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect_blocking()?;
    /// use quorate::Observed;
    ///
    /// let leadership = quorum.election("scheduler").campaign("10.0.0.1:80")?;
    /// for observed in quorum.election("scheduler").observe() {
    ///     match observed? {
    ///         Observed::Leader(leader) => println!("{:?} leads", leader.text()),
    ///         Observed::NoLeader => println!("nobody leads"),
    ///         other => println!("it cannot be known: {other:?}"),
    ///     }
    /// #   quorum.close()?;
    /// }
    /// # drop(leadership);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "it does nothing until it is asked for the next"]
    locks::Observer;
}

impl Observer {
    /// Waits for the next change, no longer than `limit`; `None` if there was none, or if the
    /// client is closed.
    ///
    /// # Errors
    ///
    /// [`is_inside_runtime`](Error::is_inside_runtime) only.
    pub fn next_within(&mut self, limit: Duration) -> Result<Option<Observed>, Error> {
        let next = async { tokio::time::timeout(limit, self.inner.next()).await };
        Ok(caller::wait(next)?.ok().flatten())
    }
}

impl Iterator for Observer {
    type Item = Result<Observed, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        caller::wait(self.inner.next()).transpose()
    }
}
