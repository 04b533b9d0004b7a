//! What a kind of lock is to the coordinator: which scripts, with which keys and arguments, and how
//! their answers read.

use std::{fmt, sync::Arc, time::Duration};

use crate::{
    engine::Ticket,
    node::{Call, Outcome},
    scripts::Answer,
    words::{HoldId, HoldIds, Token, Verdict},
};

/// What a hold asks of a voter.
#[derive(Clone, Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) hold: &'a HoldId,
    /// How often the owner has entered, this time included.
    pub(crate) count: u32,
    pub(crate) lease: Duration,
    /// Of the place in the queue, where it is fixed.
    pub(crate) ticket: Option<Ticket>,
    /// The least that its token may be; once it has one, that. `None`: it has none.
    pub(crate) token: Option<Token>,
}

/// One lock as its kind writes it on the voters.
pub(crate) trait Record: fmt::Debug + Send + Sync {
    /// The kind, as metrics and traces call it.
    fn kind(&self) -> &'static str;
    /// The lock's name, as errors call it.
    fn name(&self) -> &str;
    /// What tells this lock from all others of the client.
    fn key(&self) -> &Arc<str>;
    /// Where releases are told to those who stand in no queue.
    fn channel(&self) -> &Arc<str>;

    /// Whether several may have it at once, so that nobody stands in line for it.
    fn is_shared(&self) -> bool {
        false
    }

    /// Whether its holds have tokens.
    fn is_fenced(&self) -> bool {
        false
    }

    /// What tells the lock from all others under which its owner has this one for the asking.
    fn granted_under(&self) -> Option<&Arc<str>> {
        None
    }

    /// What tells the lock from all others that keeps its owner from this one for ever.
    fn barred_by(&self) -> Option<&Arc<str>> {
        None
    }

    /// The lock that this one grants to its own holder, as it is asked for under that hold.
    fn under(&self, _hold: &HoldId) -> Option<Arc<dyn Record>> {
        None
    }

    /// The hold of an attempt without a place in a queue.
    fn hold(&self, ids: &HoldIds) -> HoldId {
        ids.fresh()
    }

    fn acquire(&self, ask: &Ask<'_>) -> Call;
    fn renew(&self, ask: &Ask<'_>) -> Call;
    /// Sets the count; 0 gives the vote back, leaves the queue, and tells the channel if `wake`.
    fn release(&self, hold: &HoldId, count: u32, wake: bool) -> Call;

    /// Gives back what an attempt got, and stays in the queue.
    fn undo(&self, hold: &HoldId, wake: bool) -> Call {
        self.release(hold, 0, wake)
    }

    /// This lock as it is asked for from a place in its queue, and how long a place counts that
    /// does not ask again; `None` where there is no queue.
    fn in_queue(&self, _place: &HoldId) -> Option<(Arc<dyn Record>, Duration)> {
        None
    }

    /// Takes the ticket off an answer to `acquire` from a place in the queue.
    fn ticket(&self, _outcome: &mut Outcome<Answer>) -> Option<Ticket> {
        None
    }

    /// Reads an answer to `acquire` or `renew`.
    fn vote(&self, outcome: Outcome<Answer>) -> Verdict {
        outcome.map_or_else(Verdict::Unknown, |answer| answer.vote())
    }

    /// Reads an answer to `release`; granted means that the hold had the vote.
    fn released(&self, outcome: Outcome<Answer>) -> Verdict {
        outcome.map_or_else(Verdict::Unknown, |answer| answer.released())
    }
}
