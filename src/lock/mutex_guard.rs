//! The guard of a mutex.

use super::guard::{guard, token};

guard! {
    /// Proof that this client holds a [`Mutex`](crate::Mutex) or a [`FairMutex`](crate::FairMutex),
    /// for as long as [`is_held`](Self::is_held) says so.
    ///
    /// Dropping it releases the lock in the background: dropping never blocks and never fails.
    /// [`release`](Self::release) does the same and says whether it worked. Neither a guard nor the
    /// watchdog behind it can keep a lock whose voters are gone: watch [`lost`](Self::lost), or do
    /// the work inside [`while_held`](Self::while_held).
    MutexGuard, "mutex(\"invoice:42\").lock()"
}

token!(MutexGuard, "mutex(\"invoice:42\").lock()");
