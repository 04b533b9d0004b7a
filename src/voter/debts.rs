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

use super::lanes::Queued;
use crate::{clock::Moment, proto::Backoff};

/// What one voter is owed.
#[derive(Debug, Default)]
pub(super) struct Debts {
    by_shard: BTreeMap<usize, Account>,
    /// Nobody uses the voter any more.
    abandoned: bool,
    /// So many were given up since somebody asked.
    leaked: u64,
}

impl Debts {
    pub(super) fn is_empty(&self) -> bool {
        self.by_shard.values().all(|account| account.owed.is_empty())
    }

    /// When to [take](Self::take_due) some, if waiting for it makes sense.
    pub(super) fn due(&self) -> Option<Moment> {
        let accounts = self.by_shard.values().filter(|account| !account.owed.is_empty());
        accounts.filter_map(|account| account.due).min()
    }

    /// This part of the voter did not answer this one when it was asked first.
    pub(super) fn owe(&mut self, shard: usize, request: Queued, now: Moment) {
        let account = self.by_shard.entry(shard).or_default();
        if account.owed.len() == Account::MOST {
            // The oldest is the one whose lease ends first.
            account.owed.pop_front();
            self.leaked += 1;
        }
        account.owed.push_back(Queued { shard: Some(shard), ..request });
        account.due = account.due.max(Some(now + account.pause.pause(0)));
    }

    /// This part of the voter answered: whatever else it is owed can go.
    pub(super) fn settled(&mut self, shard: usize) {
        if let Some(account) = self.by_shard.get_mut(&shard) {
            account.due = Account::AT_ONCE;
            account.pause.reset();
        }
    }

    /// What to send now.
    pub(super) fn take_due(&mut self, now: Moment) -> Vec<Queued> {
        let mut taken = Vec::new();
        for Account { owed, due, .. } in self.by_shard.values_mut() {
            if owed.is_empty() || due.is_none_or(|due| due > now) {
                continue;
            }
            if self.abandoned {
                let before = owed.len();
                owed.retain(|request| request.owed_until.is_some_and(|until| now < until));
                self.leaked += (before - owed.len()) as u64;
            }
            let count = if *due == Account::AT_ONCE { owed.len() } else { owed.len().min(1) };
            *due = None;
            taken.extend(owed.drain(..count));
        }
        taken
    }

    /// Nobody uses the voter any more: what is owed is tried for no longer than leases last.
    pub(super) fn abandon(&mut self) {
        self.abandoned = true;
    }

    /// One is given up.
    pub(super) fn leak(&mut self) {
        self.leaked += 1;
    }

    pub(super) fn forgive(&mut self) {
        let owed = self.by_shard.values().map(|account| account.owed.len() as u64);
        self.leaked += owed.sum::<u64>();
        self.by_shard.clear();
    }

    /// How many were given up since this was asked last: the voter may have kept what they would
    /// have ended until it ended by itself.
    pub(super) fn take_leaked(&mut self) -> u64 {
        std::mem::take(&mut self.leaked)
    }
}

/// What one part of a voter is owed.
#[derive(Debug)]
struct Account {
    owed: VecDeque<Queued>,
    /// When the next one is tried; never while one is under way to see whether the voter answers.
    /// Where it has answered since, all go at once, as at the beginning.
    due: Option<Moment>,
    pause: Backoff,
}

impl Default for Account {
    fn default() -> Self {
        let pause = Backoff::new(Duration::from_millis(20), Duration::from_secs(1));
        Self { owed: VecDeque::new(), due: Self::AT_ONCE, pause }
    }
}

impl Account {
    /// More than this would cost more memory than the leases that end by themselves are worth.
    const MOST: usize = 10_000;
    const AT_ONCE: Option<Moment> = Some(Moment::BEGINNING);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        proto::at,
        scripts::mutex,
        voter::{Call, Request},
    };

    fn debt(number: u64) -> Queued {
        let name = number.to_string();
        let request = Request::new([(&name).into()], [], None);
        let (shared, requests) = ([].into(), [request].into());
        let deadline = Duration::from_millis(200);
        let call = Call { script: &mutex::RELEASE, shared, requests, deadline, longest: deadline };
        let owed_until = Some(at(1_000 + number));
        Queued { call, owed_until, asker: None, shard: None, asked: at(0) }
    }

    fn names(owed: &[Queued]) -> Vec<&str> {
        owed.iter().map(|request| request.call.key()).collect()
    }

    #[test]
    fn a_silent_voter_is_tried_with_one_at_a_time_and_the_rest_follows_its_answer() {
        let mut debts = Debts::default();
        for number in 0..3 {
            debts.owe(0, debt(number), at(0));
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
        debts.owe(0, debt(0), at(0));
        let first = debts.due().expect("one is owed");
        let tried = debts.take_due(first).remove(0);
        debts.owe(0, tried, first);
        assert_eq!(debts.due(), Some(first + 2 * first.since(at(0))));
    }

    #[test]
    fn what_a_silent_voter_is_owed_outlives_the_lease_unless_nobody_uses_the_voter_any_more() {
        let mut debts = Debts::default();
        debts.owe(0, debt(0), at(0));
        let kept = debts.take_due(at(100_000)).remove(0);
        assert_eq!(debts.take_leaked(), 0);
        debts.owe(0, kept, at(0));
        debts.abandon();
        assert!(debts.take_due(at(100_000)).is_empty());
        assert_eq!((debts.is_empty(), debts.due()), (true, None));
        assert_eq!((debts.take_leaked(), debts.take_leaked()), (1, 0));
    }

    #[test]
    fn the_oldest_gives_way_when_there_are_too_many() {
        let mut debts = Debts::default();
        for number in 0..=Account::MOST as u64 {
            debts.owe(0, debt(number), at(0));
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
            debts.owe(shard, debt(number), at(0));
        }
        debts.settled(7);
        assert_eq!(names(&debts.take_due(at(1))), ["2"]);
        assert!(debts.due() >= Some(at(20)), "the other is as silent as before");
        assert_eq!(names(&debts.take_due(at(100))), ["0"]);
    }
}
