//! The names of the keys and channels of a mutex, and of an election.

use std::sync::Arc;

use super::{Prefix, Word};
use crate::proto::LockName;

/// The names of one mutex, or of one election, which is another lock than the mutex of its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MutexKeys {
    /// It also tells the lock from all others.
    pub(crate) lock: Arc<str>,
    /// What all other names have in the middle.
    stem: Arc<str>,
    parts: &'static MutexParts,
}

/// What stands before and behind the stem.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MutexParts {
    pub(crate) revoked: [&'static str; 2],
    pub(crate) fence: [&'static str; 2],
    pub(crate) queue: [&'static str; 2],
    pub(crate) alive: [&'static str; 2],
    /// None where nobody listens.
    pub(crate) channel: Option<[&'static str; 2]>,
}

static MUTEX: MutexParts = MutexParts {
    revoked: ["", ":revoked"],
    fence: ["", ":fence"],
    queue: ["", ":queue"],
    alive: ["", ":alive"],
    channel: None,
};

static ELECTION: MutexParts = MutexParts { channel: Some(["", ":news"]), ..MUTEX };

impl MutexKeys {
    /// `stem`: what the parts are derived from.
    pub(crate) fn new(lock: Arc<str>, stem: Arc<str>, parts: &'static MutexParts) -> Self {
        Self { lock, stem, parts }
    }

    /// The record.
    pub(crate) fn lock(&self) -> Word<'_> {
        (&self.lock).into()
    }

    /// Holds that were ended by force.
    pub(crate) fn revoked(&self) -> Word<'_> {
        self.name(self.parts.revoked)
    }

    /// The token of the latest hold.
    pub(crate) fn fence(&self) -> Word<'_> {
        self.name(self.parts.fence)
    }

    /// Who waits, by ticket.
    pub(crate) fn queue(&self) -> Word<'_> {
        self.name(self.parts.queue)
    }

    /// Until when each of them counts.
    pub(crate) fn alive(&self) -> Word<'_> {
        self.name(self.parts.alive)
    }

    /// Where changes are published for observers of an election and for programs of another
    /// library; nothing for any other lock.
    pub(crate) fn channel(&self) -> Word<'_> {
        self.parts.channel.map_or(Word::NOTHING, |channel| self.name(channel))
    }

    fn name(&self, [before, behind]: [&'static str; 2]) -> Word<'_> {
        Word::Text([before, &self.stem, behind])
    }
}

impl Prefix {
    pub(crate) fn mutex(&self, name: &LockName) -> MutexKeys {
        let lock: Arc<str> = self.stem(name).into();
        MutexKeys::new(Arc::clone(&lock), lock, &MUTEX)
    }

    pub(crate) fn election(&self, name: &LockName) -> MutexKeys {
        let lock: Arc<str> = format!("{}:election", self.stem(name)).into();
        MutexKeys::new(Arc::clone(&lock), lock, &ELECTION)
    }
}
