//! What one voter said, as errors and the log show it.

use std::fmt;

use super::{Side, Verdict};

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
