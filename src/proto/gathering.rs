//! How long to wait for the answers to a question that asks for no votes.

use std::time::Duration;

use super::{Moment, Quorum};

/// The answers to one question to all voters: of a majority at least, and of the others if they are
/// not much later.
// Unlike votes, each answer adds something: an operator wants to see what every voter stores. But a
// voter that is down must not cost each such question its whole deadline.
#[derive(Debug)]
pub struct Gathering {
    quorum: Quorum,
    started: Moment,
    due: Moment,
    answered: Vec<bool>,
    /// How many voters have not been heard, not even with an error.
    silent: usize,
}

impl Gathering {
    /// The least time for voters that are busier than the majority.
    const LINGER: Duration = Duration::from_millis(100);

    pub fn start(quorum: Quorum, voter_deadline: Duration, now: Moment) -> Self {
        let (voters, due) = (quorum.voters(), now + voter_deadline);
        let (answered, silent) = (vec![false; voters], voters);
        Self { quorum, started: now, due, answered, silent }
    }

    /// Until when the next answer is waited for; `None` once all have come.
    pub fn due(&self) -> Option<Moment> {
        (self.silent > 0).then_some(self.due)
    }

    /// A voter answered, or its question failed. `usual`: how long the slowest voter takes.
    pub fn heard(
        &mut self,
        voter: usize,
        is_answer: bool,
        now: Moment,
        usual: impl FnOnce() -> Duration,
    ) {
        self.answered[voter] = is_answer;
        self.silent -= 1;
        if self.quorum.reached(|voter| self.answered[voter]) {
            // Twice as long as the majority took, or as the slowest voter usually takes: a voter
            // that is merely far away is heard too.
            let took = usual().max(now.since(self.started));
            self.due = self.due.min(self.started + Self::LINGER.max(took * 2));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::at;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// Until when the last of three voters is waited for, if the second has answered at this
    /// moment, and the slowest usually takes so long. Each has a second.
    fn due(answered: u64, usual: u64) -> Option<Moment> {
        let mut gathering = Gathering::start(Quorum::of(3), MS(1_000), at(0));
        gathering.heard(0, true, at(1), || panic!("no majority has answered"));
        assert_eq!(gathering.due(), Some(at(1_000)));
        gathering.heard(1, true, at(answered), || MS(usual));
        gathering.due()
    }

    #[test]
    fn who_is_later_than_a_majority_is_waited_for_twice_as_long_and_never_beyond_its_deadline() {
        assert_eq!(due(2, 3), Some(at(100)));
        assert_eq!(due(80, 3), Some(at(160)));
        assert_eq!(due(2, 70), Some(at(140)), "a voter that is far away");
        assert_eq!(due(2, 700), Some(at(1_000)));
    }

    #[test]
    fn what_is_no_answer_ends_no_wait_until_it_is_the_last() {
        let mut gathering = Gathering::start(Quorum::of(3), MS(1_000), at(0));
        for (voter, due) in [Some(at(1_000)), Some(at(1_000)), None].into_iter().enumerate() {
            gathering.heard(voter, voter == 0, at(1), || panic!("no majority has answered"));
            assert_eq!(gathering.due(), due);
        }
    }
}
