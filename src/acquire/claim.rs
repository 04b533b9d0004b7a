//! Votes that a client has asked for, until it gives them back or a hold takes them over.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use super::Coordinator;
use crate::{
    clock::Moment,
    kinds::{Ask, LockRecord},
    proto::{
        Denial, FixedSlots, Granted, HoldId, Refusal, Rules, Slots, Support, Tenure, Token, Votes,
    },
    voter::{Call, Replies, Standings},
};

/// What a client had seen of its voters when it asked them for a hold.
// Votes are as old as their request, also if the client stands still before it hears of them
// (`votes_that_came_before_a_pause_are_as_old_as_they_are`). So it goes with a hold that is handed
// on. Otherwise the next owner would trust the lease for too long after a pause before
// (law 2, `a_pause_that_the_owner_before_heard_of_is_off_the_lease_of_the_next`), and a voter that
// came back empty while the hold was offered would have its vote again a third of the lease later.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenBefore {
    /// For how long the client had stood still in all.
    pub(crate) stood_still: Duration,
    /// The version of [`Standings::renewal_signal`].
    signal_version: u64,
}

impl SeenBefore {
    fn of(standings: &Standings) -> Self {
        // In this order: a pause that is noticed between the two lines is heeded twice. In the
        // other order it would be missed.
        let signal_version = standings.renewal_signal().version();
        Self { stood_still: standings.stood_still(), signal_version }
    }

    /// Whether all holds were to be renewed at once since then.
    pub(crate) fn has_changed(&self, standings: &Standings) -> bool {
        standings.renewal_signal().version() != self.signal_version
    }
}

/// The votes of a majority for one hold. Dropping it gives them back, unless a hold has taken them
/// over.
#[derive(Debug)]
pub(crate) struct Won {
    pub(crate) claim: Claim,
    pub(crate) started: Moment,
    pub(crate) rules: Rules,
    pub(crate) token: Option<Token>,
    /// How many attempts it took.
    pub(crate) attempts: u32,
    /// The votes so far.
    pub(crate) votes: Votes,
    /// What voters said of a hold that is handed on.
    // Shared with the hold before, to which the late answers come.
    pub(crate) support: Option<Arc<Mutex<Support>>>,
    /// The answers that were not waited for.
    pub(crate) late: Replies,
    /// The slots of a semaphore.
    pub(crate) slots: Option<Slots>,
    /// Voters that gave other slots, and have to learn which ones the hold has.
    pub(crate) elsewhere: Vec<usize>,
    /// If tasks of its client may have it one after the other.
    pub(crate) tenure: Option<Tenure>,
}

impl Won {
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
            // Only a voter that gave these very slots has voted for the hold
            // (`any_slot_is_a_vote`).
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

    /// A hold that its owner gives to the next task in the local queue, as it was granted.
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

    /// The token of the guard that is made of this.
    // Voters store the last number of the hold's block, `token`. Each owner in a tenure has its own
    // number of the block, so tokens grow although no request leaves (`handed_on_with_its_token`).
    pub(crate) fn own_token(&self) -> Option<Token> {
        self.token.map(|last| self.tenure.map_or(last, |tenure| tenure.token(last)))
    }

    /// Whether it was asked for with the lease and the note of this record.
    // A task that takes over a hold has both of it: the note is a part of the hold's id, and voters
    // keep the lease that was asked for.
    pub(crate) fn fits(&self, record: &LockRecord) -> bool {
        let mine = &self.claim.record;
        mine.rules() == record.rules() && mine.info().note == record.info().note
    }

    /// Whether another task of this client had it before.
    pub(crate) fn is_handed_on(&self) -> bool {
        self.tenure.is_some_and(|tenure| tenure.is_handed_on())
    }

    /// Whether enough of its validity is left. `stood_still`: for how long the client has stood
    /// still in all.
    pub(crate) fn is_in_time(&self, stood_still: Duration, now: Moment) -> bool {
        let unseen = stood_still.saturating_sub(self.claim.seen_before.stood_still);
        self.rules.is_in_time(self.started, now + unseen)
    }

    /// What tasks that want the lock report to their callers meanwhile.
    pub(super) fn denial(&self) -> Denial {
        let ends = Some(self.started + self.rules.terms.lease);
        let by = Some(self.claim.hold.clone());
        Denial::Held(Refusal { by, ends, ..Refusal::default() })
    }
}

/// Votes that were asked for. Dropping it gives them back, on each voter that may have given one.
// By its drop, so that a caller may be cancelled at any await (`cancelled_keeps_votes`). To voters
// without an answer, too: one that answered late would keep its vote (`undoes_known_grants`).
#[derive(Debug)]
pub(crate) struct Claim {
    coordinator: Arc<Coordinator>,
    pub(super) record: LockRecord,
    pub(crate) hold: HoldId,
    lease: Duration,
    pub(crate) seen_before: SeenBefore,
    /// The voters that may have given a vote which no hold has taken over.
    pub(super) owed: Vec<usize>,
    /// A majority has granted.
    // Then it is given back as a hold is: its place leaves the queue, and the next waiter is woken
    // (`who_gives_back_what_nobody_took_leaves_the_queue`).
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
            seen_before: SeenBefore::of(&coordinator.panel.standings),
            owed: (0..coordinator.panel.quorum.voters())
                .filter(|_| !crate::mutant!("cancelled_keeps_votes"))
                .collect(),
            was_won: false,
        }
    }

    /// The votes of a hold that its owner hands on. `seen_before`: when the client asked for them.
    pub(crate) fn of_held(
        coordinator: &Arc<Coordinator>,
        record: &LockRecord,
        hold: &HoldId,
        rules: Rules,
        seen_before: SeenBefore,
    ) -> Self {
        let mut claim = Self::of_all(coordinator, record, hold.clone(), rules);
        (claim.seen_before, claim.was_won) = (seen_before, true);
        claim
    }

    /// Hands the votes over: the caller has to release them.
    pub(crate) fn take_over(mut self) -> (HoldId, LockRecord) {
        self.owed.clear();
        (self.hold.clone(), self.record.clone())
    }

    pub(super) fn ask(&self) -> Ask<'_> {
        Ask::new(&self.hold, self.lease)
    }

    /// Any voter may have given a vote, or is about to.
    pub(super) fn owe_all(&mut self) {
        self.owed = (0..self.coordinator.panel.quorum.voters()).collect();
    }

    /// Whether this voter may have given a vote, by its answer.
    pub(super) fn owe_if(&mut self, voter: usize, is_owed: bool) {
        self.owed.retain(|owed| *owed != voter || is_owed);
    }

    pub(super) fn give_back(&mut self, voters: &[usize]) {
        let (back, owed) = self.owed.iter().partition(|voter| voters.contains(voter));
        self.owed = owed;
        self.send(back, LockRecord::undo);
    }

    pub(super) fn give_back_all(&mut self) {
        let owed = std::mem::take(&mut self.owed);
        // If it was to resume a parked hold, the votes go back to the ticket, by an undo: nobody
        // has learnt of this hold.
        if self.was_won && !owed.is_empty() && self.record.resumes().is_none() {
            let now = self.coordinator.clock.now();
            drop(self.coordinator.give_back(&self.record, &self.hold, self.lease, now));
            return;
        }
        self.send(owed, LockRecord::undo);
    }

    /// Gives back what there is and leaves the queue, on these voters.
    pub(super) fn leave(mut self, voters: Vec<usize>) {
        self.owed.clear();
        self.send(voters, |record, hold| record.release(hold, 0));
    }

    fn send(&self, voters: Vec<usize>, call: impl FnOnce(&LockRecord, &HoldId) -> Call) {
        if voters.is_empty() {
            return;
        }
        let Coordinator { clock, panel, .. } = &*self.coordinator;
        let call = call(&self.record, &self.hold);
        let now = clock.now();
        // Sent again until the voter answers: a server that stood still may run the request after
        // the lease (law 6, `undoes_once`). The moment only bounds it for a client that is dropped.
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

impl Coordinator {
    /// Gives back the votes of a hold on all voters. Waiters of this client that are right behind
    /// it ask at once: their requests leave behind the release.
    pub(crate) fn give_back(
        &self,
        record: &LockRecord,
        hold: &HoldId,
        lease: Duration,
        now: Moment,
    ) -> Replies {
        let mut release = record.release(hold, 0);
        // Only the releaser waits for the answer, and a late one is better than none: in a crowd of
        // a thousand clients, answers came after the voter deadline.
        release.deadline = release.longest;
        if crate::mutant!("releases_once") {
            return self.panel.ask_all(&release, now);
        }
        let replies = self.panel.insist_all(&release, now + lease, now);
        // Programs of another library wait in no queue of ours. They would never get the lock
        // beside a client whose tasks always ask first.
        if !record.kind().is_shared && !record.kind().is_foreign {
            self.wakeups.wake_followers(hold.place_or_self());
        }
        replies
    }
}
