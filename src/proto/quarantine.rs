//! Why a voter's grants do not count for new holds.

use std::{fmt, time::Duration};

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
            Self::Emptied => f.write_str("its data were deleted or evicted"),
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
