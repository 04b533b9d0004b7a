//! Any lock, however it is asked for, and any guard.

use std::{sync::Arc, time::Duration};

use quorate::{
    AllGuard, Election, Error, FairMutex, HoldId, Leadership, Mutex, MutexGuard, Owner,
    PermitGuard, Preference, Quorate, ReadGuard, RwLock, Semaphore, Token, WriteGuard,
    inspection::Access,
};

use crate::sim::locks::Lock;

/// How a lock is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A mutex.
    Plain,
    /// A mutex, in order.
    Fair,
    /// A read/write lock, to read, letting these pass.
    Read(Preference),
    /// A read/write lock, to write.
    Write,
    /// So many permits of a semaphore of so many.
    Permits { wanted: u32, of: u32 },
    /// An election, to lead.
    Election,
    /// All mutexes, and a read/write lock to write.
    All,
}

impl Kind {
    pub(crate) fn lock(self, number: usize) -> Lock {
        match self {
            Self::Plain | Self::Fair | Self::All => Lock::Mutex(number),
            Self::Read(_) | Self::Write => Lock::Rw(number),
            Self::Permits { .. } => Lock::Semaphore(number),
            Self::Election => Lock::Election(number),
        }
    }
}

/// A lock that is asked for.
#[derive(Clone, Debug)]
pub(crate) enum Asking {
    Plain(Mutex),
    Fair(FairMutex),
    Read(RwLock),
    Write(RwLock),
    Permits(Semaphore, u32),
    Election(Election),
}

/// What a candidate says of itself; a leader counts on from there.
const CANDIDATE: &str = "0";

impl Asking {
    pub(crate) fn of(quorum: &Quorate, name: &str, kind: Kind) -> Self {
        match kind {
            Kind::Plain => Self::Plain(quorum.mutex(name)),
            Kind::Fair => Self::Fair(quorum.fair_mutex(name)),
            Kind::Read(preference) => Self::Read(quorum.rw_lock(name).preference(preference)),
            Kind::Write => Self::Write(quorum.rw_lock(name)),
            Kind::Permits { wanted, of } => Self::Permits(quorum.semaphore(name, of), wanted),
            Kind::Election => Self::Election(quorum.election(name)),
            Kind::All => unreachable!("they are asked for together"),
        }
    }

    pub(crate) fn owner(self, owner: Owner) -> Self {
        match self {
            Self::Plain(mutex) => Self::Plain(mutex.owner(&owner)),
            Self::Fair(mutex) => Self::Fair(mutex.owner(&owner)),
            Self::Read(lock) => Self::Read(lock.owner(&owner)),
            Self::Write(lock) => Self::Write(lock.owner(&owner)),
            Self::Permits(lock, wanted) => Self::Permits(lock.owner(&owner), wanted),
            // It has none.
            Self::Election(election) => Self::Election(election),
        }
    }

    pub(crate) fn lease(self, lease: Duration) -> Self {
        match self {
            Self::Plain(mutex) => Self::Plain(mutex.lease(lease)),
            Self::Fair(mutex) => Self::Fair(mutex.lease(lease)),
            Self::Read(lock) => Self::Read(lock.lease(lease)),
            Self::Write(lock) => Self::Write(lock.lease(lease)),
            Self::Permits(lock, wanted) => Self::Permits(lock.lease(lease), wanted),
            Self::Election(election) => Self::Election(election.lease(lease)),
        }
    }

    pub(crate) fn lease_fixed(self, lease: Duration) -> Self {
        match self {
            Self::Plain(mutex) => Self::Plain(mutex.lease_fixed(lease)),
            Self::Fair(mutex) => Self::Fair(mutex.lease_fixed(lease)),
            Self::Read(lock) => Self::Read(lock.lease_fixed(lease)),
            Self::Write(lock) => Self::Write(lock.lease_fixed(lease)),
            Self::Permits(lock, wanted) => Self::Permits(lock.lease_fixed(lease), wanted),
            Self::Election(_) => unreachable!("a lead is always renewed"),
        }
    }

    pub(crate) async fn lock(&self) -> Result<Guard, Error> {
        match self {
            Self::Plain(mutex) => mutex.lock().await.map(Guard::Mutex),
            Self::Fair(mutex) => mutex.lock().await.map(Guard::Mutex),
            Self::Read(lock) => lock.read().await.map(Guard::Read),
            Self::Write(lock) => lock.write().await.map(Guard::Write),
            Self::Permits(lock, wanted) => lock.acquire_many(*wanted).await.map(Guard::Permits),
            Self::Election(election) => election.campaign(CANDIDATE).await.map(Guard::Lead),
        }
    }

    pub(crate) async fn try_lock(&self) -> Result<Option<Guard>, Error> {
        Ok(match self {
            Self::Plain(mutex) => mutex.try_lock().await?.map(Guard::Mutex),
            Self::Fair(mutex) => mutex.try_lock().await?.map(Guard::Mutex),
            Self::Read(lock) => lock.try_read().await?.map(Guard::Read),
            Self::Write(lock) => lock.try_write().await?.map(Guard::Write),
            Self::Permits(lock, wanted) => {
                lock.try_acquire_many(*wanted).await?.map(Guard::Permits)
            }
            Self::Election(election) => election.try_campaign(CANDIDATE).await?.map(Guard::Lead),
        })
    }

    pub(crate) async fn lock_within(&self, limit: Duration) -> Result<Option<Guard>, Error> {
        Ok(match self {
            Self::Plain(mutex) => mutex.lock_within(limit).await?.map(Guard::Mutex),
            Self::Fair(mutex) => mutex.lock_within(limit).await?.map(Guard::Mutex),
            Self::Read(lock) => lock.read_within(limit).await?.map(Guard::Read),
            Self::Write(lock) => lock.write_within(limit).await?.map(Guard::Write),
            Self::Permits(lock, wanted) => {
                lock.acquire_many_within(*wanted, limit).await?.map(Guard::Permits)
            }
            Self::Election(election) => {
                election.campaign_within(CANDIDATE, limit).await?.map(Guard::Lead)
            }
        })
    }
}

/// A guard of any lock.
#[derive(Debug)]
pub(crate) enum Guard {
    Mutex(MutexGuard),
    Read(ReadGuard),
    Write(WriteGuard),
    Permits(PermitGuard),
    Lead(Leadership),
    /// One of several that are held together.
    Part {
        all: Arc<AllGuard>,
        at: usize,
    },
}

/// What all guards do alike.
macro_rules! each {
    ($guard:expr, $name:ident => $does:expr) => {
        match $guard {
            Guard::Mutex($name) => $does,
            Guard::Read($name) => $does,
            Guard::Write($name) => $does,
            Guard::Permits($name) => $does,
            Guard::Lead($name) => $does,
            Guard::Part { all: $name, .. } => $does,
        }
    };
}

impl Guard {
    pub(crate) fn access(&self) -> Access {
        if matches!(self, Self::Read(_) | Self::Permits(_)) { Access::Read } else { Access::Write }
    }

    /// Of a semaphore, in ascending order.
    pub(crate) fn slots(&self) -> Vec<u32> {
        let Self::Permits(guard) = self else { return Vec::new() };
        let mut slots = guard.slots();
        slots.sort_unstable();
        slots
    }

    pub(crate) fn hold(&self) -> &HoldId {
        match self {
            Self::Mutex(guard) => guard.hold(),
            Self::Read(guard) => guard.hold(),
            Self::Write(guard) => guard.hold(),
            Self::Permits(guard) => guard.hold(),
            Self::Lead(guard) => guard.hold(),
            Self::Part { all, at } => all.holds().nth(*at).expect("it is one of them").1,
        }
    }

    pub(crate) fn count(&self) -> u32 {
        match self {
            Self::Mutex(guard) => guard.count(),
            Self::Read(guard) => guard.count(),
            Self::Write(guard) => guard.count(),
            Self::Permits(guard) => guard.count(),
            Self::Lead(_) | Self::Part { .. } => 1,
        }
    }

    /// A read has none.
    pub(crate) fn token(&self) -> Option<Token> {
        match self {
            Self::Mutex(guard) => Some(guard.token()),
            Self::Write(guard) => Some(guard.token()),
            Self::Lead(guard) => Some(guard.token()),
            Self::Part { all, at } => all.tokens().nth(*at).expect("it is one of them").1,
            Self::Read(_) | Self::Permits(_) => None,
        }
    }

    pub(crate) fn is_held(&self) -> bool {
        each!(self, guard => guard.is_held())
    }

    pub(crate) fn remaining(&self) -> Duration {
        each!(self, guard => guard.remaining())
    }

    pub(crate) async fn lost(&self) -> Error {
        each!(self, guard => guard.lost().await)
    }

    pub(crate) async fn while_held<F: Future>(&self, work: F) -> Result<F::Output, Error> {
        match self {
            Self::Mutex(guard) => guard.while_held(work).await,
            Self::Read(guard) => guard.while_held(work).await,
            Self::Write(guard) => guard.while_held(work).await,
            Self::Permits(guard) => guard.while_held(work).await,
            Self::Lead(guard) => guard.while_leader(work).await,
            Self::Part { all, .. } => all.while_held(work).await,
        }
    }

    pub(crate) async fn reenter(&self) -> Result<Self, Error> {
        Ok(match self {
            Self::Mutex(guard) => Self::Mutex(guard.reenter().await?),
            Self::Read(guard) => Self::Read(guard.reenter().await?),
            Self::Write(guard) => Self::Write(guard.reenter().await?),
            Self::Permits(guard) => Self::Permits(guard.reenter().await?),
            Self::Lead(_) | Self::Part { .. } => unreachable!("nobody enters that again"),
        })
    }

    /// Reads under a write; what else there is is entered again.
    pub(crate) async fn read(&self) -> Result<Self, Error> {
        match self {
            Self::Write(guard) => guard.read().await.map(Self::Read),
            other => other.reenter().await,
        }
    }

    pub(crate) async fn release(self) -> Result<(), Error> {
        match self {
            Self::Mutex(guard) => guard.release().await,
            Self::Read(guard) => guard.release().await,
            Self::Write(guard) => guard.release().await,
            Self::Permits(guard) => guard.release().await,
            Self::Lead(guard) => guard.resign().await,
            Self::Part { all, .. } => match Arc::into_inner(all) {
                Some(all) => all.release().await,
                // The last of them does.
                None => Ok(()),
            },
        }
    }

    /// A write becomes a read; what else there is is released.
    pub(crate) async fn downgrade(self) -> Result<Option<Self>, Error> {
        match self {
            Self::Write(guard) => guard.downgrade().await.map(|read| Some(Self::Read(read))),
            other => other.release().await.map(|()| None),
        }
    }
}
