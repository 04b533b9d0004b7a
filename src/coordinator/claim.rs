//! Votes that were asked for, until they are given back or a hold has taken them over.

use std::{sync::Arc, time::Duration};

use super::{Coordinator, Record};
use crate::{clock::Moment, engine::Rules, node::Call, words::HoldId};

/// A majority's votes for one hold. Dropped before a hold has taken them over, they are given back.
#[derive(Debug)]
pub(crate) struct Won {
    claim: Claim,
    pub(crate) started: Moment,
    pub(crate) rules: Rules,
}

impl Won {
    pub(super) fn new(claim: Claim, started: Moment, rules: Rules) -> Self {
        Self { claim, started, rules }
    }

    /// Hands the votes over: whoever calls this answers for their release.
    pub(crate) fn take(mut self) -> (HoldId, Arc<dyn Record>) {
        self.claim.owed.clear();
        (self.claim.hold.clone(), Arc::clone(&self.claim.record))
    }
}

/// Votes that were asked for, and are given back on drop wherever they may have been given: also
/// where the answer is unknown, also when the caller was cancelled.
#[derive(Debug)]
pub(super) struct Claim {
    coordinator: Arc<Coordinator>,
    record: Arc<dyn Record>,
    hold: HoldId,
    lease: Duration,
    /// The voters that may have given a vote which nobody has taken over.
    owed: Vec<usize>,
    /// Others may have seen this hold as the holder, and wait to be told.
    wake: bool,
}

impl Claim {
    pub(super) fn of_all(
        coordinator: &Arc<Coordinator>,
        record: &Arc<dyn Record>,
        hold: HoldId,
        rules: Rules,
    ) -> Self {
        Self {
            coordinator: Arc::clone(coordinator),
            record: Arc::clone(record),
            hold,
            lease: rules.terms.lease,
            owed: (0..coordinator.panel.quorum.voters()).collect(),
            wake: true,
        }
    }

    /// Only these may have given a vote.
    pub(super) fn narrow(&mut self, owed: Vec<usize>, wake: bool) {
        (self.owed, self.wake) = (owed, wake);
    }

    /// This one has not.
    pub(super) fn refused(&mut self, voter: usize) {
        self.owed.retain(|owed| *owed != voter);
    }

    pub(super) fn give_back(&mut self, voters: &[usize]) {
        let (back, owed) = self.owed.iter().partition(|voter| voters.contains(voter));
        self.owed = owed;
        self.tell(back, |record, hold, wake| record.undo(hold, wake));
    }

    /// Gives back what there is and leaves the queue, on all voters.
    pub(super) fn leave(mut self) {
        self.owed.clear();
        let all = (0..self.coordinator.panel.quorum.voters()).collect();
        self.tell(all, |record, hold, wake| record.release(hold, 0, wake));
    }

    fn tell(&self, voters: Vec<usize>, call: impl FnOnce(&dyn Record, &HoldId, bool) -> Call) {
        if voters.is_empty() {
            return;
        }
        let Coordinator { clock, panel, .. } = &*self.coordinator;
        let call = call(&*self.record, &self.hold, self.wake);
        let until = clock.now() + self.lease;
        for voter in voters {
            drop(panel.voters[voter].insist(call.clone(), until));
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let owed = std::mem::take(&mut self.owed);
        self.tell(owed, |record, hold, wake| record.undo(hold, wake));
    }
}
