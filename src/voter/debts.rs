//! Releases and undos that a voter has not answered yet.
//!
//! While a voter is silent only the oldest is tried, with doubling pauses; its answer lets all the
//! others go at once. None is forgotten before the voter has answered it, though the lease that it
//! would end is over: a voter that stood still may yet run a renewal that was sent before. Only a
//! client that nobody uses any more does not wait for longer than such leases last.
//!
//! A voter of a cluster has several servers, of which one may be silent: each has an account.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use super::Call;
use crate::{clock::Moment, proto::Backoff};

/// A script that is to be answered.
#[derive(Debug)]
pub(crate) struct Debt {
    pub(crate) call: Call,
    /// When the lease that it ends is over, if the voter has run all that was sent before.
    pub(crate) until: Moment,
    /// The part of the voter that did not answer when it was asked first.
    pub(crate) shard: usize,
}

/// What one voter is owed.
#[derive(Debug, Default)]
pub(crate) struct Debts {
    by_shard: BTreeMap<usize, Account>,
    /// Nobody uses the voter any more.
    abandoned: bool,
    /// So many were given up since somebody asked.
    leaked: u64,
}

impl Debts {
    pub(crate) fn is_empty(&self) -> bool {
        self.by_shard.values().all(|account| account.owed.is_empty())
    }

    /// When to [take](Self::take_due) some, if waiting for it makes sense.
    pub(crate) fn due(&self) -> Option<Moment> {
        let accounts = self.by_shard.values().filter(|account| account.may_be_tried());
        accounts.map(|account| account.due).min()
    }

    /// The voter did not answer this one.
    pub(crate) fn owe(&mut self, debt: Debt, now: Moment) {
        self.leaked += self.by_shard.entry(debt.shard).or_default().owe(debt, now);
    }

    /// This part of the voter answered: whatever else it is owed can go.
    pub(crate) fn settled(&mut self, shard: usize) {
        if let Some(account) = self.by_shard.get_mut(&shard) {
            account.settled();
        }
    }

    /// What to send now.
    pub(crate) fn take_due(&mut self, now: Moment) -> Vec<Debt> {
        let mut taken = Vec::new();
        for account in self.by_shard.values_mut().filter(|account| account.is_due(now)) {
            if self.abandoned {
                self.leaked += account.forget(now);
            }
            taken.extend(account.take());
        }
        taken
    }

    /// Nobody uses the voter any more: what is owed is tried for no longer than leases last.
    pub(crate) fn abandon(&mut self) {
        self.abandoned = true;
    }

    /// One is given up.
    pub(crate) fn leak(&mut self) {
        self.leaked += 1;
    }

    pub(crate) fn forgive(&mut self) {
        let owed = self.by_shard.values().map(|account| account.owed.len() as u64);
        self.leaked += owed.sum::<u64>();
        self.by_shard.clear();
    }

    /// How many were given up since this was asked last: the voter may have kept what they would
    /// have ended until it ended by itself.
    pub(crate) fn take_leaked(&mut self) -> u64 {
        std::mem::take(&mut self.leaked)
    }
}

/// What one part of a voter is owed.
#[derive(Debug)]
struct Account {
    owed: VecDeque<Debt>,
    /// One is under way, to see whether the voter answers.
    probing: bool,
    all_at_once: bool,
    due: Moment,
    pause: Backoff,
}

impl Default for Account {
    fn default() -> Self {
        Self {
            owed: VecDeque::new(),
            probing: false,
            all_at_once: false,
            due: Moment::BEGINNING,
            pause: Backoff::new(Duration::from_millis(20), Duration::from_secs(1)),
        }
    }
}

impl Account {
    /// More than this would cost more memory than the leases that end by themselves are worth.
    const MOST: usize = 10_000;

    fn may_be_tried(&self) -> bool {
        !self.owed.is_empty() && !self.probing
    }

    fn is_due(&self, now: Moment) -> bool {
        self.may_be_tried() && self.due <= now
    }

    /// How many it gives up for it.
    fn owe(&mut self, debt: Debt, now: Moment) -> u64 {
        let full = self.owed.len() == Self::MOST;
        if full {
            // The oldest is the one whose lease ends first.
            self.owed.pop_front();
        }
        self.owed.push_back(debt);
        self.all_at_once = false;
        self.probing = false;
        self.due = self.due.max(now + self.pause.pause(0));
        full.into()
    }

    fn settled(&mut self) {
        self.probing = false;
        self.all_at_once = true;
        self.due = Moment::BEGINNING;
        self.pause.reset();
    }

    /// Gives up what was to end leases that are over; how many.
    fn forget(&mut self, now: Moment) -> u64 {
        let before = self.owed.len();
        self.owed.retain(|debt| now < debt.until);
        (before - self.owed.len()) as u64
    }

    fn take(&mut self) -> impl Iterator<Item = Debt> {
        let count = if self.all_at_once { self.owed.len() } else { self.owed.len().min(1) };
        self.probing = count > 0;
        self.owed.drain(..count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        scripts::mutex,
        voter::{Request, Requests},
    };

    fn at(ms: u64) -> Moment {
        Moment::BEGINNING + Duration::from_millis(ms)
    }

    fn debt(number: u64) -> Debt {
        let name = number.to_string();
        let request = Request::new([(&name).into()], [], None);
        let (shared, requests) = ([].into(), Requests::One(request));
        let deadline = Duration::from_millis(200);
        let call = Call { script: &mutex::RELEASE, shared, requests, deadline, longest: deadline };
        Debt { call, until: at(1_000 + number), shard: 0 }
    }

    fn names(debts: &[Debt]) -> Vec<&str> {
        debts.iter().map(|debt| debt.call.key()).collect()
    }

    #[test]
    fn a_silent_voter_is_tried_with_one_at_a_time_and_the_rest_follows_its_answer() {
        let mut debts = Debts::default();
        for number in 0..3 {
            debts.owe(debt(number), at(0));
        }
        assert!(debts.due() >= Some(at(20)));
        assert_eq!(names(&debts.take_due(at(100))), ["0"]);
        assert_eq!(debts.due(), None, "one is under way");
        debts.settled(0);
        assert_eq!(names(&debts.take_due(at(101))), ["1", "2"]);
        assert!(debts.is_empty());
    }

    #[test]
    fn pauses_double_while_the_voter_is_silent() {
        let mut debts = Debts::default();
        debts.owe(debt(0), at(0));
        let first = debts.due().expect("one is owed");
        let tried = debts.take_due(first).remove(0);
        debts.owe(tried, first);
        assert_eq!(debts.due(), Some(first + 2 * first.since(at(0))));
    }

    #[test]
    fn what_a_silent_voter_is_owed_outlives_the_lease_unless_nobody_uses_the_voter_any_more() {
        let mut debts = Debts::default();
        debts.owe(debt(0), at(0));
        let kept = debts.take_due(at(100_000)).remove(0);
        assert_eq!(debts.take_leaked(), 0);
        debts.owe(kept, at(0));
        debts.abandon();
        assert!(debts.take_due(at(100_000)).is_empty());
        assert_eq!((debts.is_empty(), debts.due()), (true, None));
        assert_eq!((debts.take_leaked(), debts.take_leaked()), (1, 0));
    }

    #[test]
    fn the_oldest_gives_way_when_there_are_too_many() {
        let mut debts = Debts::default();
        for number in 0..=Account::MOST as u64 {
            debts.owe(debt(number), at(0));
        }
        assert_eq!(debts.take_leaked(), 1);
        assert_eq!(names(&debts.take_due(at(1_000))), ["1"]);
        debts.forgive();
        assert_eq!(debts.take_leaked(), Account::MOST as u64 - 1);
    }

    #[test]
    fn an_answer_of_one_part_of_a_voter_sends_nothing_to_another() {
        let mut debts = Debts::default();
        for (number, shard) in [(0, 0), (1, 0), (2, 7)] {
            debts.owe(Debt { shard, ..debt(number) }, at(0));
        }
        debts.settled(7);
        assert_eq!(names(&debts.take_due(at(1))), ["2"]);
        assert!(debts.due() >= Some(at(20)), "the other is as silent as before");
        assert_eq!(names(&debts.take_due(at(100))), ["0"]);
    }
}
