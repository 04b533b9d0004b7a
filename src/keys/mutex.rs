//! The names of the keys and channels of a mutex, and of an election.

use std::sync::Arc;

use super::{KeyScheme, Word, encoded, tagged};
use crate::proto::LockName;

/// The names of one mutex, or of one election, which is another lock than the mutex of its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MutexKeys {
    lock: Arc<str>,
    /// What all other names have in the middle.
    stem: Arc<str>,
    parts: &'static MutexParts,
}

/// What stands before and behind the stem.
#[derive(Debug, PartialEq, Eq)]
struct MutexParts {
    revoked: [&'static str; 2],
    fence: [&'static str; 2],
    queue: [&'static str; 2],
    alive: [&'static str; 2],
    channel: [&'static str; 2],
}

static MUTEX: MutexParts = MutexParts {
    revoked: ["", ":revoked"],
    fence: ["", ":fence"],
    queue: ["", ":queue"],
    alive: ["", ":alive"],
    channel: ["", ":wake"],
};

static ELECTION: MutexParts = MutexParts { channel: ["", ":news"], ..MUTEX };

/// Redisson's own names for the token and the channel. It has none for the others.
static JAVA_MUTEX: MutexParts = MutexParts {
    revoked: ["", ":quorate_revoked"],
    fence: ["redisson_lock_token:", ""],
    queue: ["", ":quorate_queue"],
    alive: ["", ":quorate_alive"],
    channel: ["redisson_lock__channel:", ""],
};

/// Beside those of Redisson: programs in Java have nothing of the kind.
static ELECTION_BESIDE_JAVA: MutexParts = MutexParts {
    revoked: ["", "_revoked"],
    fence: ["", "_fence"],
    queue: ["", "_queue"],
    alive: ["", "_alive"],
    channel: ["", "_news"],
};

impl MutexKeys {
    /// The record.
    pub(crate) fn lock(&self) -> Word<'_> {
        self.key().into()
    }

    /// The same, which also tells the lock from all others.
    pub(crate) fn key(&self) -> &Arc<str> {
        &self.lock
    }

    /// Holds that were ended by force.
    pub(crate) fn revoked(&self) -> Word<'_> {
        self.name(self.parts.revoked)
    }

    /// The token of the latest hold.
    pub(crate) fn fence(&self) -> Word<'_> {
        self.name(self.parts.fence)
    }

    /// Who waits in order, by ticket.
    pub(crate) fn queue(&self) -> Word<'_> {
        self.name(self.parts.queue)
    }

    /// Until when each of them counts.
    pub(crate) fn alive(&self) -> Word<'_> {
        self.name(self.parts.alive)
    }

    /// Where a release is published if nobody waits in order. An election publishes every change.
    pub(crate) fn channel(&self) -> Word<'_> {
        self.name(self.parts.channel)
    }

    fn name(&self, [before, behind]: [&'static str; 2]) -> Word<'_> {
        Word::Text([before, &self.stem, behind])
    }
}

impl KeyScheme {
    pub(crate) fn mutex(&self, name: &LockName) -> MutexKeys {
        let name = name.as_str();
        match self {
            Self::Prefix(prefix) => {
                let lock: Arc<str> = format!("{prefix}:{{{}}}", encoded(name)).into();
                MutexKeys { stem: Arc::clone(&lock), lock, parts: &MUTEX }
            }
            Self::Redisson => {
                let stem = tagged(name).into();
                MutexKeys { stem, lock: name.into(), parts: &JAVA_MUTEX }
            }
        }
    }

    pub(crate) fn election(&self, name: &LockName) -> MutexKeys {
        let name = name.as_str();
        let (lock, parts) = match self {
            Self::Prefix(prefix) => (format!("{prefix}:{{{}}}:election", encoded(name)), &ELECTION),
            Self::Redisson => (format!("{}:quorate_election", tagged(name)), &ELECTION_BESIDE_JAVA),
        };
        let lock: Arc<str> = lock.into();
        MutexKeys { stem: Arc::clone(&lock), lock, parts }
    }
}
