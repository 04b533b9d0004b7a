//! The voters of a client, which are asked at once.

use std::{pin::pin, sync::Arc, time::Duration};

use super::Coordinator;
use crate::{
    clock::{Clock, Moment},
    kinds::LockRecord,
    proto::{Cause, Error, Gathering, Kind, Next, Quorum, Rules, Verdict, VoterReport},
    scripts::Answer,
    voter::{Call, Outcome, Replies, Standings, Voter},
};

/// The voters, in the order in which they were configured.
#[derive(Clone, Debug)]
pub(crate) struct Panel {
    pub(crate) voters: Arc<[Voter]>,
    pub(crate) quorum: Quorum,
    pub(crate) standings: Arc<Standings>,
    /// Several of the voters are parts of one cluster.
    // A lock of Redisson has a fixed name, and so one key in a cluster: several voters of the
    // cluster would give the same vote, and are refused.
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
    // With a fixed deadline, a voter that is far away would seem silent at each attempt
    // (`servers_that_are_far_away_have_the_time_that_they_need`).
    pub(crate) fn allowed(&self, deadline: Duration, longest: Duration) -> Duration {
        let allowed = |voter| self.standings.allowed(voter, deadline, longest);
        (0..self.voters.len()).map(allowed).max().unwrap_or(deadline)
    }

    /// The rules with as much time for each voter as the slowest needs.
    pub(crate) fn adapt(&self, rules: Rules) -> Rules {
        let voter_deadline = self.allowed(rules.voter_deadline, rules.longest_deadline);
        Rules { voter_deadline, ..rules }
    }

    /// Sends a request to all voters.
    // It is queued to each voter when this returns, and leaves also if the replies are dropped.
    // When a future sent it, an undo could leave before its acquire, and the vote stayed (design
    // 3).
    pub(crate) fn ask_all(&self, call: &Call, now: Moment) -> Replies {
        self.queue_all(call, None, now)
    }

    /// Sends a request to some voters.
    pub(crate) fn ask(&self, voters: &[usize], call: &Call, now: Moment) -> Replies {
        let mut replies = Replies::new(self.voters.len(), 1);
        self.ask_again(&mut replies, voters, call, now);
        replies
    }

    /// Sends a request to some voters, again or for the first time. Their next answers count.
    pub(crate) fn ask_again(
        &self,
        replies: &mut Replies,
        voters: &[usize],
        call: &Call,
        now: Moment,
    ) {
        for &voter in voters {
            let asker = replies.expect(voter);
            self.voters[voter].queue_script(call.clone(), None, Some(asker), now);
        }
    }

    /// Sends a request to all voters, and again to each that does not answer. If the client is
    /// dropped meanwhile, until `until` at most.
    pub(crate) fn insist_all(&self, call: &Call, until: Moment, now: Moment) -> Replies {
        self.queue_all(call, Some(until), now)
    }

    fn queue_all(&self, call: &Call, owed_until: Option<Moment>, now: Moment) -> Replies {
        let mut replies = Replies::new(self.voters.len(), self.quorum.least());
        for (voter, queue) in self.voters.iter().enumerate() {
            queue.queue_script(call.clone(), owed_until, Some(replies.expect(voter)), now);
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

/// Does what a machine of `proto` says next, until it ends. `hear` gives it the answer of a voter,
/// `ask` sends the question again.
// One loop for an attempt, a round of renewal and a release: each would have to be right about the
// same things. A sleep that has ended panics if it is awaited once more (mutant
// `ended_sleep_is_awaited`).
pub(crate) async fn drive<Machine, End>(
    clock: &Clock,
    machine: &mut Machine,
    replies: &mut Replies,
    started: Moment,
    mut next: impl FnMut(&mut Machine, Moment) -> Next<End>,
    mut hear: impl FnMut(&mut Machine, (usize, Outcome<Answer>), Moment),
    mut ask: impl FnMut(&mut Replies, &[usize], Moment),
) -> End {
    let mut now = started;
    loop {
        match next(machine, now) {
            Next::End(end) => return end,
            Next::AskAgain(voters) => ask(replies, &voters, now),
            Next::Wait(until) => {
                let mut alarm = pin!(clock.sleep_until(until));
                let heard = tokio::select! {
                    biased;
                    heard = replies.next() => Some(heard),
                    () = &mut alarm => None,
                };
                now = clock.now();
                match heard {
                    Some(heard) => hear(machine, heard, now),
                    None if crate::mutant!("ended_sleep_is_awaited") => alarm.await,
                    None => {}
                }
            }
        }
    }
}

// Questions to all voters that ask for no vote.

impl Coordinator {
    /// The answers of a majority at least. It ends when `are_enough` says so, and otherwise waits
    /// for the others too, except those that are much later than the majority and than usual.
    pub(crate) async fn ask_until(
        &self,
        record: &LockRecord,
        call: &Call,
        rules: Rules,
        are_enough: impl Fn(&[Outcome<Answer>]) -> bool,
    ) -> Result<Vec<Outcome<Answer>>, Error> {
        let began = self.clock.now();
        let gathered = async { Ok(self.gather(call, rules, are_enough).await) };
        let answers = self.gate.within(gathered).await?;
        if self.panel.quorum.reached(|voter| answers[voter].is_ok()) {
            return Ok(answers);
        }
        Err(self.unanswered(record, &answers, began))
    }

    /// The answers of all voters until they are enough, or the missing ones are late.
    pub(crate) async fn gather(
        &self,
        call: &Call,
        rules: Rules,
        are_enough: impl Fn(&[Outcome<Answer>]) -> bool,
    ) -> Vec<Outcome<Answer>> {
        let Self { clock, panel, .. } = self;
        let rules = panel.adapt(rules);
        let started = clock.now();
        let mut asked = panel.ask_all(call, started);
        let mut answers: Vec<_> = vec![Err(Cause::Unheard); panel.quorum.voters()];
        // How long the slowest voter takes as a rule. A majority that is near would otherwise cut
        // off a far voter each time, and what it knows would never be in the answer.
        let usual =
            || (0..panel.voters.len()).filter_map(|it| panel.standings.round_trip(it)).max();
        let mut gathering = Gathering::start(panel.quorum, rules.voter_deadline, started);
        while let Some(due) = gathering.due() {
            let Some((voter, answer)) = clock.in_time(due, asked.next()).await else {
                let late = Cause::TimedOut(clock.now().since(started));
                let unheard = answers.iter_mut().filter(|it| **it == Err(Cause::Unheard));
                unheard.for_each(|answer| *answer = Err(late.clone()));
                break;
            };
            let is_answer = answer.is_ok();
            answers[voter] = answer;
            if are_enough(&answers) {
                break;
            }
            gathering.heard(voter, is_answer, clock.now(), || usual().unwrap_or_default());
        }
        answers
    }

    /// The error of a question that too few voters answered. `asked`: when it was sent.
    pub(crate) fn unanswered(
        &self,
        record: &LockRecord,
        answers: &[Outcome<Answer>],
        asked: Moment,
    ) -> Error {
        let verdicts = answers.iter().map(|answer| match answer {
            Ok(answer) => answer.holder_verdict(),
            Err(cause) => Verdict::Unknown(cause.clone()),
        });
        self.undecided(record, verdicts.collect(), asked)
    }

    /// The same, by the verdict of each voter.
    pub(crate) fn undecided(
        &self,
        record: &LockRecord,
        verdicts: Vec<Verdict>,
        asked: Moment,
    ) -> Error {
        let lock = record.info().name.as_str().into();
        let (needed, after) = (self.panel.quorum.needed(), self.clock.now().since(asked));
        let kind = Kind::NoQuorum { lock, needed, after, asked_ago: after, too_late: None };
        Error::new(kind, self.panel.report(verdicts))
    }
}
