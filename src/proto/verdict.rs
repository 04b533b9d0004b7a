//! What a voter said, or why it said nothing.

use std::{fmt, sync::Arc, time::Duration};

use super::{HoldId, Quarantined, Rounded};

/// A voter's answer about one hold.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// The hold has its vote (of a release: had it, and gave it back).
    Granted,
    /// It answered when the client connected. Nothing had been asked for yet.
    Reached,
    /// Another hold has its vote, for `ttl` more unless renewed (`None`: its record has no expiry);
    /// of several readers the last to end.
    Refused {
        /// The hold that has the vote.
        by: HoldId,
        /// What is left of that hold's lease.
        ttl: Option<Duration>,
    },
    /// Its vote is kept for those who wait in the queue of the lock: `place` is the waiter directly
    /// before the one who asked, for `ttl` more unless it asks again.
    Behind {
        /// The place in the queue.
        place: HoldId,
        /// What is left of its time.
        ttl: Option<Duration>,
    },
    /// The hold was ended by [`Admin::end`](crate::Admin::end).
    Revoked,
    /// Nobody has its vote: it was never given, has expired, or the voter lost its data.
    Absent,
    /// No usable answer: it may have happened or not. Never counted as a yes nor as a no.
    Unknown(Cause),
}

impl Verdict {
    /// Who stands in the way, and for how long unless it asks again.
    pub(crate) fn obstacle(&self) -> Option<(&HoldId, Option<Duration>)> {
        match self {
            Self::Refused { by, ttl } | Self::Behind { place: by, ttl } => Some((by, *ttl)),
            _ => None,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Granted => f.write_str("granted"),
            Self::Reached => f.write_str("reached"),
            Self::Refused { by, ttl: Some(ttl) } => {
                write!(f, "held by {by} for {} more", Rounded(*ttl))
            }
            Self::Refused { by, ttl: None } => write!(f, "held by {by} without expiry"),
            Self::Behind { place, ttl: Some(ttl) } => {
                write!(f, "behind {place} in the queue, for {} more", Rounded(*ttl))
            }
            Self::Behind { place, ttl: None } => {
                write!(f, "behind {place} in the queue")
            }
            Self::Revoked => f.write_str("ended by force"),
            Self::Absent => f.write_str("held by nobody"),
            Self::Unknown(cause) => write!(f, "{cause}"),
        }
    }
}

/// Why there is no usable answer of a voter.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(tag = "kind", content = "detail", rename_all = "snake_case")
)]
pub enum Cause {
    /// There is no connection; the request was not sent.
    Unreachable(Arc<str>),
    /// No answer within this time; the request may have run.
    TimedOut(#[cfg_attr(feature = "serde", serde(serialize_with = "super::millis"))] Duration),
    /// The connection broke after sending; the request may have run.
    Broken(Arc<str>),
    /// The server answered with an error.
    Rejected(Arc<str>),
    /// This voter is the same server as another one, so it has no vote of its own.
    Duplicate(Arc<str>),
    /// It granted, and that does not count: it may have forgotten whose its vote was.
    Quarantined(Quarantined),
    /// It granted, and that does not count: too few of its replicas acknowledged it in time; see
    /// [`Builder::replica_acks`](crate::Builder::replica_acks).
    Unacknowledged {
        /// How many did.
        acknowledged: u32,
        /// How many had to.
        needed: u32,
        /// How long they had.
        #[cfg_attr(
            feature = "serde",
            serde(rename = "within_ms", serialize_with = "super::millis")
        )]
        within: Duration,
    },
    /// It granted, and that does not count: clients disagree about who the voters are, or whether
    /// they do was not compared with this voter yet; see
    /// [`Builder::roster`](crate::Builder::roster).
    OutOfStep(Arc<str>),
    /// The verdict stood before its answer came.
    Unheard,
}

impl std::error::Error for Cause {}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why) => write!(f, "unreachable: {why}"),
            Self::TimedOut(after) => write!(f, "no answer within {}", Rounded(*after)),
            Self::Broken(why) => write!(f, "connection broke after sending: {why}"),
            Self::Rejected(why) => write!(f, "answered with an error: {why}"),
            Self::Duplicate(of) => write!(f, "is the same server as {of}"),
            Self::Quarantined(quarantined) => quarantined.fmt(f),
            Self::Unacknowledged { acknowledged, needed, within } => {
                let within = Rounded(*within);
                write!(f, "{acknowledged} of {needed} replicas acknowledged within {within}")
            }
            Self::OutOfStep(why) => f.write_str(why),
            Self::Unheard => f.write_str("not waited for"),
        }
    }
}
