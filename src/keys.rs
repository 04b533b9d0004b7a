//! Key and channel names. All keys of one lock lie in one hash slot.

mod mutex;
mod rw;
mod word;

use std::{borrow::Cow, sync::Arc};

pub(crate) use mutex::MutexKeys;
pub(crate) use rw::RwKeys;
pub(crate) use word::Word;

use crate::proto::{Error, FoundKind, FoundLock, LockName};

/// How locks are named on the voters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyScheme {
    /// `<prefix>:{<lock name>}` and names derived from it. The default, with the prefix `quorate`.
    ///
    /// Clients with different prefixes do not see each other's locks. Braces and percent signs of a
    /// lock name are percent-encoded, so that the braces always mark the hash tag.
    Prefix(String),
    /// Redisson's names, so that Java and Rust services exclude and wake each other on the same
    /// mutex and the same read/write lock.
    ///
    /// A mutex is an `RLock`, or an `RFencedLock`: the record under the bare lock name, the channel
    /// `redisson_lock__channel:{<lock name>}`, and the tokens under
    /// `redisson_lock_token:{<lock name>}`, without expiry.
    ///
    /// A read/write lock is an `RReadWriteLock`: the record under the bare lock name, the channel
    /// `redisson_rwlock:{<lock name>}`, and a key for the lease of each reader. It needs a client
    /// with one voter, and readers who pass writers that wait
    /// ([`Preference::Readers`](crate::Preference::Readers)): anything else is refused when the
    /// lock is asked for. Do not give a mutex and a read/write lock the same name: in Java readers
    /// join the record of a mutex.
    Redisson,
}

impl Default for KeyScheme {
    fn default() -> Self {
        Self::Prefix("quorate".into())
    }
}

/// The names of one read/write lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RwNames {
    Ours(RwKeys),
    Java(JavaRwKeys),
}

/// Those of an `RReadWriteLock` of Redisson, and what we need besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JavaRwKeys {
    /// The record.
    pub(crate) lock: Arc<str>,
    /// What the keys of its readers begin with.
    pub(crate) stem: Arc<str>,
    /// Holds that were ended by force.
    pub(crate) revoked: Arc<str>,
    /// The token of the latest write of ours.
    pub(crate) fence: Arc<str>,
    /// Where a release is told.
    pub(crate) channel: Arc<str>,
}

/// The names of one semaphore. It shares none with other locks of the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SemaphoreKeys {
    /// Who has which slot.
    pub(crate) slots: Arc<str>,
    /// Until when each of them counts.
    pub(crate) ends: Arc<str>,
    /// Holds that were ended by force.
    pub(crate) revoked: Arc<str>,
    /// Who waits, by ticket.
    pub(crate) queue: Arc<str>,
    /// Who waited and was given permits, by ticket.
    pub(crate) served: Arc<str>,
    /// Until when the places of both count.
    pub(crate) alive: Arc<str>,
    /// The fewest permits that anybody has asked with of late.
    pub(crate) permits: Arc<str>,
    /// Where those who wait are called: this, and the client's id.
    pub(crate) calls: Arc<str>,
}

impl KeyScheme {
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self {
            Self::Prefix(prefix) if prefix.is_empty() => {
                Err(Error::invalid("the key prefix is empty"))
            }
            Self::Prefix(prefix) if prefix.contains(['{', '}']) => {
                Err(Error::invalid(format!("the key prefix `{prefix}` has a brace in it")))
            }
            _ => Ok(()),
        }
    }

    /// What the channels by which clients are called begin with; the client's id follows.
    pub(crate) fn calls(&self) -> String {
        match self {
            Self::Prefix(prefix) => format!("{prefix}:calls:"),
            Self::Redisson => "quorate:calls:".into(),
        }
    }

    /// Where a server has the name of its data, and for how long they are known. What leads the key
    /// into a hash slot is added to its tag.
    pub(crate) fn mark(&self) -> Arc<str> {
        match self {
            // No lock's: behind a percent sign those have the code of a character.
            Self::Prefix(prefix) => format!("{prefix}:{{%voter}}").into(),
            Self::Redisson => "{quorate}:quorate_voter".into(),
        }
    }

    /// Where a voter has what its clients believe of the voters.
    pub(crate) fn roster(&self) -> Arc<str> {
        match self {
            Self::Prefix(prefix) => format!("{prefix}:{{%roster}}").into(),
            Self::Redisson => "{quorate}:quorate_roster".into(),
        }
    }

    /// Programs that are not ours lock by the same records.
    pub(crate) fn is_shared_with_java(&self) -> bool {
        *self == Self::Redisson
    }

    /// What keys of locks look like whose names fit a pattern, as `SCAN` takes both. `ending`: what
    /// is added to their hash tags.
    pub(crate) fn pattern(&self, names: &str, ending: &str) -> String {
        match self {
            Self::Prefix(prefix) => {
                format!("{}:{{{}{ending}}}*", escaped(prefix), encoded(names))
            }
            Self::Redisson => format!("{{{names}{ending}}}:*"),
        }
    }

    /// The lock that is held or waited for by what this key says. Of those that Java may hold only
    /// those that are read, or that we have held of late.
    pub(crate) fn found(&self, key: &str) -> Option<FoundLock> {
        let stem = match self {
            Self::Prefix(prefix) => key.strip_prefix(prefix)?.strip_prefix(':')?,
            Self::Redisson => key,
        };
        let (name, part) = stem.strip_prefix('{')?.split_once('}')?;
        let kind = match (self, part) {
            (Self::Prefix(_), "" | ":queue")
            | (Self::Redisson, ":quorate_fence" | ":quorate_queue") => FoundKind::Mutex,
            (Self::Prefix(_), ":rw:writer" | ":rw:readers" | ":rw:queue")
            | (Self::Redisson, ":quorate_rw_fence") => FoundKind::RwLock,
            (Self::Redisson, part) if part.contains(":rwlock_timeout:") => FoundKind::RwLock,
            (Self::Prefix(_), ":semaphore:slots" | ":semaphore:queue")
            | (Self::Redisson, ":quorate_semaphore_slots" | ":quorate_semaphore_queue") => {
                FoundKind::Semaphore
            }
            (Self::Prefix(_), ":election" | ":election:queue")
            | (Self::Redisson, ":quorate_election" | ":quorate_election_queue") => {
                FoundKind::Election
            }
            _ => return None,
        };
        let name = match self {
            Self::Prefix(_) => decoded(name)?,
            Self::Redisson => name.to_owned(),
        };
        Some(FoundLock { name, kind })
    }

    /// Where those stand in Java who wait for an `RFairLock` of this name, and until when.
    pub(crate) fn fair_lock_in_java(name: &LockName) -> [Arc<str>; 2] {
        let tagged = tagged(name.as_str());
        ["queue", "timeout"].map(|part| format!("redisson_lock_{part}:{tagged}").into())
    }

    pub(crate) fn rw_lock(&self, name: &LockName) -> RwNames {
        let name = name.as_str();
        match self {
            Self::Prefix(prefix) => {
                RwNames::Ours(RwKeys::of(format!("{prefix}:{{{}}}:rw", encoded(name))))
            }
            Self::Redisson => {
                let tagged = tagged(name);
                RwNames::Java(JavaRwKeys {
                    lock: name.into(),
                    revoked: format!("{tagged}:quorate_rw_revoked").into(),
                    fence: format!("{tagged}:quorate_rw_fence").into(),
                    channel: format!("redisson_rwlock:{tagged}").into(),
                    stem: tagged.into(),
                })
            }
        }
    }
}

impl KeyScheme {
    pub(crate) fn semaphore(&self, name: &LockName) -> SemaphoreKeys {
        let name = name.as_str();
        let key = |part| match self {
            Self::Prefix(prefix) => {
                format!("{prefix}:{{{}}}:semaphore:{part}", encoded(name)).into()
            }
            Self::Redisson => format!("{}:quorate_semaphore_{part}", tagged(name)).into(),
        };
        SemaphoreKeys {
            slots: key("slots"),
            ends: key("ends"),
            revoked: key("revoked"),
            queue: key("queue"),
            served: key("served"),
            alive: key("alive"),
            permits: key("permits"),
            calls: self.calls().into(),
        }
    }
}

/// As Redisson marks the hash tag of what it derives from a name.
fn tagged(name: &str) -> Cow<'_, str> {
    if name.contains('{') { name.into() } else { format!("{{{name}}}").into() }
}

/// Distinct names stay distinct, and none can end the hash tag early.
fn encoded(name: &str) -> Cow<'_, str> {
    if !name.contains(['{', '}', '%']) {
        return name.into();
    }
    let mut encoded = String::with_capacity(name.len() + 8);
    for character in name.chars() {
        match character {
            '{' => encoded.push_str("%7B"),
            '}' => encoded.push_str("%7D"),
            '%' => encoded.push_str("%25"),
            other => encoded.push(other),
        }
    }
    encoded.into()
}

/// The name that is encoded so; none where that is no lock's.
fn decoded(encoded: &str) -> Option<String> {
    let mut parts = encoded.split('%');
    let mut name = parts.next()?.to_owned();
    for part in parts {
        let (code, rest) = part.split_at_checked(2)?;
        name.push(match code {
            "7B" => '{',
            "7D" => '}',
            "25" => '%',
            _ => return None,
        });
        name.push_str(rest);
    }
    (!name.is_empty()).then_some(name)
}

/// A text as a pattern that only this text fits.
fn escaped(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '*' | '?' | '[' | ']' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

#[cfg(test)]
mod tests;
