//! One attempt to gather a majority.

use std::time::Duration;

use super::{Loss, Quorum, Terms, Votes};
use crate::{
    clock::Moment,
    words::{HoldId, Verdict},
};

/// What an attempt is measured by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) terms: Terms,
    /// A majority that comes with less validity left than this is too late.
    pub(crate) minimum_validity: Duration,
    /// How long a voter has to answer.
    pub(crate) voter_deadline: Duration,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing before this moment, unless a verdict comes.
    Wait(Moment),
    /// Ask these voters again: the same request, which repeats nothing.
    AskAgain(Vec<usize>),
    /// A majority granted; the hold may be trusted until this moment.
    Won(Moment),
    /// Undo everywhere.
    Lost(Loss),
}

/// An attempt from its first request on.
///
/// In a split the hold with the most votes keeps them and asks the others again, a few times,
/// while everyone else undoes at once; validity counts from the first request all along.
#[derive(Debug)]
pub(crate) struct Attempt {
    me: HoldId,
    rules: Rules,
    votes: Votes,
    started: Moment,
    asked: Moment,
    state: State,
    rounds_left: u8,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Asking,
    /// Hopeless, but the answers under way decide who leads, or say what is wrong: heard until this
    /// moment.
    Lingering(Moment),
    Pausing(Moment),
}

impl Attempt {
    const ROUNDS: u8 = 4;

    pub(crate) fn start(me: HoldId, quorum: Quorum, rules: Rules, now: Moment) -> Self {
        Self {
            me,
            rules,
            votes: Votes::new(quorum),
            started: now,
            asked: now,
            state: State::Asking,
            rounds_left: Self::ROUNDS,
        }
    }

    pub(crate) fn heard(&mut self, voter: usize, verdict: Verdict) {
        self.votes.record(voter, verdict);
    }

    /// How long the voters took to decide the last round.
    pub(crate) fn round_trip(&self, now: Moment) -> Duration {
        now.since(self.asked)
    }

    pub(crate) fn into_votes(self) -> Votes {
        self.votes
    }

    pub(crate) fn next(&mut self, now: Moment) -> Next {
        match self.state {
            State::Pausing(until) if now < until => Next::Wait(until),
            State::Pausing(_) => {
                self.state = State::Asking;
                self.asked = now;
                Next::AskAgain(self.votes.reopen_ungranted())
            }
            State::Asking | State::Lingering(_) => self.judge(now),
        }
    }

    fn judge(&mut self, now: Moment) -> Next {
        let answers_due = self.asked + self.rules.voter_deadline;
        let linger_over = matches!(self.state, State::Lingering(until) if now >= until);
        if now >= answers_due || linger_over {
            self.votes.close(now.since(self.asked));
        }
        if self.votes.is_won() {
            return self.win(now);
        }
        if !self.votes.is_hopeless() {
            return Next::Wait(answers_due);
        }
        match self.votes.loss() {
            Some(Loss::Split) => self.split(now),
            // The error names every voter's cause: those that are about to come are worth a moment.
            Some(Loss::NoQuorum) if self.votes.open() > 0 => self.linger(now, answers_due),
            Some(loss) => Next::Lost(loss),
            None => self.linger(now, answers_due),
        }
    }

    fn win(&self, now: Moment) -> Next {
        let deadline = self.rules.terms.deadline(self.started);
        let left = deadline.since(now);
        if left.is_zero() || left < self.rules.minimum_validity {
            return Next::Lost(Loss::NoQuorum);
        }
        Next::Won(deadline)
    }

    /// Waits as long again as the deciding answers took, and no longer than the voters have.
    fn linger(&mut self, now: Moment, answers_due: Moment) -> Next {
        let until = match self.state {
            State::Lingering(until) => until,
            _ => (now + now.since(self.asked)).min(answers_due),
        };
        self.state = State::Lingering(until);
        Next::Wait(until)
    }

    fn split(&mut self, now: Moment) -> Next {
        if self.rounds_left == 0 || !self.votes.leads(&self.me) {
            return Next::Lost(Loss::Split);
        }
        self.rounds_left -= 1;
        let until = now + now.since(self.asked) / 2;
        self.state = State::Pausing(until);
        Next::Wait(until)
    }
}

#[cfg(test)]
#[path = "attempt_tests.rs"]
mod tests;
