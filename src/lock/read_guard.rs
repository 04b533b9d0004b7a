//! The guard of a read.

use super::guard::guard;

guard! {
    /// Proof that this client reads under an [`RwLock`](crate::RwLock), maybe among others, for as
    /// long as [`is_held`](Self::is_held) says so. Nobody else writes meanwhile.
    ///
    /// It behaves as a [`MutexGuard`](crate::MutexGuard) does. Each read has a lease of its own:
    /// renewing or releasing it changes nothing for other readers.
    ReadGuard, "rw_lock(\"invoice:42\").read()"
}
