//! What operators see of servers and locks.

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
    /// Its answer, or why there is none.
    #[cfg_attr(feature = "serde", serde(flatten, serialize_with = "super::or_error"))]
    pub info: Result<ServerInfo, Cause>,
}

/// What a server says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ServerInfo {
    /// Another value after each start. The same for every address of one server.
    pub run_id: String,
    /// Which program it is: `redis`, `valkey`, or `embedded`.
    pub software: String,
    /// The version of that program.
    pub version: String,
    /// Whether it is a primary. A replica cannot vote.
    pub is_primary: bool,
    /// How long it has run, by its own clock.
    #[cfg_attr(feature = "serde", serde(rename = "uptime_ms", serialize_with = "super::millis"))]
    pub uptime: Duration,
    /// How many replicas are connected to it.
    pub replicas: u32,
    /// How many bytes it uses.
    #[cfg_attr(feature = "serde", serde(rename = "memory_used_bytes"))]
    pub memory_used: u64,
    /// How many bytes it may use; `None` if there is no limit.
    #[cfg_attr(feature = "serde", serde(rename = "memory_limit_bytes"))]
    pub memory_limit: Option<u64>,
    /// What it does when its memory is full: `noeviction`, or how it chooses the keys that it
    /// deletes.
    pub eviction_policy: String,
    /// What it writes to its disk, and when.
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::durability"))]
    pub persistence: Persistence,
    /// Whether it serves nobody while any slot of its cluster has no primary
    /// (`cluster-require-full-coverage`). `None` outside of a cluster, or if it does not say.
    pub needs_all_slots: Option<bool>,
    /// What its clock shows; `None` if it does not say.
    pub clock: Option<ClockOffset>,
    /// The rights that locks need and the client's user lacks, in the form of `ACL SETUSER`:
    /// `+zadd`, `~quorate:{*`, `&quorate:{*`.
    pub missing_rights: Vec<String>,
}

/// What a server writes to its disk, and when. A setting is `None` if the server does not say it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Persistence {
    /// Whether it writes each change to a file (`appendonly yes`).
    pub appendonly: bool,
    /// When that file is on the disk: `always` (before it answers), `everysec` or `no`.
    pub appendfsync: Option<String>,
    /// Whether it does not wait for the disk while it rewrites the file.
    pub no_appendfsync_on_rewrite: Option<bool>,
    /// How much of the end of that file it may drop at a start (`aof-load-corrupt-tail-max-size`,
    /// since Redis 8.4).
    pub aof_load_corrupt_tail_max_size: Option<String>,
    /// Whether the user `default` may run all commands on all keys. A server reads the file as this
    /// user, and most servers drop commands that it may not run, votes above all. `None` if the
    /// client's user may not ask.
    pub default_user_may_write: Option<bool>,
    /// When it writes a snapshot of all data. Empty for never.
    pub save: Option<String>,
}

impl Persistence {
    /// Whether each change is on the disk when it is answered, so that a restart forgets nothing.
    pub fn is_durable(&self) -> bool {
        // A setting that the server does not say is taken for the worse one. The exceptions: older
        // servers do not have the setting for the tail, and only operators may read the user.
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
    /// By how many microseconds it is ahead. Negative if it is behind.
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
    /// `shown`: the server's clock, since 1970. `wall`: the client's clock when the answer came.
    /// `took`: how long that took.
    pub(crate) fn new(shown: Duration, wall: Duration, took: Duration) -> Self {
        // The server read its clock at some moment of the round trip: the middle is wrong by at
        // most half of it.
        let micros = |time: Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
        let uncertain = took / 2;
        let ahead_micros = micros(shown + uncertain).saturating_sub(micros(wall));
        Self { ahead_micros, uncertain }
    }
}

/// A lock of which voters have records, from [`Admin::find`](crate::Admin::find).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct FoundLock {
    /// Its name, as passed to [`Quorate::mutex`](crate::Quorate::mutex) and its like.
    pub name: String,
    /// Which lock of that name it is.
    pub kind: LockKind,
}

/// The kind of a lock. One name can have a lock of each kind.
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
