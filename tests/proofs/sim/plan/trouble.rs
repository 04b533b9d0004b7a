//! What goes wrong.

use crate::sim::locks::Lock;

/// One of a lock's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Who holds, or writes.
    Record,
    Readers,
    Queue,
    Alive,
    Writers,
    Fence,
}

/// Something that goes wrong at a time of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Trouble {
    pub(crate) at_ms: u64,
    pub(crate) lasts_ms: u64,
    pub(crate) what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    VoterStops(usize),
    VoterDies(usize),
    VoterForgets(usize),
    /// It confirms what it does not keep, and then starts again and says that it kept all.
    VoterLoses(usize),
    VoterFlushed(usize),
    /// It goes down, and has the data of another in place of its own when it comes back.
    VoterCopied {
        voter: usize,
        of: usize,
    },
    /// Its fingerprint is gone, and nothing else.
    FingerprintLost(usize),
    /// It refuses what is new for want of memory.
    VoterFull(usize),
    /// It goes down, and its clock was set when it comes back, with its data or without.
    VoterReboots {
        voter: usize,
        ms: i64,
        keeps: bool,
    },
    /// Of the records, the queue and the deadlines of its places one goes.
    KeyEvicted {
        voter: usize,
        lock: Lock,
        part: Part,
    },
    /// Within the allowance.
    ClockNudged(usize),
    /// Beyond it.
    ClockJumps {
        voter: usize,
        ms: i64,
    },
    ClockRuns {
        voter: usize,
        ppm: i32,
    },
    CutAll {
        voter: usize,
        arrives: bool,
    },
    CutOne {
        voter: usize,
        client: usize,
        arrives: bool,
    },
    Partition {
        voter: usize,
        client: usize,
    },
    /// So far ahead, or behind.
    WallClockSet {
        client: usize,
        ahead_ms: i64,
    },
    ClientStalls(usize),
    ClientSuspended(usize),
    /// It stands still with all of its clocks.
    ClientPaused(usize),
    ClientDies(usize),
    ClientCloses(usize),
}

impl What {
    /// Whether a client stands still or is gone, so that its calls fail.
    pub(crate) fn takes_a_client(self) -> bool {
        matches!(
            self,
            Self::ClientStalls(_)
                | Self::ClientSuspended(_)
                | Self::ClientPaused(_)
                | Self::ClientDies(_)
                | Self::ClientCloses(_)
        )
    }

    /// Whether a voter loses the numbers from which tokens go on.
    pub(crate) fn takes_fences(self) -> bool {
        let evicts = matches!(self, Self::KeyEvicted { part: Part::Fence, .. });
        evicts || self.forgets().is_some() || matches!(self, Self::VoterFlushed(_))
    }

    /// The voter that starts again without its data, or a part of them, if one does.
    pub(crate) fn forgets(self) -> Option<usize> {
        match self {
            Self::VoterForgets(voter)
            | Self::VoterLoses(voter)
            | Self::VoterCopied { voter, .. }
            | Self::VoterReboots { voter, keeps: false, .. } => Some(voter),
            _ => None,
        }
    }

    /// The voter that starts again, if one does.
    pub(crate) fn restarts(self) -> Option<usize> {
        match self {
            Self::VoterDies(voter) | Self::VoterReboots { voter, .. } => Some(voter),
            other => other.forgets(),
        }
    }

    /// The voter whose clock is set beyond the allowance, and by how much; `None` of a clock that
    /// runs wild.
    pub(crate) fn moves_clock(self) -> Option<(usize, Option<i64>)> {
        match self {
            Self::ClockJumps { voter, ms } | Self::VoterReboots { voter, ms, .. } => {
                Some((voter, Some(ms)))
            }
            Self::ClockRuns { voter, .. } => Some((voter, None)),
            _ => None,
        }
    }
}
