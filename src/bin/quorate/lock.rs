//! A lock of whatever kind: which is wished, and the guard of it.

use std::time::Duration;

use clap::Args;
use quorate::{
    Error, HoldId, Leadership, Lost, MutexGuard, PermitGuard, Quorate, ReadGuard, Token, WriteGuard,
};

/// Which lock of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockKind<'a> {
    Mutex,
    Fair,
    Read,
    Write,
    /// One of so many.
    Permit(u32),
    /// With what the leader says of itself.
    Lead(&'a str),
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

    /// Take a permit of a semaphore that has so many
    #[arg(long, value_name = "N")]
    permits: Option<u32>,
}

/// A guard.
#[derive(Debug)]
pub(crate) enum LockHeld {
    Exclusive(MutexGuard),
    Reads(ReadGuard),
    Writes(WriteGuard),
    Permit(PermitGuard),
    Leads(Leadership),
}

impl KindOptions {
    pub(crate) fn kind(&self) -> LockKind<'static> {
        match (self.fair, self.read, self.write, self.permits) {
            (true, ..) => LockKind::Fair,
            (_, true, ..) => LockKind::Read,
            (_, _, true, _) => LockKind::Write,
            (.., Some(permits)) => LockKind::Permit(permits),
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
            LockHeld::Permit($guard) => $what,
            LockHeld::Leads($guard) => $what,
        }
    };
}

impl LockHeld {
    /// Waits for as long as it takes where there is no limit.
    pub(crate) async fn acquire(
        quorum: &Quorate,
        kind: LockKind<'_>,
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
            (LockKind::Permit(permits), None) => {
                quorum.semaphore(name, permits).acquire().await.map(Self::Permit)
            }
            (LockKind::Permit(permits), Some(limit)) => {
                quorum.semaphore(name, permits).acquire_or_busy(limit).await.map(Self::Permit)
            }
            (LockKind::Lead(value), None) => {
                quorum.election(name).campaign(value).await.map(Self::Leads)
            }
            (LockKind::Lead(value), Some(limit)) => {
                quorum.election(name).campaign_or_busy(value, limit).await.map(Self::Leads)
            }
        }
    }

    pub(crate) fn hold(&self) -> &HoldId {
        with!(self, guard => guard.hold())
    }

    /// Where only one has it at a time.
    pub(crate) fn token(&self) -> Option<Token> {
        match self {
            Self::Exclusive(guard) => Some(guard.token()),
            Self::Writes(guard) => Some(guard.token()),
            Self::Leads(leadership) => Some(leadership.token()),
            Self::Reads(_) | Self::Permit(_) => None,
        }
    }

    /// The number of the permit.
    pub(crate) fn slot(&self) -> Option<u32> {
        if let Self::Permit(guard) = self { Some(guard.slot()) } else { None }
    }

    pub(crate) fn remaining(&self) -> Duration {
        with!(self, guard => guard.remaining())
    }

    pub(crate) fn lost(&self) -> Lost {
        with!(self, guard => guard.lost())
    }

    pub(crate) async fn release(self) -> Result<(), Error> {
        match self {
            Self::Exclusive(guard) => guard.release().await,
            Self::Reads(guard) => guard.release().await,
            Self::Writes(guard) => guard.release().await,
            Self::Permit(guard) => guard.release().await,
            Self::Leads(leadership) => leadership.resign().await,
        }
    }

    /// Leaves it taken for this time. A lead is given up: `lead` has no option for that.
    pub(crate) async fn keep_for(self, time: Duration) -> Result<(), Error> {
        match self {
            Self::Exclusive(guard) => guard.keep_for(time).await,
            Self::Reads(guard) => guard.keep_for(time).await,
            Self::Writes(guard) => guard.keep_for(time).await,
            Self::Permit(guard) => guard.keep_for(time).await,
            Self::Leads(leadership) => leadership.resign().await,
        }
    }
}
