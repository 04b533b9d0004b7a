//! Any lock, however it is asked for, and any guard.

use std::{sync::Arc, time::Duration};

use quorate::{
    AllGuard, Error, HoldId, Leadership, Lost, MutexGuard, Owner, PermitGuard, Preference, Quorate,
    ReadGuard, Token, WriteGuard,
};
use tokio::task::JoinHandle;

use crate::{fixture::ms, force::Access};

/// How a lock is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
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
    /// Several together: this mutex among others.
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Try,
    Within(u64),
    Wait,
    /// As [`Within`](Self::Within), and it is told who has it.
    OrBusy(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    Default,
    Renewed(u64),
    /// It ends by then: it is not renewed, or the hold has that limit.
    Fixed(u64),
}

impl Kind {
    /// The script by which it is asked for.
    pub fn acquires(self) -> &'static str {
        match self {
            Self::Plain | Self::Fair | Self::All => "mutex/acquire",
            Self::Read(_) | Self::Write => "rw/acquire",
            Self::Permits { .. } => "semaphore/acquire",
            Self::Election => "election/acquire",
        }
    }
}

/// A lock that is asked for.
#[derive(Clone, Debug)]
pub struct Asking {
    quorum: Quorate,
    name: String,
    kind: Kind,
    owner: Option<Owner>,
    lease: Lease,
    /// What is said of the hold; an empty one is none.
    note: &'static str,
}

/// What a candidate says of itself; a leader counts on from there.
const CANDIDATE: &str = "0";

/// Asks for a lock in one of the ways.
macro_rules! ask {
    (
        $lock:expr, $how:expr,
        ($wait:ident, $try:ident, $within:ident, $busy:ident)($($arg:expr)?) => $guard:expr
    ) => {{
        let lock = $lock;
        let asked = match $how {
            How::Wait => lock.$wait($($arg)?).await.map(Some),
            How::Try => lock.$try($($arg)?).await,
            How::Within(limit_ms) => lock.$within($($arg,)? ms(limit_ms)).await,
            How::OrBusy(limit_ms) => lock.$busy($($arg,)? ms(limit_ms)).await.map(Some),
        };
        asked.map(|guard| guard.map($guard))
    }};
}

/// A lock with the owner and the lease that are asked for.
macro_rules! with_terms {
    ($asking:expr, $lock:expr) => {{
        let lock = match &$asking.owner {
            Some(owner) => $lock.owner(owner),
            None => $lock,
        };
        let lock = lock.note($asking.note);
        match $asking.lease {
            Lease::Default => lock,
            Lease::Renewed(lease_ms) => lock.lease(ms(lease_ms)),
            // Some are renewed, and end all the same.
            Lease::Fixed(lease_ms) if lease_ms % 2 == 1 => {
                lock.lease(ms(lease_ms)).hold_at_most(ms(lease_ms))
            }
            Lease::Fixed(lease_ms) => lock.lease_fixed(ms(lease_ms)),
        }
    }};
}

impl Asking {
    pub fn of(quorum: &Quorate, name: &str, kind: Kind) -> Self {
        let (quorum, name) = (quorum.clone(), name.to_owned());
        Self { quorum, name, kind, owner: None, lease: Lease::Default, note: "" }
    }

    #[must_use]
    pub fn owner(self, owner: Owner) -> Self {
        Self { owner: Some(owner), ..self }
    }

    #[must_use]
    pub fn lease(self, lease: Lease) -> Self {
        Self { lease, ..self }
    }

    #[must_use]
    pub fn note(self, note: &'static str) -> Self {
        Self { note, ..self }
    }

    pub async fn lock(&self) -> Result<Guard, Error> {
        Ok(self.ask(How::Wait).await?.expect("it waits"))
    }

    /// Waits for it in the background.
    pub fn wait(self) -> JoinHandle<Result<Guard, Error>> {
        tokio::spawn(async move { self.lock().await })
    }

    pub async fn try_lock(&self) -> Result<Option<Guard>, Error> {
        self.ask(How::Try).await
    }

    pub async fn ask(&self, how: How) -> Result<Option<Guard>, Error> {
        let (quorum, name) = (&self.quorum, &self.name);
        match self.kind {
            Kind::Plain => {
                let mutex = with_terms!(self, quorum.mutex(name));
                ask!(mutex, how, (lock, try_lock, lock_within, lock_or_busy)() => Guard::Mutex)
            }
            Kind::Fair => {
                let mutex = with_terms!(self, quorum.fair_mutex(name));
                ask!(mutex, how, (lock, try_lock, lock_within, lock_or_busy)() => Guard::Mutex)
            }
            Kind::Read(preference) => {
                let lock = with_terms!(self, quorum.rw_lock(name).preference(preference));
                ask!(lock, how, (read, try_read, read_within, read_or_busy)() => Guard::Read)
            }
            Kind::Write => {
                let lock = with_terms!(self, quorum.rw_lock(name));
                ask!(lock, how, (write, try_write, write_within, write_or_busy)() => Guard::Write)
            }
            Kind::Permits { wanted, of } => {
                let permits = with_terms!(self, quorum.semaphore(name, of));
                ask!(
                    permits, how,
                    (acquire_many, try_acquire_many, acquire_many_within, acquire_many_or_busy)
                    (wanted) => Guard::Permits
                )
            }
            Kind::Election => {
                // It has no owner, and a lead is always renewed.
                let election = quorum.election(name).note(self.note);
                let election = match self.lease {
                    Lease::Renewed(lease_ms) => election.lease(ms(lease_ms)),
                    _ => election,
                };
                ask!(
                    election, how,
                    (campaign, try_campaign, campaign_within, campaign_or_busy)
                    (CANDIDATE) => Guard::Lead
                )
            }
            Kind::All => {
                let all = quorum.lock_all(["b", name, "c"].map(|name| quorum.mutex(name)));
                let all = all.note(self.note);
                let part = |all| Guard::Part { all: Arc::new(all), at: 1 };
                ask!(all, how, (lock, try_lock, lock_within, lock_or_busy)() => part)
            }
        }
    }
}

/// A guard of any lock.
#[derive(Debug)]
pub enum Guard {
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
    pub fn access(&self) -> Access {
        if matches!(self, Self::Read(_) | Self::Permits(_)) { Access::Read } else { Access::Write }
    }

    /// Of a semaphore, in ascending order.
    pub fn slots(&self) -> Vec<u32> {
        let Self::Permits(guard) = self else { return Vec::new() };
        let mut slots = guard.slots();
        slots.sort_unstable();
        slots
    }

    pub fn hold(&self) -> &HoldId {
        match self {
            Self::Mutex(guard) => guard.hold(),
            Self::Read(guard) => guard.hold(),
            Self::Write(guard) => guard.hold(),
            Self::Permits(guard) => guard.hold(),
            Self::Lead(guard) => guard.hold(),
            Self::Part { all, at } => all.holds().nth(*at).expect("it is one of them").1,
        }
    }

    pub fn count(&self) -> u32 {
        match self {
            Self::Mutex(guard) => guard.count(),
            Self::Read(guard) => guard.count(),
            Self::Write(guard) => guard.count(),
            Self::Permits(guard) => guard.count(),
            Self::Lead(_) | Self::Part { .. } => 1,
        }
    }

    /// A read has none.
    pub fn token(&self) -> Option<Token> {
        match self {
            Self::Mutex(guard) => Some(guard.token()),
            Self::Write(guard) => Some(guard.token()),
            Self::Lead(guard) => Some(guard.token()),
            Self::Part { all, at } => all.tokens().nth(*at).expect("it is one of them").1,
            Self::Read(_) | Self::Permits(_) => None,
        }
    }

    pub fn is_held(&self) -> bool {
        each!(self, guard => guard.is_held())
    }

    pub fn remaining(&self) -> Duration {
        each!(self, guard => guard.remaining())
    }

    pub fn lost(&self) -> Lost {
        each!(self, guard => guard.lost())
    }

    pub async fn while_held<F: Future>(&self, work: F) -> Result<F::Output, Error> {
        match self {
            Self::Mutex(guard) => guard.while_held(work).await,
            Self::Read(guard) => guard.while_held(work).await,
            Self::Write(guard) => guard.while_held(work).await,
            Self::Permits(guard) => guard.while_held(work).await,
            Self::Lead(guard) => guard.while_leader(work).await,
            Self::Part { all, .. } => all.while_held(work).await,
        }
    }

    pub async fn reenter(&self) -> Result<Self, Error> {
        Ok(match self {
            Self::Mutex(guard) => Self::Mutex(guard.reenter().await?),
            Self::Read(guard) => Self::Read(guard.reenter().await?),
            Self::Write(guard) => Self::Write(guard.reenter().await?),
            Self::Permits(guard) => Self::Permits(guard.reenter().await?),
            Self::Lead(_) | Self::Part { .. } => unreachable!("nobody enters that again"),
        })
    }

    /// Reads under a write; what else there is is entered again.
    pub async fn read(&self) -> Result<Self, Error> {
        match self {
            Self::Write(guard) => guard.read().await.map(Self::Read),
            other => other.reenter().await,
        }
    }

    pub async fn release(self) -> Result<(), Error> {
        match self {
            Self::Mutex(guard) => guard.release().await,
            Self::Read(guard) => guard.release().await,
            Self::Write(guard) => guard.release().await,
            Self::Permits(guard) => guard.release().await,
            Self::Lead(guard) => guard.resign().await,
            Self::Part { all, .. } => {
                Arc::into_inner(all).expect("it stands for all").release().await
            }
        }
    }

    pub fn mutex(&self) -> &MutexGuard {
        let Self::Mutex(guard) = self else { unreachable!("it is {self:?}") };
        guard
    }

    /// A write becomes a read; what else there is is released.
    pub async fn downgrade(self) -> Result<Option<Self>, Error> {
        match self {
            Self::Write(guard) => guard.downgrade().await.map(|read| Some(Self::Read(read))),
            other => other.release().await.map(|()| None),
        }
    }
}
