//! The answer of a voter, why there is none, or why it does not count.

use std::{fmt, sync::Arc, time::Duration};

use super::{HoldId, Reason, Rounded, Side};

/// A voter's answer about one hold.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// The hold has its vote (of a release: had it, and gave it back).
    Granted,
    /// It answered when the client connected. No vote had been requested yet.
    Reached,
    /// Another hold has its vote, for `ttl` more unless renewed (`None`: its record has no expiry).
    /// Of several readers it is the one whose lease ends last.
    Refused {
        /// The hold that has the vote.
        by: HoldId,
        /// What is left of that hold's lease.
        ttl: Option<Duration>,
    },
    /// Its vote is kept for waiters in the queue of the lock: `place` is the waiter directly before
    /// the caller, for `ttl` more unless it asks again.
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
    /// No usable answer: the request may have run or not. It is neither a yes nor a no.
    Unknown(Cause),
}

impl Verdict {
    /// The hold or place in the way, and for how long unless it asks again.
    pub(crate) fn obstacle(&self) -> Option<(&HoldId, Option<Duration>)> {
        match self {
            Self::Refused { by, ttl } | Self::Behind { place: by, ttl } => Some((by, *ttl)),
            _ => None,
        }
    }

    /// The time until the voter's answers count; `None` if that is unknown.
    pub(crate) fn counts_in(&self) -> Option<Duration> {
        match self {
            Self::Unknown(Cause::Quarantined(quarantined)) => Some(quarantined.left),
            // Nothing is wrong with a voter that was not waited for.
            Self::Unknown(Cause::Unheard) => Some(Duration::ZERO),
            // Nobody knows when a voter that is down comes back.
            Self::Unknown(_) => None,
            _ => Some(Duration::ZERO),
        }
    }

    /// Whether the voter said that the hold has no vote of it.
    pub(crate) fn is_lacking(&self) -> bool {
        *self == Self::Absent || self.obstacle().is_some()
    }

    /// The reason in metrics, if the voter refused.
    pub(crate) fn refusal(&self) -> Option<&'static str> {
        match self {
            Self::Refused { .. } => Some("held"),
            Self::Behind { .. } => Some("behind"),
            Self::Revoked => Some("forced"),
            Self::Absent => Some("absent"),
            Self::Granted | Self::Reached | Self::Unknown(_) => None,
        }
    }

    /// Whether the voter gave its vote, even if that does not count.
    pub(crate) fn is_given(&self) -> bool {
        // The record is there all the same, and keeps others out until its lease ends.
        use Cause::{ConfigurationMismatch, Quarantined, Unacknowledged};
        match self {
            Self::Unknown(why) => {
                matches!(why, Quarantined(_) | Unacknowledged { .. } | ConfigurationMismatch(_))
            }
            verdict => *verdict == Self::Granted,
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
            Self::Behind { place, ttl: None } => write!(f, "behind {place} in the queue"),
            Self::Revoked => f.write_str("ended by force"),
            Self::Absent => f.write_str("held by nobody"),
            Self::Unknown(cause) => write!(f, "{cause}"),
        }
    }
}

/// Why there is no usable answer of a voter.
// Only `Unreachable` tells a client that nothing was sent, and that no undo is needed. With every
// other cause, it assumes that the request may have run and left a vote (law 6).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(tag = "kind", content = "detail", rename_all = "snake_case")
)]
pub enum Cause {
    /// There is no connection; the request was not sent.
    Unreachable(Reason),
    /// No answer within this time; the request may have run.
    TimedOut(#[cfg_attr(feature = "serde", serde(serialize_with = "super::millis"))] Duration),
    /// The connection broke after sending; the request may have run.
    Broken(Reason),
    /// The server answered with an error.
    Rejected(Reason),
    /// This voter is the same server as another one, so it has no vote.
    Duplicate(Arc<str>),
    /// It granted, and that does not count: it may have forgotten an earlier vote.
    Quarantined(Quarantined),
    /// It granted, and that does not count: too few of its replicas acknowledged it in time. See
    /// [`Builder::replica_acks`](crate::Builder::replica_acks).
    Unacknowledged {
        /// How many replicas acknowledged it.
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
    /// It granted, and that does not count: clients of some voter have another configuration, or
    /// the configuration was not compared with this voter yet. See
    /// [`Builder::voter_configuration`](crate::Builder::voter_configuration).
    ConfigurationMismatch(Arc<str>),
    /// Its answer was not waited for, as the others had decided.
    Unheard,
}

impl std::error::Error for Cause {}

impl Cause {
    /// The reason, with the error of the server, if there was no connection, it broke, or the
    /// server answered with an error.
    pub fn reason(&self) -> Option<&Reason> {
        match self {
            Self::Unreachable(why) | Self::Broken(why) | Self::Rejected(why) => Some(why),
            _ => None,
        }
    }
}

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
            Self::ConfigurationMismatch(why) => f.write_str(why),
            Self::Unheard => f.write_str("not waited for"),
        }
    }
}

/// Why a voter is in quarantine: it may have forgotten votes.
///
/// It is asked like the others, but its grants do not count for new holds until the longest lease
/// has passed. They count for renewals of holds that had its vote before.
// Asked all the same: so it knows the votes of new holds, too, when its quarantine ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(tag = "why", content = "by_ms", rename_all = "snake_case")
)]
pub enum Quarantine {
    /// It came back as another process that does not write every change to disk, or was a replica
    /// in between.
    Restarted,
    /// When this client first saw it, its data were younger than another voter's: it started, was
    /// emptied or was promoted later. A start does not matter if the server wrote every change to
    /// disk before and does so now.
    Young,
    /// Its data are gone although it kept running: they were deleted (`FLUSHALL`) or evicted, or
    /// they are other data.
    Emptied,
    /// Its data have the name of another voter's data: one of the two started with a copy of the
    /// other's data, and without its own. Nobody knows which.
    Copied,
    /// Its clock moved by this much more than clocks may. If it moved forward, votes expired too
    /// soon; if it moved backward, it may move forward again.
    ClockMoved(#[cfg_attr(feature = "serde", serde(serialize_with = "super::millis"))] Duration),
    /// When this client first saw it, its clock differed this much from the clocks of a majority,
    /// or from any other clock if no majority agreed.
    ClockApart(#[cfg_attr(feature = "serde", serde(serialize_with = "super::millis"))] Duration),
    /// A client had looked at it before, and its clock showed this much more then than it does now.
    /// If it was ahead, votes expired too soon.
    ClockSetBack(#[cfg_attr(feature = "serde", serde(serialize_with = "super::millis"))] Duration),
}

impl Quarantine {
    /// Its label in metrics.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Restarted => "restarted",
            Self::Young => "young",
            Self::Emptied => "emptied",
            Self::Copied => "copied",
            Self::ClockMoved(_) => "clock_moved",
            Self::ClockApart(_) => "clock_apart",
            Self::ClockSetBack(_) => "clock_set_back",
        }
    }
}

impl fmt::Display for Quarantine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Restarted => f.write_str("restarted, perhaps without its data"),
            Self::Young => {
                f.write_str("started or was promoted after the others, perhaps without its data")
            }
            Self::Emptied => f.write_str("its data, or a part of them, are gone"),
            Self::Copied => {
                f.write_str("its data and another voter's are copies, so one lacks its votes")
            }
            Self::ClockMoved(by) => write!(f, "its clock moved by {by:?}"),
            Self::ClockApart(by) => write!(f, "its clock is {by:?} from those of others"),
            Self::ClockSetBack(by) => write!(f, "its clock was set back by {by:?}"),
        }
    }
}

/// A voter's quarantine, and how long it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Quarantined {
    /// Why its grants do not count for new holds.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub why: Quarantine,
    /// How long they will not count.
    #[cfg_attr(feature = "serde", serde(rename = "left_ms", serialize_with = "super::millis"))]
    pub left: Duration,
}

impl fmt::Display for Quarantined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left = Duration::from_millis(u64::try_from(self.left.as_millis()).unwrap_or(u64::MAX));
        write!(f, "in quarantine for {left:?} more: {}", self.why)
    }
}

/// Whether voters that may have forgotten votes are in quarantine: for the longest lease, their
/// grants do not count for new holds.
///
/// A voter that writes every change to disk before it answers (`appendonly yes`, `appendfsync
/// always` and `no-appendfsync-on-rewrite no`) forgets nothing by a restart, so a restart does not
/// put it in quarantine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RestartGuard {
    /// A voter is in quarantine if it restarted, if its data were deleted, or if its clock moved;
    /// also if, when the client first saw it, it was younger than another voter, or its clock
    /// differed from the majority's or had been set back.
    ///
    /// If all voters have started within the last longest lease, and within 5 s of each other (or
    /// were first seen by any client within a second), none is in quarantine. So this is unsafe for
    /// one longest lease after all voters have lost their data together, if holders have survived
    /// that. A single voter is always in this case.
    #[default]
    Relative,
    /// As `Relative`, and also every voter that started within the last longest lease, or whose
    /// data clients first saw within it. After all voters have started, nothing can be acquired for
    /// that long.
    Strict,
    /// No quarantine: a voter that restarts without its data can help to give a lock twice, also to
    /// clients with another guard. So either all clients have this one, or none has.
    Off,
}

/// What one voter contributed to an [`Error`](super::Error).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VoterReport {
    /// The voter's address, without credentials.
    pub voter: String,
    /// The set of the voter, while the voters are being [replaced](crate::Builder::replacing).
    pub side: Option<Side>,
    /// Its answer, or why there is none.
    pub verdict: Verdict,
}

impl VoterReport {
    pub(crate) fn new(voter: impl Into<String>, verdict: Verdict) -> Self {
        Self { voter: voter.into(), side: None, verdict }
    }
}

impl fmt::Display for VoterReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Sided { voter: &self.voter, side: self.side }.fmt(f)?;
        f.write_str(": ")?;
        self.verdict.fmt(f)
    }
}

/// Reports in one line, for errors and the log.
#[derive(Debug)]
pub struct Listed<'a>(pub &'a [VoterReport]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, report) in self.0.iter().enumerate() {
            f.write_str(if place == 0 { "" } else { "; " })?;
            report.fmt(f)?;
        }
        Ok(())
    }
}

/// A voter with its set, if there are two.
#[derive(Debug)]
pub struct Sided<'a> {
    pub voter: &'a str,
    pub side: Option<Side>,
}

impl fmt::Display for Sided<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.voter)?;
        self.side.map_or(Ok(()), |side| write!(f, " ({side})"))
    }
}
