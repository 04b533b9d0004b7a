//! Releases and undos that a voter has not answered yet.
//!
//! While a voter is silent only the oldest is tried, with doubling pauses; its answer lets all the
//! others go at once. Each is forgotten when the lease it would end has ended by itself.

use std::{collections::VecDeque, time::Duration};

use super::Call;
use crate::{clock::Moment, engine::Backoff};

/// A script that is to be answered, and when it has no effect any more.
#[derive(Debug)]
pub(crate) struct Debt {
    pub(crate) call: Call,
    pub(crate) until: Moment,
}

/// What one voter is owed.
#[derive(Debug)]
pub(crate) struct Debts {
    owed: VecDeque<Debt>,
    /// One is under way, to see whether the voter answers.
    probing: bool,
    all_at_once: bool,
    due: Moment,
    pause: Backoff,
    /// So many were given up since somebody asked.
    leaked: u64,
}

impl Default for Debts {
    fn default() -> Self {
        Self {
            owed: VecDeque::new(),
            probing: false,
            all_at_once: false,
            due: Moment::BEGINNING,
            pause: Backoff::new(Duration::from_millis(20), Duration::from_secs(1)),
            leaked: 0,
        }
    }
}

impl Debts {
    /// More than this would cost more memory than the leases that end by themselves are worth.
    const MOST: usize = 10_000;

    pub(crate) fn is_empty(&self) -> bool {
        self.owed.is_empty()
    }

    /// Whether waiting for [`due`](Self::due) makes sense.
    pub(crate) fn may_be_tried(&self) -> bool {
        !self.owed.is_empty() && !self.probing
    }

    pub(crate) fn due(&self) -> Moment {
        self.due
    }

    /// The voter did not answer this one.
    pub(crate) fn owe(&mut self, debt: Debt, now: Moment) {
        if self.owed.len() == Self::MOST {
            // The oldest is the one whose lease ends first.
            self.owed.pop_front();
            self.leaked += 1;
        }
        self.owed.push_back(debt);
        self.all_at_once = false;
        self.probing = false;
        self.due = self.due.max(now + self.pause.pause(0));
    }

    /// The voter answered: whatever else it is owed can go.
    pub(crate) fn settled(&mut self) {
        self.probing = false;
        self.all_at_once = true;
        self.due = Moment::BEGINNING;
        self.pause.reset();
    }

    /// What to send now.
    pub(crate) fn take_due(&mut self, now: Moment) -> Vec<Debt> {
        let before = self.owed.len();
        self.owed.retain(|debt| now < debt.until);
        self.leaked += (before - self.owed.len()) as u64;
        let count = if self.all_at_once { self.owed.len() } else { self.owed.len().min(1) };
        self.probing = count > 0;
        self.owed.drain(..count).collect()
    }

    /// One is given up.
    pub(crate) fn leak(&mut self) {
        self.leaked += 1;
    }

    pub(crate) fn forgive(&mut self) {
        self.leaked += self.owed.len() as u64;
        self.owed.clear();
    }

    /// How many were given up since this was asked last: the voter may have kept what they would
    /// have ended until it ended by itself.
    pub(crate) fn take_leaked(&mut self) -> u64 {
        std::mem::take(&mut self.leaked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripts::mutex;

    fn at(ms: u64) -> Moment {
        Moment::BEGINNING + Duration::from_millis(ms)
    }

    fn debt(number: u64) -> Debt {
        let name = number.to_string();
        let call = Call {
            script: &mutex::RELEASE,
            keys: [name.as_str().into()].into(),
            args: [].into(),
            deadline: Duration::from_millis(200),
        };
        Debt { call, until: at(1_000 + number) }
    }

    fn names(debts: &[Debt]) -> Vec<&str> {
        debts.iter().map(|debt| &*debt.call.keys[0]).collect()
    }

    #[test]
    fn a_silent_voter_is_tried_with_one_at_a_time_and_the_rest_follows_its_answer() {
        let mut debts = Debts::default();
        for number in 0..3 {
            debts.owe(debt(number), at(0));
        }
        assert!(debts.due() >= at(20));
        assert_eq!(names(&debts.take_due(at(100))), ["0"]);
        assert!(!debts.may_be_tried(), "one is under way");
        debts.settled();
        assert_eq!(names(&debts.take_due(at(101))), ["1", "2"]);
        assert!(debts.is_empty());
    }

    #[test]
    fn pauses_double_while_the_voter_is_silent() {
        let mut debts = Debts::default();
        debts.owe(debt(0), at(0));
        let first = debts.due();
        let tried = debts.take_due(first).remove(0);
        debts.owe(tried, first);
        assert_eq!(debts.due().since(first), 2 * first.since(at(0)));
    }

    #[test]
    fn what_has_no_effect_any_more_is_forgotten() {
        let mut debts = Debts::default();
        debts.owe(debt(0), at(0));
        assert!(debts.take_due(at(1_000)).is_empty());
        assert!(debts.is_empty() && !debts.may_be_tried());
        assert_eq!((debts.take_leaked(), debts.take_leaked()), (1, 0));
    }

    #[test]
    fn the_oldest_gives_way_when_there_are_too_many() {
        let mut debts = Debts::default();
        for number in 0..=Debts::MOST as u64 {
            debts.owe(debt(number), at(0));
        }
        assert_eq!(debts.take_leaked(), 1);
        assert_eq!(names(&debts.take_due(at(1))), ["1"]);
        debts.forgive();
        assert_eq!(debts.take_leaked(), Debts::MOST as u64 - 1);
    }
}
