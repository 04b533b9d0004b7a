//! What can be had of the locks with the name `a`, whatever their kind.

use quorate_tests::{
    asking::{Asking, Kind},
    prelude::*,
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

/// Shorter than rivals have the lock.
pub(crate) const LIMIT_MS: u64 = 30;

impl Access {
    /// An owner is for the kinds that can be entered again.
    pub(crate) async fn ask(
        self,
        client: &Quorate,
        how: How,
        owner: Option<&Owner>,
    ) -> Result<Option<Guard>, Error> {
        let kind = match self {
            Self::Lock => Kind::Plain,
            Self::FairLock => Kind::Fair,
            Self::Read => Kind::Read(Preference::Writers),
            Self::FairRead => Kind::Read(Preference::Fair),
            Self::Write => Kind::Write,
            Self::Permit => Kind::Permits { wanted: 1, of: 2 },
            Self::BothPermits => Kind::Permits { wanted: 2, of: 2 },
            Self::Lead => Kind::Election,
            Self::Several => Kind::All,
        };
        let asking = Asking::of(client, "a", kind);
        owner.map_or(asking.clone(), |owner| asking.owner(*owner)).ask(how).await
    }

    /// Where nobody else is.
    pub(crate) async fn have(self, client: &Quorate, owner: Option<&Owner>) -> Guard {
        let held = self.ask(client, How::Wait, owner).await.expect("nobody else is there");
        held.expect("it waits")
    }

    pub(crate) async fn enter_and_leave(self, client: Quorate) -> Result<(), Error> {
        let held = self.ask(&client, How::Wait, None).await?;
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
