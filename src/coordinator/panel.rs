//! All voters of a client, asked at once.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use crate::{
    clock::Moment,
    engine::{KeptOut, Place, Quorum, Rules},
    node::{Call, ONLY, Outcome, Standings, Voter, VoterReply},
    scripts::Answer,
    words::{Verdict, VoterReport},
};

/// The voters, in the order in which they were configured.
#[derive(Clone, Debug)]
pub(crate) struct Panel {
    pub(crate) voters: Arc<[Voter]>,
    pub(crate) quorum: Quorum,
    pub(crate) standings: Arc<Standings>,
}

impl Panel {
    pub(crate) fn new(voters: Vec<Voter>, standings: Arc<Standings>) -> Self {
        let quorum = Quorum::of(voters.len());
        Self { voters: voters.into(), quorum, standings }
    }

    /// What a voter's verdict counts for when a new hold has asked since then: where it may have
    /// forgotten whose its vote was, a grant counts for nothing.
    pub(super) fn counted(&self, place: Place, verdict: Verdict, started: Moment) -> Verdict {
        if verdict != Verdict::Granted || crate::mutant!("quarantined_vote_counts") {
            return verdict;
        }
        self.standings.kept_out(place, started).map_or(verdict, KeptOut::verdict)
    }

    /// How long the slowest voter may take to answer, by its round trips so far.
    pub(crate) fn allowed(&self, deadline: Duration, longest: Duration) -> Duration {
        let voters = 0..self.voters.len();
        voters
            .map(|voter| self.standings.allowed(voter, deadline, longest))
            .max()
            .unwrap_or(deadline)
    }

    /// The rules with as much time for each voter as the slowest needs.
    pub(crate) fn adapt(&self, rules: Rules) -> Rules {
        let voter_deadline = self.allowed(rules.voter_deadline, rules.longest_deadline);
        Rules { voter_deadline, ..rules }
    }

    /// Sends to all voters now; the answers may be dropped.
    pub(crate) fn ask_all(&self, call: &Call) -> Replies {
        Replies(
            self.voters.iter().map(|voter| Some(voter.queue_script(call.clone(), None))).collect(),
        )
    }

    /// Sends to some voters now.
    pub(crate) fn ask(&self, voters: &[usize], call: &Call) -> Replies {
        let asked = |voter| {
            voters.contains(&voter).then(|| self.voters[voter].queue_script(call.clone(), None))
        };
        Replies((0..self.voters.len()).map(asked).collect())
    }

    /// Sends to all voters now, and to those that do not answer again until `until`.
    pub(crate) fn insist_all(&self, call: &Call, until: Moment) -> Replies {
        Replies(
            self.voters
                .iter()
                .map(|voter| Some(voter.queue_script(call.clone(), Some(until))))
                .collect(),
        )
    }

    /// Names each verdict's voter.
    pub(crate) fn report(&self, verdicts: Vec<Verdict>) -> Vec<VoterReport> {
        let labels = self.voters.iter().map(|voter| voter.label().to_string());
        labels.zip(verdicts).map(|(voter, verdict)| VoterReport { voter, verdict }).collect()
    }
}

/// Where an answer came from.
pub(crate) fn place(voter: usize, outcome: &Outcome<Answer>) -> Place {
    Place { voter, shard: outcome.as_ref().map_or(ONLY, |answer| answer.shard) }
}

/// Answers that are still to come, by voter.
#[derive(Debug)]
pub(crate) struct Replies(Vec<Option<VoterReply<Answer>>>);

impl Replies {
    /// Replaces what was expected from `voter`.
    pub(crate) fn expect(&mut self, voter: usize, reply: VoterReply<Answer>) {
        self.0[voter] = Some(reply);
    }

    /// Whether any is to come.
    pub(crate) fn are_open(&self) -> bool {
        self.0.iter().any(Option::is_some)
    }

    /// The next answer; never completes when none is to come.
    pub(crate) async fn next(&mut self) -> (usize, Outcome<Answer>) {
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<(usize, Outcome<Answer>)> {
        for (voter, slot) in self.0.iter_mut().enumerate() {
            let Some(reply) = slot else { continue };
            if let Poll::Ready(outcome) = Pin::new(reply).poll(context) {
                *slot = None;
                return Poll::Ready((voter, outcome));
            }
        }
        Poll::Pending
    }
}
