//! Keys with their values and the moments at which they expire.

use std::collections::BTreeMap;

use super::{record::Record, sorted_set::SortedSet};

/// A value of one of the types that the commands know.
#[derive(Clone, Debug)]
pub(super) enum Stored {
    Text(String),
    Hash(BTreeMap<String, String>),
    SortedSet(SortedSet),
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
                set.entries().map(|(member, score)| (member.into(), score.to_string())).collect()
            }
        }
    }
}

/// What is left of a key's time.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TimeLeft {
    NoKey,
    Forever,
    Ms(i64),
}

#[derive(Clone, Debug)]
struct KeyEntry {
    stored: Stored,
    expires_at_ms: Option<i64>,
}

/// The data of one voter. Time stands still between two calls of [`Keyspace::set_time`], as it does
/// on a server while a script runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Keyspace {
    entries: BTreeMap<String, KeyEntry>,
    now_micros: i64,
}

impl Keyspace {
    /// Sets the time that expiry is counted by, in microseconds since 1970.
    pub(super) fn set_time(&mut self, now_micros: i64) {
        self.now_micros = now_micros;
    }

    pub(super) fn now_micros(&self) -> i64 {
        self.now_micros
    }

    pub(super) fn now_ms(&self) -> i64 {
        self.now_micros / 1000
    }

    pub(super) fn get(&self, key: &str) -> Option<&Stored> {
        self.live(key).map(|entry| &entry.stored)
    }

    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut Stored> {
        self.sweep(key);
        self.entries.get_mut(key).map(|entry| &mut entry.stored)
    }

    /// Stores a value without an expiry.
    pub(super) fn set(&mut self, key: &str, stored: Stored) {
        self.entries.insert(key.into(), KeyEntry { stored, expires_at_ms: None });
    }

    /// The value of `key`, put there first if there is none.
    pub(super) fn get_or_set(&mut self, key: &str, stored: Stored) -> &mut Stored {
        self.sweep(key);
        let fresh = KeyEntry { stored, expires_at_ms: None };
        &mut self.entries.entry(key.into()).or_insert(fresh).stored
    }

    /// Tells whether there was such a key.
    pub(super) fn remove(&mut self, key: &str) -> bool {
        self.sweep(key);
        self.entries.remove(key).is_some()
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    /// Deletes what has expired.
    pub(super) fn sweep_all(&mut self) {
        let now_ms = self.now_ms();
        self.entries.retain(|_, entry| entry.is_live(now_ms));
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

    /// Sets when a key expires. Tells whether there is such a key.
    pub(super) fn expire_at(&mut self, key: &str, at_ms: i64) -> bool {
        self.sweep(key);
        let entry = self.entries.get_mut(key);
        entry.map(|entry| entry.expires_at_ms = Some(at_ms)).is_some()
    }

    pub(super) fn left(&self, key: &str) -> TimeLeft {
        let Some(entry) = self.live(key) else { return TimeLeft::NoKey };
        entry.expires_at_ms.map_or(TimeLeft::Forever, |at_ms| TimeLeft::Ms(at_ms - self.now_ms()))
    }

    fn live(&self, key: &str) -> Option<&KeyEntry> {
        self.entries.get(key).filter(|entry| entry.is_live(self.now_ms()))
    }

    fn live_entries(&self) -> impl Iterator<Item = (&String, &KeyEntry)> {
        let now_ms = self.now_ms();
        self.entries.iter().filter(move |(_, entry)| entry.is_live(now_ms))
    }

    fn sweep(&mut self, key: &str) {
        if self.live(key).is_none() {
            self.entries.remove(key);
        }
    }
}

impl KeyEntry {
    /// A server keeps a key through the whole of its last millisecond.
    fn is_live(&self, now_ms: i64) -> bool {
        self.expires_at_ms.is_none_or(|at_ms| now_ms <= at_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> Stored {
        Stored::Text("x".into())
    }

    #[test]
    fn a_key_lives_through_its_last_millisecond_and_is_gone_after_it() {
        let mut keyspace = Keyspace::default();
        keyspace.set("a", text());
        assert!(keyspace.expire_at("a", 5));
        keyspace.set_time(5_999);
        assert_eq!(keyspace.left("a"), TimeLeft::Ms(0));
        keyspace.set_time(6_000);
        assert_eq!((keyspace.left("a"), keyspace.keys().count()), (TimeLeft::NoKey, 0));
        assert!(!keyspace.remove("a"));
    }

    #[test]
    fn a_key_that_comes_after_an_expired_one_does_not_inherit_its_expiry() {
        let mut keyspace = Keyspace::default();
        keyspace.set("a", text());
        keyspace.expire_at("a", 5);
        keyspace.set_time(10_000);
        keyspace.get_or_set("a", text());
        assert_eq!(keyspace.left("a"), TimeLeft::Forever);
    }
}
