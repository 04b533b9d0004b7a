//! What a voter stores, and who listens to what: all that commands work on.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    sync::Arc,
};

/// What commands work on.
#[derive(Debug, Default)]
pub(super) struct Database {
    pub(super) keyspace: Keyspace,
    pub(super) channels: Channels,
    /// A script may do nothing that could take memory, until it has written something else.
    pub(super) is_full: bool,
}

/// A key of an embedded voter with its value and what is left of its time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Record {
    /// The key.
    pub key: String,
    /// The fields of a hash with their values, in order. A text is one field with an empty name;
    /// a sorted set has its members with their scores, in the order of the set.
    pub fields: Vec<(String, String)>,
    /// The milliseconds until the key expires, by the voter's own clock; `None`: it does not.
    pub left_ms: Option<i64>,
}

/// The keys of one voter. Time stands still between two calls of [`Keyspace::set_time`], as it does
/// on a server while a script runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Keyspace {
    entries: BTreeMap<String, KeyEntry>,
    /// Since 1970.
    pub(super) now_micros: i64,
}

#[derive(Clone, Debug)]
struct KeyEntry {
    stored: Stored,
    expires_at_ms: Option<i64>,
}

/// A value of one of the types that the commands know.
#[derive(Clone, Debug)]
pub(super) enum Stored {
    Text(String),
    Hash(Hash),
    SortedSet(SortedSet),
}

pub(super) type Hash = BTreeMap<String, String>;

impl Keyspace {
    pub(super) fn now_ms(&self) -> i64 {
        self.now_micros / 1000
    }

    pub(super) fn get(&self, key: &str) -> Option<&Stored> {
        self.live(key).map(|entry| &entry.stored)
    }

    /// Stores a value without an expiry.
    pub(super) fn set(&mut self, key: &str, stored: Stored) {
        self.entries.insert(key.into(), KeyEntry { stored, expires_at_ms: None });
    }

    /// Tells whether there was such a key.
    pub(super) fn remove(&mut self, key: &str) -> bool {
        self.sweep(key);
        self.entries.remove(key).is_some()
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    /// Reads or changes what is under `key`, where that is of the type of this `empty` value; `act`
    /// knows that. An empty one is not there, before and after it.
    pub(super) fn with<T>(
        &mut self,
        key: &str,
        empty: Stored,
        act: impl FnOnce(&mut Stored) -> Option<T>,
    ) -> Result<T, String> {
        self.sweep(key);
        let fresh = KeyEntry { stored: empty, expires_at_ms: None };
        let stored = &mut self.entries.entry(key.into()).or_insert(fresh).stored;
        let result = act(stored);
        let is_empty = match stored {
            Stored::Text(_) => false,
            Stored::Hash(hash) => hash.is_empty(),
            Stored::SortedSet(set) => set.0.is_empty(),
        };
        if is_empty {
            self.entries.remove(key);
        }
        result.ok_or_else(wrong_type)
    }

    /// Sets when a key expires. Tells whether there is such a key.
    pub(super) fn expire_at(&mut self, key: &str, at_ms: i64) -> bool {
        self.sweep(key);
        let entry = self.entries.get_mut(key);
        entry.map(|entry| entry.expires_at_ms = Some(at_ms)).is_some()
    }

    /// The milliseconds until a key expires; -1 where it does not, and -2 where there is no key.
    pub(super) fn left_ms(&self, key: &str) -> i64 {
        let Some(entry) = self.live(key) else { return -2 };
        entry.expires_at_ms.map_or(-1, |at_ms| at_ms - self.now_ms())
    }

    /// The live keys, sorted.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.live_entries().map(|(key, _)| key.as_str())
    }

    /// The live keys with all there is to say about them, sorted.
    pub(super) fn records(&self) -> impl Iterator<Item = Record> {
        self.live_entries().map(|(key, entry)| {
            let left_ms = entry.expires_at_ms.map(|at_ms| at_ms - self.now_ms());
            Record { key: key.clone(), fields: entry.stored.fields(), left_ms }
        })
    }

    /// Deletes what has expired.
    pub(super) fn sweep_all(&mut self) {
        let now_ms = self.now_ms();
        self.entries.retain(|_, entry| entry.is_live(now_ms));
    }

    fn sweep(&mut self, key: &str) {
        if self.live(key).is_none() {
            self.entries.remove(key);
        }
    }

    fn live(&self, key: &str) -> Option<&KeyEntry> {
        self.entries.get(key).filter(|entry| entry.is_live(self.now_ms()))
    }

    fn live_entries(&self) -> impl Iterator<Item = (&String, &KeyEntry)> {
        let now_ms = self.now_ms();
        self.entries.iter().filter(move |(_, entry)| entry.is_live(now_ms))
    }
}

impl KeyEntry {
    /// A server keeps a key through the whole of its last millisecond.
    fn is_live(&self, now_ms: i64) -> bool {
        self.expires_at_ms.is_none_or(|at_ms| now_ms <= at_ms)
    }
}

impl Stored {
    /// What a [`Record`] shows of it.
    fn fields(&self) -> Vec<(String, String)> {
        match self {
            Self::Text(text) => vec![(String::new(), text.clone())],
            Self::Hash(hash) => {
                hash.iter().map(|(field, value)| (field.clone(), value.clone())).collect()
            }
            Self::SortedSet(set) => {
                set.0.iter().map(|(score, member)| (member.clone(), score.to_string())).collect()
            }
        }
    }
}

pub(super) fn wrong_type() -> String {
    "WRONGTYPE Operation against a key holding the wrong kind of value".into()
}

/// Scores with their members, ordered by score and then by the bytes of the member. It is small:
/// those who hold a lock or wait for it.
#[derive(Clone, Debug, Default)]
pub(super) struct SortedSet(pub(super) Vec<(i64, String)>);

impl SortedSet {
    /// How many members stand before this one.
    pub(super) fn rank(&self, member: &str) -> Option<usize> {
        self.0.iter().position(|(_, other)| other == member)
    }

    /// Gives a member its score. Tells whether it is a new one.
    pub(super) fn put(&mut self, member: &str, score: i64) -> bool {
        let is_new = !self.remove(member);
        let entry = (score, member.to_owned());
        let rank = self.0.partition_point(|other| *other < entry);
        self.0.insert(rank, entry);
        is_new
    }

    /// Tells whether there was such a member.
    pub(super) fn remove(&mut self, member: &str) -> bool {
        self.rank(member).map(|rank| self.0.remove(rank)).is_some()
    }
}

/// Names a connection; grows from one to the next.
pub(super) type ConnectionId = u64;

/// What was said on a channel, for one that listens.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) listener: ConnectionId,
    pub(super) channel: Arc<str>,
    pub(super) text: Arc<str>,
}

/// The channels of one voter.
#[derive(Debug, Default)]
pub(super) struct Channels {
    listeners: BTreeSet<(Arc<str>, ConnectionId)>,
    published: Vec<Message>,
}

impl Channels {
    pub(super) fn subscribe(&mut self, connection: ConnectionId, channel: &Arc<str>) {
        self.listeners.insert((Arc::clone(channel), connection));
    }

    pub(super) fn unsubscribe(&mut self, connection: ConnectionId, channel: &Arc<str>) {
        self.listeners.remove(&(Arc::clone(channel), connection));
    }

    pub(super) fn unsubscribe_all(&mut self, connection: ConnectionId) {
        self.listeners.retain(|(_, listener)| *listener != connection);
    }

    /// Remembers that something was said on a channel, and tells how many will hear it.
    pub(super) fn publish(&mut self, channel: &str, text: &str) -> usize {
        let (channel, text): (Arc<str>, Arc<str>) = (channel.into(), text.into());
        let all = (Arc::clone(&channel), 0)..=(Arc::clone(&channel), ConnectionId::MAX);
        let before = self.published.len();
        self.published.extend(self.listeners.range(all).map(|(channel, listener)| Message {
            listener: *listener,
            channel: Arc::clone(channel),
            text: Arc::clone(&text),
        }));
        self.published.len() - before
    }

    /// What was said since the last call, in order.
    pub(super) fn take_published(&mut self) -> Vec<Message> {
        mem::take(&mut self.published)
    }

    /// The channels listened to, one entry per connection and channel.
    pub(super) fn subscriptions(&self) -> impl Iterator<Item = &str> {
        self.listeners.iter().map(|(channel, _)| &**channel)
    }
}
