//! The data of a voter: its keys, and its channels.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// All that commands work on.
#[derive(Debug, Default)]
pub(super) struct Database {
    pub(super) keyspace: Keyspace,
    pub(super) channels: Channels,
    /// Whether the first write of a script may not take memory.
    pub(super) is_full: bool,
}

/// A key of an embedded voter with its value and the rest of its time.
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

/// The keys of one voter.
#[derive(Clone, Debug, Default)]
pub(super) struct Keyspace {
    // Ordered, so that a simulation repeats itself: in a hash map, `KEYS` has another order each
    // run.
    entries: BTreeMap<String, KeyEntry>,
    /// Since 1970. Time stands still while a script runs, as on a server.
    pub(super) now_micros: i64,
}

#[derive(Clone, Debug)]
struct KeyEntry {
    stored: Stored,
    expires_at_ms: Option<i64>,
}

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

    /// Says whether there was such a key.
    pub(super) fn remove(&mut self, key: &str) -> bool {
        // An expired key is no key, though nothing has touched it since.
        self.sweep(key);
        self.entries.remove(key).is_some()
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    /// Reads or changes the value of `key`, or this `empty` value. `act` returns `None` if the
    /// value has another type.
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
        // As on a server, there is no empty hash or set: a lock whose last field is gone is free.
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

    /// Sets when a key expires. Says whether there is such a key.
    pub(super) fn expire_at(&mut self, key: &str, at_ms: i64) -> bool {
        self.sweep(key);
        let entry = self.entries.get_mut(key);
        entry.map(|entry| entry.expires_at_ms = Some(at_ms)).is_some()
    }

    /// The milliseconds until a key expires; -1: it does not; -2: there is no such key.
    pub(super) fn left_ms(&self, key: &str) -> i64 {
        let Some(entry) = self.live(key) else { return -2 };
        entry.expires_at_ms.map_or(-1, |at_ms| at_ms - self.now_ms())
    }

    /// The live keys, sorted.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.live_entries().map(|(key, _)| key.as_str())
    }

    /// The live keys with their values, sorted.
    pub(super) fn records(&self) -> impl Iterator<Item = Record> {
        self.live_entries().map(|(key, entry)| {
            let left_ms = entry.expires_at_ms.map(|at_ms| at_ms - self.now_ms());
            Record { key: key.clone(), fields: entry.stored.fields(), left_ms }
        })
    }

    /// Deletes what has expired.
    // Before the clock is set, as a clock that is set back would bring expired votes to life again
    // (`what_has_expired_does_not_come_back_with_the_time`).
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
    fn is_live(&self, now_ms: i64) -> bool {
        // A server keeps a key through the whole of its last millisecond.
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

/// Scores with their members, ordered by score and then by the bytes of the member.
// A list: it is as short as the holders of a lock or its waiters, and ranks are its places.
#[derive(Clone, Debug, Default)]
pub(super) struct SortedSet(pub(super) Vec<(i64, String)>);

impl SortedSet {
    /// How many members stand before this one.
    pub(super) fn rank(&self, member: &str) -> Option<usize> {
        self.0.iter().position(|(_, other)| other == member)
    }

    /// The entries from one place to another, both included. A negative place counts from the end.
    pub(super) fn slice(&self, start: i64, stop: i64) -> impl Iterator<Item = &(i64, String)> {
        let length = i64::try_from(self.0.len()).unwrap_or(i64::MAX);
        // A place before the beginning is -1: as `stop` it gives no entry, as `start` it is the
        // first.
        let at = |place: i64| if place < 0 { (place + length).max(-1) } else { place };
        let (first, end) = (at(start).max(0), at(stop).saturating_add(1));
        let count = usize::try_from(end.saturating_sub(first)).unwrap_or(0);
        self.0.iter().skip(usize::try_from(first).unwrap_or(usize::MAX)).take(count)
    }

    /// Gives a member its score. Says whether the member is new.
    pub(super) fn put(&mut self, member: &str, score: i64) -> bool {
        let is_new = !self.remove(member);
        let entry = (score, member.to_owned());
        let rank = self.0.partition_point(|other| *other < entry);
        self.0.insert(rank, entry);
        is_new
    }

    /// Says whether there was such a member.
    pub(super) fn remove(&mut self, member: &str) -> bool {
        self.rank(member).map(|rank| self.0.remove(rank)).is_some()
    }
}

/// The number of a connection; later ones have higher numbers.
pub(super) type ConnectionId = u64;

/// A message on a channel, for one listener.
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
    /// The messages that were not sent yet, in order.
    pub(super) published: Vec<Message>,
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

    /// Publishes a text, and says how many listeners there are.
    pub(super) fn publish(&mut self, channel: &str, text: &str) -> usize {
        // For the listeners of this moment, as on a server: a release that finds none removes the
        // place of a plain mutex, and wakes the next waiter.
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

    /// The channels listened to, one entry per connection and channel.
    pub(super) fn subscriptions(&self) -> impl Iterator<Item = &str> {
        self.listeners.iter().map(|(channel, _)| &**channel)
    }
}
