//! Compares what a hold learns with what happened: voters lose its record at any time, and requests
//! and answers are slow or lost.

use std::{cmp::Reverse, collections::BinaryHeap, time::Duration};

use rand::{Rng, RngExt, SeedableRng, rngs::StdRng};

use super::*;
use crate::proto::{Drift, Quorum};

const MS: fn(u64) -> Duration = Duration::from_millis;

/// What a voter is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Request {
    Acquire,
    Renew,
    Anew,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Loses,
    /// A request that was sent then arrives.
    Arrives(Request, u64),
    /// The answer to it.
    Heard(Request, u64, bool),
}

/// One hold and its voters; times in microseconds.
struct Truth {
    chance: StdRng,
    quorum: Quorum,
    events: BinaryHeap<Reverse<(u64, usize, Event)>>,
    has_vote: Vec<bool>,
    /// A voter has lost the record: from then on others may be given votes.
    is_lost_somewhere: bool,
    passed: Vec<bool>,
    support: Support,
    /// Whose grants of the acquisition were heard: a majority of them is the hold.
    granted: Vec<bool>,
    was_won: bool,
    outcome: Outcome,
}

#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that was seen")]
struct Outcome {
    is_held: bool,
    has_lost_some: bool,
    /// Another may have had a majority since it was won.
    was_passed: bool,
    is_told: bool,
}

const ROUND: u64 = 100_000;
const ROUNDS: u64 = 4;

impl Truth {
    fn new(seed: u64) -> Self {
        let mut chance = StdRng::seed_from_u64(seed);
        let voters = chance.random_range(1..=5);
        let mut truth = Self {
            chance,
            quorum: Quorum::of(voters),
            events: BinaryHeap::new(),
            has_vote: vec![false; voters],
            is_lost_somewhere: false,
            passed: vec![false; voters],
            support: Support::new(voters, at(0), Duration::ZERO, MS(1_000_000)),
            granted: vec![false; voters],
            was_won: false,
            outcome: Outcome::default(),
        };
        for voter in 0..voters {
            truth.send(voter, Request::Acquire, 0);
            (1..=ROUNDS).for_each(|round| truth.send(voter, Request::Renew, round * ROUND));
            if truth.chance.random_ratio(1, 2) {
                let loses = truth.chance.random_range(1..ROUND * (ROUNDS - 1));
                truth.events.push(Reverse((loses, voter, Event::Loses)));
            }
        }
        truth
    }

    /// A request takes less than a quarter of the time between two rounds, so it comes in order.
    fn send(&mut self, voter: usize, request: Request, sent: u64) {
        let is_last = sent >= ROUNDS * ROUND;
        if is_last || !self.chance.random_ratio(1, 5) {
            let arrives = sent + self.way();
            self.events.push(Reverse((arrives, voter, Event::Arrives(request, sent))));
        }
    }

    fn way(&mut self) -> u64 {
        1 + self.chance.next_u64() % (ROUND / 8)
    }

    fn run(mut self) -> Outcome {
        while let Some(Reverse((now, voter, event))) = self.events.pop() {
            match event {
                Event::Loses => {
                    self.is_lost_somewhere |= std::mem::take(&mut self.has_vote[voter]);
                }
                Event::Arrives(request, sent) => {
                    let gives = self.has_vote[voter] || request != Request::Renew;
                    self.passed[voter] = request == Request::Acquire && self.is_lost_somewhere;
                    self.has_vote[voter] = gives;
                    let answers = now + self.way();
                    if sent >= ROUNDS * ROUND || !self.chance.random_ratio(1, 5) {
                        let heard = Event::Heard(request, sent, gives);
                        self.events.push(Reverse((answers, voter, heard)));
                    }
                }
                Event::Heard(request, sent, gave) => self.hear(voter, (request, sent, gave), now),
            }
            self.outcome.has_lost_some = self.is_lost_somewhere;
            self.was_won |= self.quorum.reached(|voter| self.has_vote[voter]);
            self.outcome.was_passed |=
                self.was_won && self.quorum.reached(|voter| !self.has_vote[voter]);
        }
        self.outcome
    }

    fn hear(&mut self, voter: usize, (request, sent, gave): (Request, u64, bool), now: u64) {
        let verdict = if gave { Verdict::Granted } else { Verdict::Absent };
        let asked = Asked {
            is_first: request == Request::Acquire,
            is_passed: request == Request::Acquire && self.passed[voter],
            sent: at(sent),
            terms: Terms::new(MS(1_000_000), Drift { ppm: 0, fixed: Duration::ZERO }),
            heard: at(now),
            quarantine: None,
        };
        self.support.heard(voter, &verdict, asked);
        self.granted[voter] |= request == Request::Acquire;
        self.outcome.is_held |= self.quorum.reached(|voter| self.granted[voter]);
        if self.outcome.is_held {
            self.outcome.is_told |= self.support.is_lost(self.quorum, at(now));
        }
        if !gave {
            self.send(voter, Request::Anew, now);
        }
    }
}

fn at(micros: u64) -> Moment {
    Moment::BEGINNING + Duration::from_micros(micros)
}

#[test]
fn whoever_may_have_been_passed_is_told_by_a_round_that_all_answer() {
    let (mut passed, mut told) = (0, 0);
    for seed in 0..20_000 {
        let outcome = Truth::new(seed).run();
        let Outcome { is_held, has_lost_some, was_passed, is_told } = outcome;
        assert!(is_told || !was_passed || !is_held, "seed {seed}");
        assert!(has_lost_some || !is_told, "seed {seed}: no voter has lost it");
        passed += u32::from(is_held && was_passed);
        told += u32::from(is_told);
    }
    assert!(passed > 2_000 && told < 4 * passed, "{passed}, {told}");
}
