//! All voters of a client, asked at once.

use std::{sync::Arc, time::Duration};

use crate::{
    clock::Moment,
    proto::{Quorum, Rules, Verdict, VoterReport},
    voter::{Call, Replies, Standings, Voter},
};

/// The voters, in the order in which they were configured.
#[derive(Clone, Debug)]
pub(crate) struct Panel {
    pub(crate) voters: Arc<[Voter]>,
    pub(crate) quorum: Quorum,
    pub(crate) standings: Arc<Standings>,
    /// Several of the voters are parts of one cluster, which has one key of each name.
    pub(crate) shares_a_cluster: bool,
}

impl Panel {
    pub(crate) fn new(
        voters: Vec<Voter>,
        quorum: Quorum,
        standings: Arc<Standings>,
        shares_a_cluster: bool,
    ) -> Self {
        Self { voters: voters.into(), quorum, standings, shares_a_cluster }
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
        self.queue_all(call, None)
    }

    /// Sends to some voters now.
    pub(crate) fn ask(&self, voters: &[usize], call: &Call) -> Replies {
        let mut replies = Replies::new(self.voters.len(), 1);
        self.ask_again(&mut replies, voters, call);
        replies
    }

    /// Sends to some voters once more, or for the first time. What they answer now counts.
    pub(crate) fn ask_again(&self, replies: &mut Replies, voters: &[usize], call: &Call) {
        for &voter in voters {
            let asker = replies.expect(voter);
            self.voters[voter].queue_script(call.clone(), None, Some(asker));
        }
    }

    /// Sends to all voters now, and to those that do not answer again until `until`.
    pub(crate) fn insist_all(&self, call: &Call, until: Moment) -> Replies {
        self.queue_all(call, Some(until))
    }

    fn queue_all(&self, call: &Call, owed_until: Option<Moment>) -> Replies {
        let mut replies = Replies::new(self.voters.len(), self.quorum.least());
        for (voter, queue) in self.voters.iter().enumerate() {
            queue.queue_script(call.clone(), owed_until, Some(replies.expect(voter)));
        }
        replies
    }

    /// Names each verdict's voter.
    pub(crate) fn report(&self, verdicts: Vec<Verdict>) -> Vec<VoterReport> {
        let voters = self.voters.iter().zip(verdicts).enumerate();
        let report = |(at, (voter, verdict)): (usize, (&Voter, Verdict))| VoterReport {
            side: self.quorum.side(at),
            ..VoterReport::new(&**voter.label(), verdict)
        };
        voters.map(report).collect()
    }
}
