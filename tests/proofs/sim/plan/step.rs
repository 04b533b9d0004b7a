//! What a task does: one lock after the other.

use crate::sim::prelude::*;

/// One acquisition, from the wish to the end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step {
    pub(crate) pause_ms: u64,
    /// The number of the lock among those of its kind.
    pub(crate) number: usize,
    pub(crate) kind: Kind,
    /// Which of the client's owners asks; `None`: nobody in particular.
    pub(crate) owner: Option<usize>,
    pub(crate) lease: Lease,
    pub(crate) how: How,
    pub(crate) cancel: Cancel,
    pub(crate) further: Further,
    pub(crate) meanwhile: Meanwhile,
    pub(crate) end: End,
}

/// When a future is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cancel {
    Never,
    AfterPolls(u64),
    AfterMs(u64),
}

/// What the holder enters besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Further {
    Nothing,
    /// The same again.
    Again,
    /// The holder of a write reads as well.
    Reads,
    /// The same, and the read is kept for so many ms after the write has ended.
    ReadsOn(u64),
}

/// What is done with the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meanwhile {
    Sleep(u64),
    /// Work inside `while_held`.
    Work(u64),
    /// Until it is lost, but no longer.
    Lost(u64),
    /// Somebody looks who holds it.
    Inspect,
    /// An operator ends it.
    Force,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Drop,
    Release(Cancel),
    /// The write is turned into a read, which is kept for so many ms.
    Downgrade(u64, Cancel),
}

impl Step {
    pub(crate) fn lock(&self) -> Lock {
        Lock::of(self.kind, self.number)
    }

    /// For how long it is asked for, where nothing else is said for so long.
    pub(crate) fn lease_ms(&self, default_ms: u64) -> u64 {
        match self.lease {
            Lease::Default => default_ms,
            Lease::Renewed(ms) | Lease::Fixed(ms) => ms,
        }
    }

    /// Those that are asked for together, in another order by its number.
    pub(crate) fn locks(&self) -> Vec<Lock> {
        let mut locks = vec![self.lock()];
        if self.kind == Kind::All {
            let others = (0..Lock::MOST).map(Lock::Mutex).chain([Lock::Rw(0)]);
            locks.extend(others.filter(|other| *other != locks[0]).collect::<Vec<_>>());
        }
        locks
    }

    /// The step of one of several locks.
    pub(crate) fn part(self, lock: Lock) -> Self {
        match (self.kind, lock) {
            (Kind::All, Lock::Rw(number)) => Self { kind: Kind::Write, number, ..self },
            (Kind::All, Lock::Mutex(number) | Lock::Election(number) | Lock::Semaphore(number)) => {
                Self { kind: Kind::Plain, number, ..self }
            }
            _ => self,
        }
    }
}
