//! Which locks there are.

use std::fmt;

/// A lock of which voters have records, as [`Admin::find`](crate::Admin::find) found it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct FoundLock {
    /// Its name, as locks are made with it.
    pub name: String,
    /// Which lock of that name it is.
    pub kind: LockKind,
}

/// Which of the locks that a name has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum LockKind {
    /// A [`Mutex`](crate::Mutex), which is a [`FairMutex`](crate::FairMutex) too.
    Mutex,
    /// An [`RwLock`](crate::RwLock).
    RwLock,
    /// A [`Semaphore`](crate::Semaphore).
    Semaphore,
    /// An [`Election`](crate::Election).
    Election,
}

impl fmt::Display for LockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mutex => "mutex",
            Self::RwLock => "read/write lock",
            Self::Semaphore => "semaphore",
            Self::Election => "election",
        })
    }
}
