//! What a kind of lock is to the coordinator: which scripts, with which keys and arguments, and how
//! their answers read.

use std::{fmt, sync::Arc, time::Duration};

use crate::{
    node::{Call, Outcome},
    scripts::Answer,
    words::{HoldId, Verdict},
};

/// What a hold asks of a voter.
#[derive(Clone, Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) hold: &'a HoldId,
    /// How often the owner has entered, this time included.
    pub(crate) count: u32,
    pub(crate) lease: Duration,
}

/// One lock as its kind writes it on the voters.
pub(crate) trait Record: fmt::Debug + Send + Sync {
    /// The kind, as metrics and traces call it.
    fn kind(&self) -> &'static str;
    /// The lock's name, as errors call it.
    fn name(&self) -> &str;
    /// What tells this lock from all others of the client.
    fn key(&self) -> &Arc<str>;
    /// Where releases are told.
    fn channel(&self) -> &Arc<str>;

    fn acquire(&self, ask: &Ask<'_>) -> Call;
    fn renew(&self, ask: &Ask<'_>) -> Call;
    /// Sets the count; 0 gives the vote back, and tells the channel if `wake`.
    fn release(&self, hold: &HoldId, count: u32, wake: bool) -> Call;

    /// Reads an answer to `acquire` or `renew`.
    fn vote(&self, outcome: Outcome<Answer>) -> Verdict {
        outcome.map_or_else(Verdict::Unknown, |answer| answer.vote())
    }

    /// Reads an answer to `release`; granted means that the hold had the vote.
    fn released(&self, outcome: Outcome<Answer>) -> Verdict {
        outcome.map_or_else(Verdict::Unknown, |answer| answer.released())
    }
}
