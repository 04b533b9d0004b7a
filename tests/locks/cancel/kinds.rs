//! What can be had of the locks with the name `a`, whatever their kind.

use std::time::Duration;

use quorate::{
    AllGuard, Error, HoldId, Leadership, LockKind, MutexGuard, Owner, PermitGuard, Preference,
    Quorate, ReadGuard, Token, WriteGuard,
};

/// What somebody asks for, or has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Lock,
    FairLock,
    Read,
    /// Behind the writers that asked before it, and before those that ask after it.
    FairRead,
    Write,
    /// One permit of two.
    Permit,
    BothPermits,
    Lead,
    /// The mutex, and one on either side of it.
    Several,
}

/// By which call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ask {
    Wait,
    Try,
    Within,
    OrBusy(Duration),
}

/// Shorter than rivals have the lock.
pub(crate) const LIMIT: Duration = Duration::from_millis(30);

/// The guard of an access.
#[derive(Debug)]
pub(crate) enum Held {
    Mutex(MutexGuard),
    Read(ReadGuard),
    Write(WriteGuard),
    Permits(PermitGuard),
    Lead(Leadership),
    Several(AllGuard),
}

macro_rules! ask {
    (
        $ask:expr, $lock:expr,
        [$wait:ident $try:ident $within:ident $busy:ident]($($arg:expr)?) $held:ident
    ) => {{
        let guard = match $ask {
            Ask::Wait => $lock.$wait($($arg)?).await.map(Some),
            Ask::Try => $lock.$try($($arg)?).await,
            Ask::Within => $lock.$within($($arg,)? LIMIT).await,
            Ask::OrBusy(limit) => $lock.$busy($($arg,)? limit).await.map(Some),
        };
        guard.map(|guard| guard.map(Held::$held))
    }};
}

impl Access {
    /// An owner is for the kinds that can be entered again.
    pub(crate) async fn ask(
        self,
        client: &Quorate,
        ask: Ask,
        owner: Option<&Owner>,
    ) -> Result<Option<Held>, Error> {
        let (mut mutex, fair) = (client.mutex("a"), client.fair_mutex("a"));
        let (mut lock, mut semaphore) = (client.rw_lock("a"), client.semaphore("a", 2));
        if let Some(owner) = owner {
            (mutex, lock, semaphore) =
                (mutex.owner(owner), lock.owner(owner), semaphore.owner(owner));
        }
        if self == Self::FairRead {
            lock = lock.preference(Preference::Fair);
        }
        match self {
            Self::Lock => ask!(ask, mutex, [lock try_lock lock_within lock_or_busy]() Mutex),
            Self::FairLock => ask!(ask, fair, [lock try_lock lock_within lock_or_busy]() Mutex),
            Self::Read | Self::FairRead => {
                ask!(ask, lock, [read try_read read_within read_or_busy]() Read)
            }
            Self::Write => {
                ask!(ask, lock, [write try_write write_within write_or_busy]() Write)
            }
            Self::Permit => {
                ask!(ask, semaphore, [acquire try_acquire acquire_within acquire_or_busy]() Permits)
            }
            Self::BothPermits => {
                ask!(ask, semaphore, [
                    acquire_many try_acquire_many acquire_many_within acquire_many_or_busy
                ](2) Permits)
            }
            Self::Lead => {
                let election = client.election("a");
                ask!(ask, election, [
                    campaign try_campaign campaign_within campaign_or_busy
                ]("old") Lead)
            }
            Self::Several => {
                let all = client.lock_all(["b", "a", "c"].map(|name| client.mutex(name)));
                ask!(ask, all, [lock try_lock lock_within lock_or_busy]() Several)
            }
        }
    }

    /// Where nobody else is.
    pub(crate) async fn have(self, client: &Quorate, owner: Option<&Owner>) -> Held {
        let held = self.ask(client, Ask::Wait, owner).await.expect("nobody else is there");
        held.expect("it waits")
    }

    pub(crate) async fn enter_and_leave(self, client: Quorate) -> Result<(), Error> {
        let held = self.ask(&client, Ask::Wait, None).await?;
        held.expect("it waits").release().await
    }

    /// What nobody else can have meanwhile, and can wait for in a queue.
    pub(crate) fn excludes(self) -> Self {
        match self {
            Self::Lock | Self::FairLock | Self::Several => Self::FairLock,
            Self::Read | Self::FairRead | Self::Write => Self::Write,
            Self::Permit | Self::BothPermits => Self::BothPermits,
            Self::Lead => Self::Lead,
        }
    }

    /// Which of the locks of the name it is.
    pub(crate) fn lock(self) -> LockKind {
        match self {
            Self::Lock | Self::FairLock | Self::Several => LockKind::Mutex,
            Self::Read | Self::FairRead | Self::Write => LockKind::RwLock,
            Self::Permit | Self::BothPermits => LockKind::Semaphore,
            Self::Lead => LockKind::Election,
        }
    }
}

/// What all guards can do, under two names.
macro_rules! each {
    ($held:expr, $guard:ident => $call:expr, $lead:expr, $several:expr) => {
        match $held {
            Held::Mutex($guard) => $call,
            Held::Read($guard) => $call,
            Held::Write($guard) => $call,
            Held::Permits($guard) => $call,
            Held::Lead($guard) => $lead,
            Held::Several($guard) => $several,
        }
    };
}

impl Held {
    pub(crate) fn hold(&self) -> &HoldId {
        let is_a = |(name, _): &(&str, _)| *name == "a";
        each!(self, it => it.hold(), it.hold(), it.holds().find(is_a).expect("it has it").1)
    }

    pub(crate) fn is_held(&self) -> bool {
        each!(self, it => it.is_held(), it.is_held(), it.is_held())
    }

    pub(crate) fn count(&self) -> u32 {
        each!(self, it => it.count(), u32::from(it.is_held()), u32::from(it.is_held()))
    }

    pub(crate) async fn lost(&self) -> Error {
        each!(self, it => it.lost().await, it.lost().await, it.lost().await)
    }

    /// That of an exclusive hold of one lock.
    pub(crate) fn token(&self) -> Token {
        match self {
            Self::Mutex(guard) => guard.token(),
            Self::Write(guard) => guard.token(),
            Self::Lead(leadership) => leadership.token(),
            _ => unreachable!("it is {self:?}"),
        }
    }

    pub(crate) async fn release(self) -> Result<(), Error> {
        each!(self, it => it.release().await, it.resign().await, it.release().await)
    }

    pub(crate) fn mutex(&self) -> &MutexGuard {
        let Self::Mutex(guard) = self else { unreachable!("it is {self:?}") };
        guard
    }

    pub(crate) fn write(self) -> WriteGuard {
        let Self::Write(guard) = self else { unreachable!("it is {self:?}") };
        guard
    }
}
