//! What operators are told of servers and locks.

use std::{fmt, time::Duration};

use super::Cause;

/// What one server answered when it was asked about itself, by
/// [`Quorate::survey`](crate::Quorate::survey).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ServerReport {
    /// Its address, without credentials.
    pub server: String,
    /// What it says; or why it did not say.
    #[cfg_attr(feature = "serde", serde(flatten, serialize_with = "super::or_error"))]
    pub info: Result<ServerInfo, Cause>,
}

/// What a server says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ServerInfo {
    /// Another value after each start; the same by whatever address it is reached.
    pub run_id: String,
    /// Which program it is: `redis`, `valkey`, or `embedded`.
    pub software: String,
    /// The version of that program.
    pub version: String,
    /// Whether it is a primary. A replica cannot vote.
    pub is_primary: bool,
    /// For how long it has run, by its own clock.
    #[cfg_attr(feature = "serde", serde(rename = "uptime_ms", serialize_with = "super::millis"))]
    pub uptime: Duration,
    /// How many replicas are connected to it.
    pub replicas: u32,
    /// How many bytes it uses.
    #[cfg_attr(feature = "serde", serde(rename = "memory_used_bytes"))]
    pub memory_used: u64,
    /// How many bytes it may use; `None` where there is no limit.
    #[cfg_attr(feature = "serde", serde(rename = "memory_limit_bytes"))]
    pub memory_limit: Option<u64>,
    /// What it does when its memory is full: `noeviction`, or how it chooses the keys that it
    /// deletes.
    pub eviction_policy: String,
    /// What it writes to its disk, and when.
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::durability"))]
    pub persistence: Persistence,
    /// Whether it serves nobody while any slot of its cluster has no primary
    /// (`cluster-require-full-coverage`); `None` in no cluster, or where it does not say.
    pub needs_all_slots: Option<bool>,
    /// What its clock shows; `None` where it does not say.
    pub clock: Option<ClockOffset>,
    /// What the client's user lacks of the rights that locks need, as `ACL SETUSER` takes them:
    /// `+zadd`, `~quorate:{*`, `&quorate:{*`.
    pub missing_rights: Vec<String>,
}

/// What a server writes to its disk, and when. `None` is what it does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Persistence {
    /// It writes each change to a file (`appendonly yes`).
    pub appendonly: bool,
    /// When that file is on the disk: `always` (before it answers), `everysec` or `no`.
    pub appendfsync: Option<String>,
    /// It does not wait for the disk while it writes a file anew.
    pub no_appendfsync_on_rewrite: Option<bool>,
    /// How much of the end of that file a start may give up (`aof-load-corrupt-tail-max-size`,
    /// since Redis 8.4).
    pub aof_load_corrupt_tail_max_size: Option<String>,
    /// Whether the user `default`, as which a server reads that file, may run all commands on all
    /// keys. Most servers drop what it may not, votes above all. For operators: others may not ask.
    pub default_user_may_write: Option<bool>,
    /// When it writes a snapshot of all data; empty for never.
    pub save: Option<String>,
}

impl Persistence {
    /// Whether each change is on the disk when it is answered, so that a restart forgets nothing.
    pub fn is_durable(&self) -> bool {
        self.appendonly
            && self.appendfsync.as_deref() == Some("always")
            && self.no_appendfsync_on_rewrite == Some(false)
            && self.aof_load_corrupt_tail_max_size.as_deref().is_none_or(|size| size == "0")
            && self.default_user_may_write != Some(false)
    }
}

/// How far a server's clock is from the clock of the client's machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ClockOffset {
    /// By how many microseconds it is ahead; behind where that is negative.
    #[cfg_attr(feature = "serde", serde(rename = "ahead_us"))]
    pub ahead_micros: i64,
    /// By how much that may be wrong: half of the time that the answer took.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "uncertain_us", serialize_with = "super::micros")
    )]
    pub uncertain: Duration,
}

impl ClockOffset {
    /// `shown`: by the server, since 1970. `wall`: what the client's clock showed when the answer
    /// came, which took so long.
    pub(crate) fn new(shown: Duration, wall: Duration, took: Duration) -> Self {
        let micros = |time: Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
        let uncertain = took / 2;
        let ahead_micros = micros(shown + uncertain).saturating_sub(micros(wall));
        Self { ahead_micros, uncertain }
    }
}

/// A lock of which voters have records, as [`Admin::find`](crate::Admin::find) found it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct FoundLock {
    /// Its name, as locks are made with it.
    pub name: String,
    /// Which lock of that name it is.
    pub kind: LockKind,
}

/// Which of the locks that a name has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum LockKind {
    /// A [`Mutex`](crate::Mutex), fair or not.
    Mutex,
    /// An [`RwLock`](crate::RwLock).
    RwLock,
    /// A [`Semaphore`](crate::Semaphore).
    Semaphore,
    /// An [`Election`](crate::Election).
    Election,
    /// A [`Once`](crate::Once).
    Once,
}

impl fmt::Display for LockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mutex => "mutex",
            Self::RwLock => "read/write lock",
            Self::Semaphore => "semaphore",
            Self::Election => "election",
            Self::Once => "job",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_may_give_up_votes_when_it_starts_is_not_durable() {
        let durable = Persistence {
            appendonly: true,
            appendfsync: Some("always".into()),
            no_appendfsync_on_rewrite: Some(false),
            ..Persistence::default()
        };
        let with = |size: &str, may_write| Persistence {
            aof_load_corrupt_tail_max_size: Some(size.into()),
            default_user_may_write: may_write,
            ..durable.clone()
        };
        assert!(durable.is_durable() && with("0", Some(true)).is_durable());
        assert!(!with("1024", None).is_durable() && !with("0", Some(false)).is_durable());
    }
}
