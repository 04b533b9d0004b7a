//! The kind of lock that a claim is about, where it holds for more than one.

use std::{ops::Deref, time::Duration};

use futures::future::BoxFuture;
use quorate::{Error, FairMutex, LockView, Mutex, MutexGuard, Owner, Quorate};

/// A lock that one holds at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Mutex,
    FairMutex,
}

/// A client whose mutexes are of one kind.
#[derive(Clone, Debug)]
pub struct Client {
    client: Quorate,
    kind: Kind,
}

impl Client {
    pub fn new(client: Quorate, kind: Kind) -> Self {
        Self { client, kind }
    }

    pub fn mutex(&self, name: impl AsRef<str>) -> Lock {
        match self.kind {
            Kind::Mutex => Lock::Mutex(self.client.mutex(name)),
            Kind::FairMutex => Lock::FairMutex(self.client.fair_mutex(name)),
        }
    }
}

impl Deref for Client {
    type Target = Quorate;

    fn deref(&self) -> &Quorate {
        &self.client
    }
}

/// A mutex of either kind.
#[derive(Clone, Debug)]
pub enum Lock {
    Mutex(Mutex),
    FairMutex(FairMutex),
}

/// What a call comes to: it owns what it needs, so that it can be spawned.
type Asked<T> = BoxFuture<'static, Result<T, Error>>;

/// The same call on either.
macro_rules! on_either {
    ($lock:expr, $mutex:ident => $call:expr) => {
        match $lock {
            Lock::Mutex($mutex) => $call,
            Lock::FairMutex($mutex) => $call,
        }
    };
    ($lock:expr, $mutex:ident => keep $call:expr) => {
        match $lock {
            Lock::Mutex($mutex) => Lock::Mutex($call),
            Lock::FairMutex($mutex) => Lock::FairMutex($call),
        }
    };
}

impl Lock {
    #[must_use]
    pub fn owner(self, owner: &Owner) -> Self {
        on_either!(self, mutex => keep mutex.owner(owner))
    }

    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        on_either!(self, mutex => keep mutex.lease(lease))
    }

    #[must_use]
    pub fn lease_fixed(self, lease: Duration) -> Self {
        on_either!(self, mutex => keep mutex.lease_fixed(lease))
    }

    #[must_use]
    pub fn hold_at_most(self, time: Duration) -> Self {
        on_either!(self, mutex => keep mutex.hold_at_most(time))
    }

    pub fn lock(&self) -> Asked<MutexGuard> {
        on_either!(self, mutex => Box::pin(mutex.lock()))
    }

    pub fn try_lock(&self) -> Asked<Option<MutexGuard>> {
        on_either!(self, mutex => Box::pin(mutex.try_lock()))
    }

    pub fn lock_within(&self, limit: Duration) -> Asked<Option<MutexGuard>> {
        on_either!(self, mutex => Box::pin(mutex.lock_within(limit)))
    }

    pub fn lock_or_busy(&self, limit: Duration) -> Asked<MutexGuard> {
        on_either!(self, mutex => Box::pin(mutex.lock_or_busy(limit)))
    }

    pub async fn inspect(&self) -> Result<LockView, Error> {
        on_either!(self, mutex => mutex.inspect().await)
    }
}
