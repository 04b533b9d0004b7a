//! Releases and undos that a voter has not answered yet.
//!
//! While a voter does not answer, only the oldest is sent, with doubling pauses. After its answer
//! all others are sent at once. A request stays here until the voter answers it, unless nobody uses
//! the client any more: then it stays until the lease that it would end is over.

// Why not drop a release when its lease is over: a server that stood still may yet run a renewal
// that was sent before it. The vote of a hold that was released long ago would then stand for
// another lease (law 6).

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use super::lanes::Queued;
use crate::{clock::Moment, proto::Backoff};

/// The requests that one voter has not answered.
#[derive(Default)]
pub(super) struct Debts {
    // One account for each server of a cluster voter. With one for all, each answer of a healthy
    // server sent again everything that waited for a dead one: thousands of requests per release.
    by_shard: BTreeMap<usize, Account>,
    /// Nobody uses the voter any more.
    abandoned: bool,
    /// How many requests were given up since [`take_leaked`](Self::take_leaked) was called.
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

    /// Adds a request that this shard of the voter did not answer.
    pub(super) fn owe(&mut self, shard: usize, request: Queued, now: Moment) {
        let account = self.by_shard.entry(shard).or_default();
        if account.owed.len() == Account::MOST {
            // The oldest one goes: of all these its lease ends first, so it does the least harm.
            account.owed.pop_front();
            self.leaked += 1;
        }
        // The shard stays with the request. Its slot may be at another server when it is sent
        // again: if the answer settled the account of that one, `due` here would stay `None`.
        account.owed.push_back(Queued { shard: Some(shard), ..request });
        // All requests of a lost call come back at the same moment. If each of them doubled the
        // pause, seven that were lost together would put the next try off by a second.
        if account.due.is_none_or(|due| due <= now) {
            account.due = Some(now + account.pause.pause(0));
        }
    }

    /// This shard of the voter has answered: all other requests to it can leave.
    pub(super) fn settle(&mut self, shard: usize) {
        if let Some(account) = self.by_shard.get_mut(&shard) {
            account.due = Account::AT_ONCE;
            account.pause.reset();
        }
    }

    /// Takes out the requests to send now.
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
            // One request is enough to see whether the server answers. All ten thousand would be
            // sent, and time out, at each try.
            let count = if *due == Account::AT_ONCE { owed.len() } else { owed.len().min(1) };
            *due = None;
            taken.extend(owed.drain(..count));
        }
        taken
    }

    /// Nobody uses the voter any more: requests are repeated until their leases are over.
    // Without this end, the task of a client that was dropped, but not closed, would stay for ever
    // if its voter never comes back.
    pub(super) fn abandon(&mut self) {
        self.abandoned = true;
    }

    /// A request that was taken out is given up.
    pub(super) fn leak(&mut self) {
        self.leaked += 1;
    }

    /// Gives up all requests.
    pub(super) fn forgive(&mut self) {
        let owed = self.by_shard.values().map(|account| account.owed.len() as u64);
        self.leaked += owed.sum::<u64>();
        self.by_shard.clear();
    }

    /// How many requests were given up since the last call of this. The voter may keep the vote of
    /// each until its lease ends.
    pub(super) fn take_leaked(&mut self) -> u64 {
        std::mem::take(&mut self.leaked)
    }
}

/// The requests that one shard of a voter has not answered.
struct Account {
    owed: VecDeque<Queued>,
    /// When to send the next one. `None` while one is under way to see whether the server answers;
    /// [`AT_ONCE`](Self::AT_ONCE) sends all.
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
    // Beyond this the memory costs more than the votes, which end with their leases anyway.
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
        assert_eq!(debts.due(), Some(at(20)), "one pause, however many were lost together");
        assert_eq!(names(&debts.take_due(at(100))), ["0"]);
        assert_eq!(debts.due(), None, "one is under way");
        debts.settle(0);
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
        debts.settle(7);
        assert_eq!(names(&debts.take_due(at(1))), ["2"]);
        assert!(debts.due() >= Some(at(20)), "the other is as silent as before");
        assert_eq!(names(&debts.take_due(at(100))), ["0"]);
    }
}
