//! Votes that were asked for, until they are given back or a hold has taken them over.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use super::Coordinator;
use crate::{
    clock::Moment,
    kinds::{Ask, LockRecord},
    proto::{
        Denial, FixedSlots, Granted, HoldId, Note, Refusal, Rules, Slots, Support, Tenure, Token,
        Votes,
    },
    voter::{Call, Replies, Standings},
};

/// What a client had seen of its voters when it asked them for a hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenBefore {
    /// For how long the client had stood still in all.
    pub(crate) stood_still: Duration,
    /// The version of [`Standings::returned`].
    returned: u64,
}

impl SeenBefore {
    fn of(standings: &Standings) -> Self {
        // In this order: a pause that is noticed in between is heeded twice, and never missed.
        let returned = standings.returned().version();
        Self { stood_still: standings.stood_still(), returned }
    }

    /// Whether holds were to be looked after at once since then.
    pub(crate) fn has_changed(&self, standings: &Standings) -> bool {
        standings.returned().version() != self.returned
    }
}

/// A majority's votes for one hold. Dropped before a hold has taken them over, they are given back.
#[derive(Debug)]
pub(crate) struct Won {
    pub(crate) claim: Claim,
    pub(crate) started: Moment,
    pub(crate) rules: Rules,
    pub(crate) token: Option<Token>,
    /// How many attempts it took.
    pub(crate) attempts: u32,
    /// Who granted so far.
    pub(crate) votes: Votes,
    /// What voters said of a hold that is handed on. The answers that come later are noted there.
    pub(crate) support: Option<Arc<Mutex<Support>>>,
    /// The answers that were not waited for.
    pub(crate) late: Replies,
    /// Of a semaphore.
    pub(crate) slots: Option<Slots>,
    /// Voters that gave other slots, and need to learn which ones the hold has.
    pub(crate) elsewhere: Vec<usize>,
    /// Where tasks of its client may have it one after the other.
    pub(crate) tenure: Option<Tenure>,
}

impl Won {
    /// The votes of a semaphore are those that came with its slots.
    pub(super) fn new(
        mut claim: Claim,
        started: Moment,
        rules: Rules,
        granted: Granted,
        votes: Votes,
        late: Replies,
    ) -> Self {
        claim.was_won = true;
        let Granted { token, slots } = granted;
        let (slots, votes, elsewhere) = match slots {
            Some(FixedSlots { slots, votes, elsewhere }) => (Some(slots), votes, elsewhere),
            None => (None, votes, Vec::new()),
        };
        let is_late = crate::mutant!("validity_from_the_reply");
        let started = if is_late { claim.coordinator.clock.now() } else { started };
        let (support, tenure) = (None, None);
        Self {
            claim,
            started,
            rules,
            token,
            attempts: 1,
            votes,
            support,
            late,
            slots,
            elsewhere,
            tenure,
        }
    }

    /// A hold that its owner gives to the next task in line, as it was granted.
    pub(crate) fn handed_on(
        claim: Claim,
        (started, rules): (Moment, Rules),
        token: Option<Token>,
        support: Arc<Mutex<Support>>,
        tenure: Tenure,
    ) -> Self {
        let quorum = claim.coordinator.panel.quorum;
        let (granted, late) = (Granted { token, slots: None }, Replies::new(quorum.voters(), 1));
        let won = Self::new(claim, started, rules, granted, Votes::new(quorum), late);
        Self { attempts: 0, support: Some(support), tenure: Some(tenure), ..won }
    }

    /// The token for the guard that is made of this. `token` is the number that the voters store:
    /// the last of the hold's block.
    pub(crate) fn own_token(&self) -> Option<Token> {
        self.token.map(|last| self.tenure.map_or(last, |tenure| tenure.token(last)))
    }

    /// What it was asked for with.
    pub(crate) fn asked_rules(&self) -> Rules {
        self.claim.record.rules()
    }

    /// What its user says of it.
    pub(crate) fn note(&self) -> Option<&Note> {
        self.claim.record.info().note.as_ref()
    }

    /// Whether another task of this client had it before.
    pub(crate) fn is_handed_on(&self) -> bool {
        self.tenure.is_some_and(|tenure| tenure.is_handed_on())
    }

    /// When its tenure ends.
    pub(super) fn tenure_ends(&self) -> Option<Moment> {
        self.tenure.map(|tenure| tenure.ends())
    }

    pub(crate) fn hold(&self) -> &HoldId {
        &self.claim.hold
    }

    pub(crate) fn seen(&self) -> SeenBefore {
        self.claim.seen
    }

    /// Whether enough is left of it at this moment, now that the client has stood still for so long
    /// in all.
    pub(crate) fn is_in_time(&self, stood_still: Duration, now: Moment) -> bool {
        let unseen = stood_still.saturating_sub(self.seen().stood_still);
        self.rules.is_in_time(self.started, now + unseen)
    }

    /// What it is to others who want the lock.
    pub(super) fn denial(&self) -> Denial {
        let ends = Some(self.started + self.rules.terms.lease);
        let by = Some(self.hold().clone());
        Denial::Held(Refusal { by, ends, ..Refusal::default() })
    }
}

/// Votes that were asked for. Dropping it gives them back on each voter that may have given one,
/// also if its answer is unknown or the caller was cancelled.
#[derive(Debug)]
pub(crate) struct Claim {
    coordinator: Arc<Coordinator>,
    record: LockRecord,
    hold: HoldId,
    lease: Duration,
    seen: SeenBefore,
    /// The voters that may have given a vote which nobody has taken over.
    owed: Vec<usize>,
    /// A majority has granted: the hold is released, and its place leaves the queue.
    was_won: bool,
}

impl Claim {
    pub(super) fn of_all(
        coordinator: &Arc<Coordinator>,
        record: &LockRecord,
        hold: HoldId,
        rules: Rules,
    ) -> Self {
        Self {
            coordinator: Arc::clone(coordinator),
            record: record.clone(),
            hold,
            lease: rules.terms.lease,
            seen: SeenBefore::of(&coordinator.panel.standings),
            owed: (0..coordinator.panel.quorum.voters())
                .filter(|_| !crate::mutant!("cancelled_keeps_votes"))
                .collect(),
            was_won: false,
        }
    }

    /// The votes of a hold that its owner hands on, and what was seen before these were asked for.
    pub(crate) fn of_held(
        coordinator: &Arc<Coordinator>,
        record: &LockRecord,
        hold: &HoldId,
        rules: Rules,
        seen: SeenBefore,
    ) -> Self {
        let mut claim = Self::of_all(coordinator, record, hold.clone(), rules);
        (claim.seen, claim.was_won) = (seen, true);
        claim
    }

    /// Hands the votes over. From here on the caller has to release them.
    pub(crate) fn take_over(mut self) -> (HoldId, LockRecord) {
        self.owed.clear();
        (self.hold.clone(), self.record.clone())
    }

    pub(super) fn record(&self) -> &LockRecord {
        &self.record
    }

    /// What it asks with, as of a first request that has nothing more to say.
    pub(super) fn ask(&self) -> Ask<'_> {
        Ask::new(&self.hold, self.lease)
    }

    /// Only these may have given a vote.
    pub(super) fn narrow(&mut self, owed: Vec<usize>) {
        self.owed = owed;
    }

    /// Any of them may have given a vote, or is about to.
    pub(super) fn owe_all(&mut self) {
        self.owed = (0..self.coordinator.panel.quorum.voters()).collect();
    }

    /// What this one has answered says whether it may have given one.
    pub(super) fn owe_if(&mut self, voter: usize, is_owed: bool) {
        self.owed.retain(|owed| *owed != voter || is_owed);
    }

    pub(super) fn give_back(&mut self, voters: &[usize]) {
        let (back, owed) = self.owed.iter().partition(|voter| voters.contains(voter));
        self.owed = owed;
        self.tell(back, LockRecord::undo);
    }

    pub(super) fn give_back_all(&mut self) {
        let owed = std::mem::take(&mut self.owed);
        // Nobody has learnt of a hold that was to resume another: its ticket is as good as before.
        if self.was_won && !owed.is_empty() && self.record.resumes().is_none() {
            let now = self.coordinator.clock.now();
            drop(self.coordinator.give_back(&self.record, &self.hold, self.lease, now));
            return;
        }
        self.tell(owed, LockRecord::undo);
    }

    /// Gives back what there is and leaves the queue, on these voters.
    pub(super) fn leave(mut self, voters: Vec<usize>) {
        self.owed.clear();
        self.tell(voters, |record, hold| record.release(hold, 0));
    }

    fn tell(&self, voters: Vec<usize>, call: impl FnOnce(&LockRecord, &HoldId) -> Call) {
        if voters.is_empty() {
            return;
        }
        let Coordinator { clock, panel, .. } = &*self.coordinator;
        let call = call(&self.record, &self.hold);
        let now = clock.now();
        let owed_until = (!crate::mutant!("undoes_once")).then(|| now + self.lease);
        for voter in voters {
            panel.voters[voter].queue_script(call.clone(), owed_until, None, now);
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.give_back_all();
    }
}

// Where all that a hold has is given back.

impl Coordinator {
    /// Gives back what this hold has, on all voters. Those of its own tasks who are next ask the
    /// voters at once: their requests leave behind those of the release.
    pub(crate) fn give_back(
        &self,
        record: &LockRecord,
        hold: &HoldId,
        lease: Duration,
        now: Moment,
    ) -> Replies {
        let mut release = record.release(hold, 0);
        // Nobody but the releaser waits for the answer, and a late one is better than none.
        release.deadline = release.longest;
        if crate::mutant!("releases_once") {
            return self.panel.ask_all(&release, now);
        }
        let replies = self.panel.insist_all(&release, now + lease, now);
        // Programs of another library are in no queue of ours: beside a client that always asks
        // first they would never get the lock.
        if !record.kind().is_shared && !record.kind().is_foreign {
            self.wakeups.pass_on(hold.place_or_self());
        }
        replies
    }
}
