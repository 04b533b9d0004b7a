//! A lock that was found on the voters.

/// A lock of which voters have records, as [`Quorate::find_locks`](crate::Quorate::find_locks)
/// found it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct FoundLock {
    /// Its name, as locks are made with it.
    pub name: String,
    /// Which lock of that name it is.
    pub kind: FoundKind,
}

/// Which of the locks that a name has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FoundKind {
    /// A [`Mutex`](crate::Mutex), which is a [`FairMutex`](crate::FairMutex) too.
    Mutex,
    /// An [`RwLock`](crate::RwLock).
    RwLock,
    /// A [`Semaphore`](crate::Semaphore).
    Semaphore,
    /// An [`Election`](crate::Election).
    Election,
}
