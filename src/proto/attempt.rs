//! One attempt to gather a majority.

use std::time::Duration;

use super::{HoldId, Loss, Moment, Next, Quorum, Terms, Verdict, Votes};

/// The times that bound an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    pub terms: Terms,
    /// A majority that comes with less validity left than this is too late.
    pub minimum_validity: Duration,
    /// How long a voter has to answer.
    pub voter_deadline: Duration,
    /// How long a voter may have at most if its round trips need longer.
    pub longest_deadline: Duration,
}

impl Rules {
    /// Whether enough validity is left now of a request that left at `started`.
    pub fn is_in_time(&self, started: Moment, now: Moment) -> bool {
        // Zero is too late even if the minimum is zero: a lease that is no longer than the drift
        // may never be trusted (law 2).
        let left = self.terms.deadline(started).since(now);
        !left.is_zero() && left >= self.minimum_validity
    }
}

/// What an attempt does next.
type AttemptNext = Next<Result<Moment, Loss>>;

/// An attempt from its first request on.
///
/// In a split the hold with the most votes keeps them and asks the others again, a few times. All
/// other attempts undo at once.
#[derive(Debug)]
pub struct Attempt {
    me: HoldId,
    rules: Rules,
    votes: Votes,
    // No later round moves this. The votes of the first round were asked for then, and their leases
    // may run from then on: the mutant `validity_from_the_reply` breaks law 2.
    started: Moment,
    asked: Moment,
    last_heard: Moment,
    /// Until when it still waits for answers, once it is hopeless.
    linger: Option<Moment>,
    /// Until when the leader of a split waits before it asks again.
    pause: Option<Moment>,
    rounds_left: u8,
    /// When the answers of this round must have come.
    due: Moment,
    /// When the attempt is over in any case.
    limit: Moment,
}

impl Attempt {
    const ROUNDS: u8 = 4;

    pub fn start(me: HoldId, quorum: Quorum, rules: Rules, now: Moment) -> Self {
        Self {
            me,
            rules,
            votes: Votes::new(quorum),
            started: now,
            asked: now,
            last_heard: now,
            linger: None,
            pause: None,
            rounds_left: Self::ROUNDS,
            due: now + rules.voter_deadline,
            limit: now + 2 * rules.voter_deadline,
        }
    }

    pub fn heard(&mut self, voter: usize, verdict: Verdict, now: Moment) {
        self.votes.record(voter, verdict);
        self.last_heard = now;
    }

    pub fn started(&self) -> Moment {
        self.started
    }

    /// How long the last answer of this round took.
    fn round_trip(&self) -> Duration {
        self.last_heard.since(self.asked)
    }

    pub fn into_votes(self) -> Votes {
        self.votes
    }

    /// Ends with the moment until which the hold may be trusted, if a majority granted. Otherwise
    /// with the reason, and the attempt is to be undone everywhere. Voters are asked again by the
    /// same request, which repeats nothing (law 5).
    pub fn next(&mut self, now: Moment) -> Next<Result<Moment, Loss>> {
        let Some(until) = self.pause else { return self.judge(now) };
        if now < until {
            return Next::Wait(until);
        }
        (self.pause, self.linger) = (None, None);
        // Only the first round waits for silent voters. A vote that is kept for long may be the one
        // that a holder needs to renew while another voter is down (law 7).
        self.due = self.limit.min(now + 2 * self.round_trip());
        self.asked = now;
        Next::AskAgain(self.votes.reopen_ungranted())
    }

    fn judge(&mut self, now: Moment) -> AttemptNext {
        let answers_due = self.due;
        // A hopeless attempt does not wait for silent voters that can change nothing. If so many
        // are missing that the reason of the loss depends on them, they have their full time: a
        // slow voter is not taken for one that is down (law 9).
        let linger_over = self.linger.is_some_and(|until| now >= until);
        if now >= answers_due || linger_over && self.votes.may_spare_the_silent() {
            self.votes.close(now.min(answers_due).since(self.asked));
        }
        // The grant that makes the majority decides. To wait for the others would make each lock as
        // slow as the slowest voter (law 8).
        let waits = crate::mutant!("waits_for_all_grants") && self.votes.is_open();
        if self.votes.is_won() && !waits {
            return self.win(now);
        }
        if !self.votes.is_hopeless() {
            return Next::Wait(answers_due);
        }
        match self.votes.loss(&self.me) {
            Some(Loss::Split) => self.split(now),
            // Rounds after the first are too short to call a voter silent. The first one did find a
            // quorum, and a split.
            Some(Loss::NoQuorum) if self.rounds_left < Self::ROUNDS => Next::End(Err(Loss::Split)),
            // The error names every voter's cause, so the answers about to come are worth a moment.
            Some(Loss::NoQuorum) if self.votes.is_open() && !linger_over => {
                self.linger(now, answers_due)
            }
            Some(loss) => Next::End(Err(loss)),
            None => self.linger(now, answers_due),
        }
    }

    fn win(&self, now: Moment) -> AttemptNext {
        if self.rules.is_in_time(self.started, now) {
            return Next::End(Ok(self.rules.terms.deadline(self.started)));
        }
        Next::End(Err(Loss::NoQuorum))
    }

    /// Waits as long again as the deciding answers took; after that for voters that cannot be
    /// spared.
    fn linger(&mut self, now: Moment, answers_due: Moment) -> AttemptNext {
        let until = (now + now.since(self.asked)).min(answers_due);
        let until = *self.linger.get_or_insert(until);
        Next::Wait(if now < until { until } else { answers_due })
    }

    fn split(&mut self, now: Moment) -> AttemptNext {
        // To ask for the votes of a ticket that has ended again would replace the answers that say
        // so (`a_vote_that_comes_back_after_its_ticket_has_ended_is_given_up`).
        let is_over = self.rounds_left == 0 || self.votes.is_lost_for_good();
        if is_over || !self.votes.leads(&self.me) {
            return Next::End(Err(Loss::Split));
        }
        // All contenders see the same split at about the same time, and the others undo at once. A
        // question that leaves half a round trip later arrives behind their undos.
        let until = now + self.round_trip() / 2;
        if until >= self.limit {
            return Next::End(Err(Loss::Split));
        }
        self.rounds_left -= 1;
        self.pause = Some(until);
        Next::Wait(until)
    }
}

#[cfg(test)]
#[path = "attempt_tests.rs"]
mod tests;
