//! What a voter said, or why it said nothing, or why that does not count.

use std::{fmt, sync::Arc, time::Duration};

use super::{HoldId, Reason, Rounded, Side};

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

    /// In how long the voter's answers count, as far as is known: in quarantine after that, and at
    /// once if this one does or was not waited for.
    pub(crate) fn counts_in(&self) -> Option<Duration> {
        match self {
            Self::Unknown(Cause::Quarantined(quarantined)) => Some(quarantined.left),
            Self::Unknown(Cause::Unheard) => Some(Duration::ZERO),
            Self::Unknown(_) => None,
            _ => Some(Duration::ZERO),
        }
    }

    /// Whether the voter said that the hold has no vote of it.
    pub(crate) fn is_lacking(&self) -> bool {
        *self == Self::Absent || self.obstacle().is_some()
    }

    /// Whether the voter gave its vote, whether that counts or not.
    pub(crate) fn is_given(&self) -> bool {
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
    Unreachable(Reason),
    /// No answer within this time; the request may have run.
    TimedOut(#[cfg_attr(feature = "serde", serde(serialize_with = "super::millis"))] Duration),
    /// The connection broke after sending; the request may have run.
    Broken(Reason),
    /// The server answered with an error.
    Rejected(Reason),
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
    /// [`Builder::voter_configuration`](crate::Builder::voter_configuration).
    ConfigurationMismatch(Arc<str>),
    /// The verdict stood before its answer came.
    Unheard,
}

impl std::error::Error for Cause {}

impl Cause {
    /// What went wrong, and which error of the server that was, where there is no connection, it
    /// broke, or the server answered with an error.
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

/// Why a voter is in quarantine: it may have forgotten votes that it gave.
///
/// It is asked like the others, and its grants do not count for new holds until the longest lease
/// has passed; for the renewal of a hold whose vote it had before, they do.
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
    /// When this client met it, it had not had its data for as long as another voter: it started,
    /// was emptied or was promoted later. A start does not count if it writes every change to disk
    /// both before and after.
    Young,
    /// Its data are gone, though it has run on: they were deleted (`FLUSHALL`), evicted, or are
    /// those of another.
    Emptied,
    /// Its data have the name of another voter's: one of the two started with a copy of the other's
    /// data, and without its own. Which of them, nobody knows.
    Copied,
    /// Its clock moved by this much more than clocks may: forward, so that votes have expired
    /// before their time, or backward, so that they may yet.
    ClockMoved(#[cfg_attr(feature = "serde", serde(serialize_with = "super::millis"))] Duration),
    /// When this client met it, its clock was this far from those of a majority; or from another's,
    /// where no majority agreed.
    ClockApart(#[cfg_attr(feature = "serde", serde(serialize_with = "super::millis"))] Duration),
}

impl Quarantine {
    /// What metrics call it.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Restarted => "restarted",
            Self::Young => "young",
            Self::Emptied => "emptied",
            Self::Copied => "copied",
            Self::ClockMoved(_) => "clock_moved",
            Self::ClockApart(_) => "clock_apart",
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
        }
    }
}

/// A voter's quarantine, and for how long it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Quarantined {
    /// Why its grants do not count for new holds.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub why: Quarantine,
    /// For how long they will not.
    #[cfg_attr(feature = "serde", serde(rename = "left_ms", serialize_with = "super::millis"))]
    pub left: Duration,
}

impl fmt::Display for Quarantined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left = Duration::from_millis(u64::try_from(self.left.as_millis()).unwrap_or(u64::MAX));
        write!(f, "in quarantine for {left:?} more: {}", self.why)
    }
}

/// Whether voters that may have forgotten votes are kept out of new holds for the longest lease.
///
/// A voter that writes every change to disk before it answers (`appendonly yes`, `appendfsync
/// always` and `no-appendfsync-on-rewrite no`) forgets nothing by a restart, and is not kept out
/// for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RestartGuard {
    /// A voter is kept out if it restarted, if its data were deleted, or if its clock moved. So is
    /// one that was younger than another voter when the client first saw it, or whose clock was
    /// apart from the majority's then.
    ///
    /// Where all voters have started within the last longest lease, and within 5 s of each other
    /// (or were first met by any client within a second), nobody is kept out. So this is unsafe for
    /// one longest lease after all of them have lost their data together, if holders have survived
    /// it; a single voter is always in this case.
    #[default]
    Relative,
    /// Also all that have started not longer ago than the longest lease, or whose data clients have
    /// known for no longer: after all voters have started, nothing can be acquired before that has
    /// passed.
    Strict,
    /// Nobody is: a voter that restarts without its data may help to give a lock twice, also to
    /// clients that have another guard. So all clients have this one, or none has.
    Off,
}

/// What one voter contributed to an [`Error`](super::Error).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VoterReport {
    /// The voter's address, without credentials.
    pub voter: String,
    /// In which set the voter is, where the client has two: while its voters are being
    /// [replaced](crate::Builder::replacing).
    pub side: Option<Side>,
    /// What it said, or why it said nothing.
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

/// One after the other, as errors and the log show them.
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

/// A voter, and in which set it is if there are two.
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
