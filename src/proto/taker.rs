//! Who has a lock that a caller wanted.

use std::fmt;

use super::HoldId;

/// What the holder of a busy lock does with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum HolderKind {
    /// It holds the mutex, as a [`Mutex`](crate::Mutex) or a [`FairMutex`](crate::FairMutex).
    Mutex,
    /// It reads, maybe among others: of several readers it is the last to end; of
    /// a lock of [Redisson](crate::Redisson) any of them.
    Read,
    /// It writes.
    Write,
    /// It has permits of a [`Semaphore`](crate::Semaphore): of those that have, the last to end.
    Permit,
    /// It leads an [`Election`](crate::Election).
    Leader,
    /// It waits in the queue, and comes before the caller. The lock itself may be free.
    Waiting,
}

/// Who stands in the way of a caller.
#[derive(Clone, Debug)]
pub struct Taker {
    pub hold: HoldId,
    pub kind: HolderKind,
}

impl fmt::Display for Taker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            HolderKind::Mutex | HolderKind::Permit => "taken by ",
            HolderKind::Read => "read by ",
            HolderKind::Write => "written by ",
            HolderKind::Leader => "led by ",
            HolderKind::Waiting => "kept for a waiter that comes first, ",
        })?;
        self.hold.fmt(f)
    }
}
