//! How the words are written for other programs, by `serde`.
//!
//! By hand and not by its derive, which would compile `syn` for everybody who wants this feature.

use std::{fmt::Display, str::FromStr, time::Duration};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, Unexpected},
    ser::SerializeMap,
};

use super::{
    Cause, ClockOffset, Error, FoundKind, FoundLock, HoldId, Owner, Persistence, Quarantine,
    Quarantined, RosterEntry, ServerInfo, ServerReport, Side, Token,
};

/// A time as users see it: whole milliseconds. Each field that has one ends with `_ms`.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn from_text<'de, D: Deserializer<'de>, T: FromStr<Err = Error>>(from: D) -> Result<T, D::Error> {
    from_shown(&String::deserialize(from)?)
}

fn from_shown<T: FromStr<Err = Error>, E: de::Error>(text: &str) -> Result<T, E> {
    text.parse().map_err(|error: Error| E::custom(error))
}

fn as_text<S: Serializer>(what: &impl Display, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(what)
}

impl Serialize for HoldId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        as_text(self, to)
    }
}

impl<'de> Deserialize<'de> for HoldId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from_text(from)
    }
}

impl Serialize for Owner {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        as_text(self, to)
    }
}

impl<'de> Deserialize<'de> for Owner {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from_text(from)
    }
}

/// As a number: every token is exact as a double too, which JavaScript would make of it.
impl Serialize for Token {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(u64::from(*self))
    }
}

impl<'de> Deserialize<'de> for Token {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let number = u64::deserialize(from)?;
        let unexpected = Unexpected::Unsigned(number);
        Self::new(number)
            .ok_or_else(|| de::Error::invalid_value(unexpected, &"a token, 1 to 2^53 - 1"))
    }
}

/// `kind`, and what belongs to it.
impl Serialize for Cause {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        let kind = match self {
            Self::Unreachable(_) => "unreachable",
            Self::TimedOut(_) => "timed_out",
            Self::Broken(_) => "broken",
            Self::Rejected(_) => "rejected",
            Self::Duplicate(_) => "duplicate",
            Self::Quarantined(_) => "quarantined",
            Self::Unacknowledged { .. } => "unacknowledged",
            Self::OutOfStep(_) => "out_of_step",
            Self::Unheard => "unheard",
        };
        map.serialize_entry("kind", kind)?;
        match self {
            Self::Unreachable(text)
            | Self::Broken(text)
            | Self::Rejected(text)
            | Self::OutOfStep(text) => {
                map.serialize_entry("text", &**text)?;
            }
            Self::Duplicate(of) => map.serialize_entry("of", &**of)?,
            Self::TimedOut(after) => map.serialize_entry("after_ms", &millis(*after))?,
            Self::Quarantined(quarantined) => quarantined.entries(&mut map)?,
            Self::Unacknowledged { acknowledged, needed, within } => {
                map.serialize_entry("acknowledged", acknowledged)?;
                map.serialize_entry("needed", needed)?;
                map.serialize_entry("within_ms", &millis(*within))?;
            }
            Self::Unheard => {}
        }
        map.end()
    }
}

impl Quarantine {
    fn entries<M: SerializeMap>(self, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry("why", self.reason())?;
        match self {
            Self::ClockMoved(by) | Self::ClockApart(by) => {
                map.serialize_entry("by_ms", &millis(by))
            }
            Self::Restarted | Self::Young | Self::Emptied => Ok(()),
        }
    }
}

impl Quarantined {
    fn entries<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        self.why.entries(map)?;
        map.serialize_entry("left_ms", &millis(self.left))
    }
}

/// `replaced` is `null` where there is one set of voters.
impl Serialize for RosterEntry {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("number", &self.number)?;
        map.serialize_entry("voters", &self.voters)?;
        map.serialize_entry("replaced", &self.replaced)?;
        map.serialize_entry("longest_lease_ms", &millis(self.longest_lease))?;
        map.serialize_entry("seen_ms", &millis(self.seen))?;
        map.serialize_entry("client", &self.client)?;
        map.serialize_entry("clashes", &self.clashes)?;
        map.end()
    }
}

impl Serialize for Side {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(match self {
            Self::New => "new",
            Self::Both => "both",
            Self::Old => "old",
        })
    }
}

/// `why`, and for clocks `by_ms`.
impl Serialize for Quarantine {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        self.entries(&mut map)?;
        map.end()
    }
}

/// That of [`Quarantine`], and `left_ms`.
impl Serialize for Quarantined {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        self.entries(&mut map)?;
        map.end()
    }
}

/// `server` with what it says of itself; or with `error` in its place.
impl Serialize for ServerReport {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("server", &self.server)?;
        match &self.info {
            Ok(info) => info.entries(&mut map)?,
            Err(cause) => map.serialize_entry("error", cause)?,
        }
        map.end()
    }
}

impl ServerInfo {
    fn entries<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry("run_id", &self.run_id)?;
        map.serialize_entry("software", &self.software)?;
        map.serialize_entry("version", &self.version)?;
        map.serialize_entry("role", if self.is_primary { "primary" } else { "replica" })?;
        map.serialize_entry("uptime_ms", &millis(self.uptime))?;
        map.serialize_entry("replicas", &self.replicas)?;
        map.serialize_entry("memory_used_bytes", &self.memory_used)?;
        map.serialize_entry("memory_limit_bytes", &self.memory_limit)?;
        map.serialize_entry("eviction_policy", &self.eviction_policy)?;
        map.serialize_entry("persistence", &self.persistence)?;
        map.serialize_entry("needs_all_slots", &self.needs_all_slots)?;
        map.serialize_entry("clock", &self.clock)?;
        map.serialize_entry("missing_rights", &self.missing_rights)
    }
}

impl Serialize for ServerInfo {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        self.entries(&mut map)?;
        map.end()
    }
}

/// `null` where the server does not say.
impl Serialize for Persistence {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("is_durable", &self.is_durable())?;
        map.serialize_entry("appendonly", &self.appendonly)?;
        map.serialize_entry("appendfsync", &self.appendfsync)?;
        map.serialize_entry("no_appendfsync_on_rewrite", &self.no_appendfsync_on_rewrite)?;
        let size = &self.aof_load_corrupt_tail_max_size;
        map.serialize_entry("aof_load_corrupt_tail_max_size", size)?;
        map.serialize_entry("default_user_may_write", &self.default_user_may_write)?;
        map.serialize_entry("save", &self.save)?;
        map.end()
    }
}

impl Serialize for ClockOffset {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("ahead_us", &self.ahead_micros)?;
        let uncertain = u64::try_from(self.uncertain.as_micros()).unwrap_or(u64::MAX);
        map.serialize_entry("uncertain_us", &uncertain)?;
        map.end()
    }
}

impl Serialize for FoundLock {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("kind", &self.kind)?;
        map.end()
    }
}

/// `mutex`, `rw_lock`, `semaphore` or `election`.
impl Serialize for FoundKind {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(match self {
            Self::Mutex => "mutex",
            Self::RwLock => "rw_lock",
            Self::Semaphore => "semaphore",
            Self::Election => "election",
        })
    }
}
