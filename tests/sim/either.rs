//! A mutex that is asked for in order, or one that is not.

use std::time::Duration;

use quorate::{Error, FairMutex, Mutex, MutexGuard, Owner, Quorate};

#[derive(Clone)]
pub(crate) enum Either {
    Plain(Mutex),
    Fair(FairMutex),
}

impl Either {
    pub(crate) fn of(quorum: &Quorate, name: &str, fair: bool) -> Self {
        if fair { Self::Fair(quorum.fair_mutex(name)) } else { Self::Plain(quorum.mutex(name)) }
    }

    pub(crate) fn owner(self, owner: Owner) -> Self {
        match self {
            Self::Plain(mutex) => Self::Plain(mutex.owner(&owner)),
            Self::Fair(mutex) => Self::Fair(mutex.owner(&owner)),
        }
    }

    pub(crate) fn lease(self, lease: Duration) -> Self {
        match self {
            Self::Plain(mutex) => Self::Plain(mutex.lease(lease)),
            Self::Fair(mutex) => Self::Fair(mutex.lease(lease)),
        }
    }

    pub(crate) fn lease_fixed(self, lease: Duration) -> Self {
        match self {
            Self::Plain(mutex) => Self::Plain(mutex.lease_fixed(lease)),
            Self::Fair(mutex) => Self::Fair(mutex.lease_fixed(lease)),
        }
    }

    pub(crate) async fn lock(&self) -> Result<MutexGuard, Error> {
        match self {
            Self::Plain(mutex) => mutex.lock().await,
            Self::Fair(mutex) => mutex.lock().await,
        }
    }

    pub(crate) async fn try_lock(&self) -> Result<Option<MutexGuard>, Error> {
        match self {
            Self::Plain(mutex) => mutex.try_lock().await,
            Self::Fair(mutex) => mutex.try_lock().await,
        }
    }

    pub(crate) async fn lock_within(&self, limit: Duration) -> Result<Option<MutexGuard>, Error> {
        match self {
            Self::Plain(mutex) => mutex.lock_within(limit).await,
            Self::Fair(mutex) => mutex.lock_within(limit).await,
        }
    }
}
