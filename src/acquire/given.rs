//! What voters gave with their votes.

use super::{LockRecord, Panel, place};
use crate::{
    clock::Moment,
    proto::{Cause, HoldId, Quorum, SlotVotes, Slots, Tokens, Verdict, Votes},
    scripts::{Answer, Vote},
    voter::Outcome,
};

/// The numbers and the slots that came with the votes for one hold.
#[derive(Debug)]
pub(super) struct Given {
    pub(super) tokens: Tokens,
    /// Of a semaphore only.
    pub(super) slots: Option<SlotVotes>,
    /// Others use the semaphore with so many permits.
    pub(super) fewer: Option<u16>,
    /// What was heard after a majority had granted, and of whom.
    pub(super) late: Vec<(usize, Vote)>,
}

/// The slots of a hold.
#[derive(Debug)]
pub(super) struct FixedSlots {
    pub(super) slots: Slots,
    /// Who gave them.
    pub(super) votes: Votes,
    /// Who gave others.
    pub(super) elsewhere: Vec<usize>,
}

impl Given {
    pub(super) fn new(record: &dyn LockRecord, hold: &HoldId, quorum: Quorum) -> Self {
        let slots = record.info().circle(hold).map(|circle| SlotVotes::new(quorum, circle));
        Self { tokens: Tokens::new(quorum), slots, fewer: None, late: Vec::new() }
    }

    fn heard(&mut self, voter: usize, vote: &mut Vote) {
        let granted = vote.verdict == Verdict::Granted;
        if let Some(token) = vote.token.filter(|_| granted) {
            self.tokens.heard(voter, token);
        }
        let Some(slots) = &mut self.slots else { return };
        match vote.slots.take().filter(|_| granted) {
            Some(gave) => slots.heard(voter, gave),
            None => slots.missed(voter, !matches!(vote.verdict, Verdict::Unknown(_))),
        }
        self.fewer = self.fewer.into_iter().chain(vote.fewer).min();
    }
}

impl Panel {
    /// A voter's vote as it counts when a new hold has asked since then; takes note of what came
    /// with it.
    pub(super) fn hear(
        &self,
        given: &mut Given,
        voter: usize,
        outcome: &Outcome<Answer>,
        started: Moment,
    ) -> Vote {
        let mut vote = Vote::of(outcome);
        if given.slots.is_none() || !crate::mutant!("quarantined_slot_counts") {
            vote.verdict = self.counted(place(voter, outcome), vote.verdict, started);
        }
        let stranger = |gave| given.slots.as_ref().and_then(|slots| slots.stranger(gave));
        if let Some(slot) = vote.slots.as_ref().and_then(stranger) {
            let why = format!("it gave slot {slot}, which the semaphore does not have");
            vote.verdict = Verdict::Unknown(Cause::Rejected(why.into()));
        }
        given.heard(voter, &mut vote);
        vote
    }
}
