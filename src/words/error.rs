//! The one error type.

use std::{fmt, time::Duration};

use super::{HoldId, Verdict};

/// What one voter contributed to an [`Error`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VoterReport {
    /// The voter's address, without credentials.
    pub voter: String,
    /// What it said, or why it said nothing.
    pub verdict: Verdict,
}

impl fmt::Display for VoterReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.voter, self.verdict)
    }
}

/// One after the other, as errors and the log show them.
pub(crate) struct Listed<'a>(pub(crate) &'a [VoterReport]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, report) in self.0.iter().enumerate() {
            f.write_str(if place == 0 { "" } else { "; " })?;
            report.fmt(f)?;
        }
        Ok(())
    }
}

/// Anything that went wrong, with the values in the message and the voters' own causes.
///
/// Ask the `is_*` methods what kind it is. A lock that somebody else holds is not an error:
/// `try_lock`, `lock_within` and their like answer `None`.
#[derive(Clone)]
pub struct Error(Box<ErrorInner>);

#[derive(Clone, Debug)]
struct ErrorInner {
    kind: Kind,
    voters: Vec<VoterReport>,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Invalid(String),
    Connect { needed: usize, voters: usize, after: Duration },
    NoQuorum { lock: String, needed: usize, after: Duration },
    Lost { lock: String, hold: HoldId, why: &'static str },
    Reads { lock: String, hold: HoldId },
    Unconfirmed { lock: String, what: &'static str, needed: usize, frees_in: Option<Duration> },
    Overloaded { lock: String, most: usize, after: Duration },
    Closed,
}

impl Error {
    pub(crate) fn invalid(what: impl Into<String>) -> Self {
        Self::new(Kind::Invalid(what.into()), Vec::new())
    }

    pub(crate) fn closed() -> Self {
        Self::new(Kind::Closed, Vec::new())
    }

    pub(crate) fn new(kind: Kind, voters: Vec<VoterReport>) -> Self {
        Self(Box::new(ErrorInner { kind, voters }))
    }

    /// A setting, an address or a lock name cannot be used, or two voters are one server. No lock
    /// was asked for.
    pub fn is_invalid(&self) -> bool {
        matches!(self.0.kind, Kind::Invalid(_))
    }

    /// Too few voters could be reached, at connecting or afterwards.
    pub fn is_no_quorum(&self) -> bool {
        matches!(self.0.kind, Kind::NoQuorum { .. } | Kind::Connect { .. })
    }

    /// The hold has ended without being released: somebody else may hold the lock.
    pub fn is_lost(&self) -> bool {
        matches!(self.0.kind, Kind::Lost { .. })
    }

    /// The request went out, but no majority confirmed it in time. For a release: it goes on in
    /// the background, and the lock is free at the latest when its lease ends. For a re-entry,
    /// and for a read under the own write: the lock is still held, and this entry does not count.
    pub fn is_unconfirmed(&self) -> bool {
        matches!(self.0.kind, Kind::Unconfirmed { .. })
    }

    /// The owner reads the lock that it wants to write, and so would wait for itself forever. It
    /// gets no write, and nothing of one stays on the voters.
    pub fn is_deadlock(&self) -> bool {
        matches!(self.0.kind, Kind::Reads { .. })
    }

    /// This client has as many attempts under way as it makes at once, and none of them ended in
    /// time: the voters were not asked for this lock. From `lock_within` at its limit, from
    /// `try_lock` after the [quorum timeout](crate::Builder::quorum_timeout), from `lock` never.
    pub fn is_overloaded(&self) -> bool {
        matches!(self.0.kind, Kind::Overloaded { .. })
    }

    /// The client was closed.
    pub fn is_closed(&self) -> bool {
        matches!(self.0.kind, Kind::Closed)
    }

    /// What each voter said, in the order in which they were configured; empty where none was
    /// asked.
    pub fn voters(&self) -> &[VoterReport] {
        &self.0.voters
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.kind {
            Kind::Invalid(what) => f.write_str(what)?,
            Kind::Connect { needed, voters, after } => {
                write!(f, "fewer than {needed} of {voters} voters could be reached in {after:?}")?;
            }
            Kind::NoQuorum { lock, needed, after } => {
                write!(f, "no quorum of {needed} for lock `{lock}` in {after:?}")?;
            }
            Kind::Lost { lock, hold, why } => {
                write!(f, "lock `{lock}` lost by hold {hold}: {why}")?;
            }
            Kind::Reads { lock, hold } => {
                write!(f, "lock `{lock}` cannot be written by an owner that reads it as {hold}")?;
            }
            Kind::Unconfirmed { lock, what, needed, frees_in } => {
                write!(f, "{what} of lock `{lock}` not confirmed by {needed} voters, ")?;
                match frees_in {
                    Some(time) => write!(f, "free in {time:?} at the latest")?,
                    None => f.write_str("which is held as before")?,
                }
            }
            Kind::Overloaded { lock, most, after } => write!(
                f,
                "lock `{lock}` was not asked for in {after:?}: this client has {most} attempts \
                 under way, and makes no more at once"
            )?,
            Kind::Closed => f.write_str("the client is closed")?,
        }
        if self.0.voters.is_empty() { Ok(()) } else { write!(f, " ({})", Listed(&self.0.voters)) }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({self})")
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::Cause;

    #[test]
    fn a_message_names_the_lock_and_each_voter_with_its_cause() {
        let kind = Kind::NoQuorum { lock: "a".into(), needed: 2, after: Duration::from_secs(1) };
        let report = |voter: &str, cause| VoterReport {
            voter: voter.into(),
            verdict: Verdict::Unknown(cause),
        };
        let voters = vec![
            report("a:1", Cause::Unreachable("connection refused".into())),
            report("b:1", Cause::TimedOut(Duration::from_millis(200))),
        ];
        let error = Error::new(kind, voters);
        assert!(error.is_no_quorum() && !error.is_lost());
        assert_eq!(
            error.to_string(),
            "no quorum of 2 for lock `a` in 1s (a:1: unreachable: connection refused; \
             b:1: no answer within 200ms)"
        );
    }
}
