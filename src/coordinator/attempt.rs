//! One attempt on the voters: the engine decides, this sends and listens.

use std::{sync::Arc, time::Duration};

use super::{Ask, Coordinator, Record};
use crate::{
    clock::Moment,
    engine::{Attempt, Loss, Next, Rules, Votes},
    words::{HoldId, metric},
};

/// A majority's votes for one hold. Dropped before a hold has taken them over, they are given back.
#[derive(Debug)]
pub(crate) struct Won {
    claim: Claim,
    pub(crate) started: Moment,
    pub(crate) rules: Rules,
}

impl Won {
    /// Hands the votes over: whoever calls this answers for their release.
    pub(crate) fn take(mut self) -> (HoldId, Arc<dyn Record>) {
        self.claim.owed.clear();
        (self.claim.hold.clone(), Arc::clone(&self.claim.record))
    }
}

/// A lost attempt; by now its undo is queued to every voter.
#[derive(Debug)]
pub(crate) struct Defeat {
    pub(super) loss: Loss,
    pub(super) votes: Votes,
    pub(super) started: Moment,
}

/// Votes that were asked for, and are given back on drop wherever they may have been given: also
/// where the answer is unknown, also when the caller was cancelled.
#[derive(Debug)]
struct Claim {
    coordinator: Arc<Coordinator>,
    record: Arc<dyn Record>,
    hold: HoldId,
    lease: Duration,
    /// The voters that may have given a vote which nobody has taken over.
    owed: Vec<usize>,
    /// Others may have seen this hold as the holder, and wait to be told.
    wake: bool,
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.owed.is_empty() {
            return;
        }
        let Coordinator { clock, panel, .. } = &*self.coordinator;
        let undo = self.record.release(&self.hold, 0, self.wake);
        let until = clock.now() + self.lease;
        for voter in &self.owed {
            drop(panel.voters[*voter].insist(undo.clone(), until));
        }
    }
}

impl Coordinator {
    /// Asks all voters for a fresh hold; ends by `limit`.
    pub(super) async fn attempt(
        self: &Arc<Self>,
        record: &Arc<dyn Record>,
        rules: Rules,
        limit: Option<Moment>,
    ) -> Result<Won, Defeat> {
        let hold = self.ids.fresh();
        let ask = Ask { hold: &hold, count: 1, lease: rules.terms.lease };
        let call = record.acquire(&ask);
        let started = self.clock.now();
        let mut attempt =
            Attempt::start(hold.clone(), self.panel.quorum, rules, started).within(limit);
        let mut claim = Claim {
            coordinator: Arc::clone(self),
            record: Arc::clone(record),
            hold,
            lease: rules.terms.lease,
            owed: (0..self.panel.quorum.voters()).collect(),
            wake: true,
        };
        let mut replies = self.panel.ask_all(&call);
        loop {
            match attempt.next(self.clock.now()) {
                Next::Wait(until) => tokio::select! {
                    biased;
                    (voter, outcome) = replies.next() => {
                        attempt.heard(voter, record.vote(outcome), self.clock.now());
                    }
                    () = self.clock.sleep_until(until) => {}
                },
                Next::AskAgain(voters) => {
                    for voter in voters {
                        replies.expect(voter, self.panel.voters[voter].run(call.clone()));
                    }
                }
                Next::Won(_) => {
                    count(record, "won");
                    return Ok(Won { claim, started, rules });
                }
                Next::Lost(loss) => {
                    let started = attempt.started();
                    let votes = attempt.into_votes();
                    claim.owed = votes.may_have_granted();
                    claim.wake = votes.may_have_been_won();
                    count(record, outcome_of(&loss));
                    return Err(Defeat { loss, votes, started });
                }
            }
        }
    }
}

fn outcome_of(loss: &Loss) -> &'static str {
    match loss {
        Loss::Held => "held",
        Loss::Split => "split",
        Loss::NoQuorum => "no_quorum",
    }
}

fn count(record: &Arc<dyn Record>, outcome: &'static str) {
    metrics::counter!(metric::ATTEMPTS, "kind" => record.kind(), "outcome" => outcome).increment(1);
}
