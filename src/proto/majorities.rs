//! How many voters must agree, and in which set of voters one is.

use std::fmt;

use super::{Verdict, VoterReport};

/// In which of its two sets of voters a client has a voter, while the voters are being
/// [replaced](crate::Builder::replacing).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum Side {
    /// It is only among the new voters.
    New,
    /// It is among the new voters and among the old ones: it has a vote in each set.
    Both,
    /// It is only among the old voters, which are replaced.
    Old,
}

impl Side {
    /// Whether a voter of this side is one of the new voters.
    pub fn is_new(self) -> bool {
        self != Self::Old
    }

    /// Whether a voter of this side is one of the old voters.
    pub fn is_old(self) -> bool {
        self != Self::New
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::New => "new",
            Self::Both => "new and old",
            Self::Old => "old",
        })
    }
}

/// How many voters are needed, of how many; the same of the old voters, where there are two sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Majorities {
    pub new: (usize, usize),
    pub old: Option<(usize, usize)>,
}

impl Majorities {
    /// What stands behind the number.
    pub fn noun(&self) -> &'static str {
        if self.new.0 == 1 && self.old.is_none() { "voter" } else { "voters" }
    }
}

impl fmt::Display for Majorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { new: (needed, voters), old } = self;
        match old {
            Some((also, old)) => write!(f, "{needed} of {voters} new and {also} of {old} old"),
            None if f.alternate() => write!(f, "{needed} of {voters}"),
            None => write!(f, "{needed}"),
        }
    }
}

/// How many more usable answers each of two sets needs.
pub(super) struct Lacking<'a>(pub(super) Majorities, pub(super) &'a [VoterReport]);

impl fmt::Display for Lacking<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(Majorities { new, old }, reports) = self;
        let Some(old) = old else { return Ok(()) };
        let usable = |is_in: fn(Side) -> bool| {
            let of_set = reports.iter().filter(|report| report.side.is_some_and(is_in));
            of_set.filter(|report| !matches!(report.verdict, Verdict::Unknown(_))).count()
        };
        for (side, (needed, _), answers) in
            [(Side::New, new, usable(Side::is_new)), (Side::Old, old, usable(Side::is_old))]
        {
            if answers < *needed {
                write!(f, ", {answers} of the {side} voters gave a usable answer")?;
            }
        }
        Ok(())
    }
}
