//! One attempt to gather a majority.

use std::time::Duration;

use super::{HoldId, Loss, Moment, Next, Quorum, Terms, Verdict, Votes};

/// What an attempt is measured by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    pub terms: Terms,
    /// A majority that comes with less validity left than this is too late.
    pub minimum_validity: Duration,
    /// How long a voter has to answer.
    pub voter_deadline: Duration,
    /// How long it may have at most, where it was seen to need longer.
    pub longest_deadline: Duration,
}

impl Rules {
    /// Whether enough is left now of what was asked for at `started`.
    pub fn is_in_time(&self, started: Moment, now: Moment) -> bool {
        let left = self.terms.deadline(started).since(now);
        !left.is_zero() && left >= self.minimum_validity
    }
}

/// What an attempt does next.
type AttemptNext = Next<Result<Moment, Loss>>;

/// An attempt from its first request on.
///
/// In a split the hold with the most votes keeps them and asks the others again, a few times,
/// while everyone else undoes at once; validity counts from the first request all along. Only the
/// first round waits for the silent: a vote that is kept for long may be just the one that a holder
/// needs to renew, where another voter is gone.
#[derive(Debug)]
pub struct Attempt {
    me: HoldId,
    rules: Rules,
    votes: Votes,
    started: Moment,
    asked: Moment,
    last_heard: Moment,
    state: AttemptState,
    rounds_left: u8,
    /// When the answers of this round must have come.
    due: Moment,
    /// When it is over in any case.
    limit: Moment,
}

#[derive(Clone, Copy, Debug)]
enum AttemptState {
    Asking,
    /// Hopeless, but the answers under way decide who leads, or say what is wrong: heard until this
    /// moment, or for longer where so many are missing that closing now would take slow voters for
    /// silent ones.
    Lingering(Moment),
    Pausing(Moment),
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
            state: AttemptState::Asking,
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

    /// How long those took that answered the last round; the silent do not count.
    fn round_trip(&self) -> Duration {
        self.last_heard.since(self.asked)
    }

    pub fn into_votes(self) -> Votes {
        self.votes
    }

    /// Its end is that a majority granted, and until when the hold may be trusted; or why it is to
    /// be undone everywhere. Voters are asked again by the same request, which repeats nothing.
    pub fn next(&mut self, now: Moment) -> Next<Result<Moment, Loss>> {
        match self.state {
            AttemptState::Pausing(until) if now < until => Next::Wait(until),
            AttemptState::Pausing(_) => {
                self.state = AttemptState::Asking;
                self.due = self.limit.min(now + 2 * self.round_trip());
                self.asked = now;
                Next::AskAgain(self.votes.reopen_ungranted())
            }
            AttemptState::Asking | AttemptState::Lingering(_) => self.judge(now),
        }
    }

    fn judge(&mut self, now: Moment) -> AttemptNext {
        let answers_due = self.due;
        let linger_over = matches!(self.state, AttemptState::Lingering(until) if now >= until);
        if now >= answers_due || linger_over && self.votes.may_spare_the_silent() {
            self.votes.close(now.min(answers_due).since(self.asked));
        }
        let waits = crate::mutant!("waits_for_all_grants") && self.votes.is_open();
        if self.votes.is_won() && !waits {
            return self.win(now);
        }
        if !self.votes.is_hopeless() {
            return Next::Wait(answers_due);
        }
        match self.votes.loss(&self.me) {
            Some(Loss::Split) => self.split(now),
            // A short round; all that is known is from the one before.
            Some(Loss::NoQuorum) if self.rounds_left < Self::ROUNDS => Next::End(Err(Loss::Split)),
            // The error names every voter's cause: those about to come are worth a moment.
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

    /// Waits as long again as the deciding answers took, and no longer than the voters have. Comes
    /// here later than that only where the silent cannot be spared.
    fn linger(&mut self, now: Moment, answers_due: Moment) -> AttemptNext {
        let until = match self.state {
            AttemptState::Lingering(until) => until,
            _ => (now + now.since(self.asked)).min(answers_due),
        };
        self.state = AttemptState::Lingering(until);
        Next::Wait(if now < until { until } else { answers_due })
    }

    fn split(&mut self, now: Moment) -> AttemptNext {
        if self.rounds_left == 0 || !self.votes.leads(&self.me) {
            return Next::End(Err(Loss::Split));
        }
        // All see the same split at about the same time, and the others undo at once. Our question
        // reaches the voters half a round trip behind their undos.
        let until = now + self.round_trip() / 2;
        if until >= self.limit {
            return Next::End(Err(Loss::Split));
        }
        self.rounds_left -= 1;
        self.state = AttemptState::Pausing(until);
        Next::Wait(until)
    }
}

#[cfg(test)]
#[path = "attempt_tests.rs"]
mod tests;
