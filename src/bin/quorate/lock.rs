//! A lock of whatever kind: which is wished, and the guard of it.

use std::time::Duration;

use clap::Args;
use quorate::{Error, HoldId, Lost, MutexGuard, Quorate, ReadGuard, Semaphore, Token, WriteGuard};

/// Of how many permits a semaphore is only its users know: the most that there can be.
pub(crate) const MOST_PERMITS: u32 = 10_000;

/// The semaphore of this name, to look at, and to end holds of.
pub(crate) fn any_semaphore(quorum: &Quorate, name: &str) -> Semaphore {
    quorum.semaphore(name, MOST_PERMITS)
}

/// Which lock of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockKind {
    Mutex,
    Fair,
    Read,
    Write,
}

/// Which lock of the name; a mutex without any.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct KindOptions {
    /// Take the lock in the order of asking
    #[arg(long)]
    fair: bool,

    /// Take a read/write lock, to read
    #[arg(long)]
    read: bool,

    /// Take a read/write lock, to write
    #[arg(long)]
    write: bool,
}

/// A guard.
#[derive(Debug)]
pub(crate) enum LockHeld {
    Exclusive(MutexGuard),
    Reads(ReadGuard),
    Writes(WriteGuard),
}

impl KindOptions {
    pub(crate) fn kind(&self) -> LockKind {
        match (self.fair, self.read, self.write) {
            (true, ..) => LockKind::Fair,
            (_, true, _) => LockKind::Read,
            (.., true) => LockKind::Write,
            _ => LockKind::Mutex,
        }
    }
}

macro_rules! with {
    ($held:expr, $guard:ident => $what:expr) => {
        match $held {
            LockHeld::Exclusive($guard) => $what,
            LockHeld::Reads($guard) => $what,
            LockHeld::Writes($guard) => $what,
        }
    };
}

impl LockHeld {
    /// Waits for as long as it takes where there is no limit.
    pub(crate) async fn acquire(
        quorum: &Quorate,
        kind: LockKind,
        name: &str,
        limit: Option<Duration>,
    ) -> Result<Self, Error> {
        match (kind, limit) {
            (LockKind::Mutex, None) => quorum.mutex(name).lock().await.map(Self::Exclusive),
            (LockKind::Mutex, Some(limit)) => {
                quorum.mutex(name).lock_or_busy(limit).await.map(Self::Exclusive)
            }
            (LockKind::Fair, None) => quorum.fair_mutex(name).lock().await.map(Self::Exclusive),
            (LockKind::Fair, Some(limit)) => {
                quorum.fair_mutex(name).lock_or_busy(limit).await.map(Self::Exclusive)
            }
            (LockKind::Read, None) => quorum.rw_lock(name).read().await.map(Self::Reads),
            (LockKind::Read, Some(limit)) => {
                quorum.rw_lock(name).read_or_busy(limit).await.map(Self::Reads)
            }
            (LockKind::Write, None) => quorum.rw_lock(name).write().await.map(Self::Writes),
            (LockKind::Write, Some(limit)) => {
                quorum.rw_lock(name).write_or_busy(limit).await.map(Self::Writes)
            }
        }
    }

    pub(crate) fn hold(&self) -> &HoldId {
        with!(self, guard => guard.hold())
    }

    /// Reads have none.
    pub(crate) fn token(&self) -> Option<Token> {
        match self {
            Self::Exclusive(guard) => Some(guard.token()),
            Self::Reads(_) => None,
            Self::Writes(guard) => Some(guard.token()),
        }
    }

    pub(crate) fn remaining(&self) -> Duration {
        with!(self, guard => guard.remaining())
    }

    pub(crate) fn lost(&self) -> Lost {
        with!(self, guard => guard.lost())
    }

    pub(crate) async fn release(self) -> Result<(), Error> {
        with!(self, guard => guard.release().await)
    }
}
