//! Fencing tokens and voters that forget as a small model, of which every state is looked at: the
//! mutex with a counter on each of three voters, renewals, and restarts without data.
//!
//! `docs/model.md` says what it leaves out, and how it differs from the model of the mutex.

mod client;
mod landmarks;
mod moves;
mod properties;
mod requests;
mod rules;
mod state;
mod tell;
mod voter;

use crate::check::{finds, holds, is_large};
use landmarks::Landmark::{
    self, Behind, HeldAtOnce, LostAtItsDeadline, NotCounted, NotStored, Proven, Renewed,
    StoredFirst, StoringRefused,
};
use properties::{EXCLUSION, FREE, TOKENS};
use rules::{Bounds, Broken, Budget, Clock, Rules, Start};

const NONE: Budget = Budget::NONE;

/// One attempt each, or two of one client; the counters are equal at first.
const TWO: Bounds = Bounds::of([1, 1, 0], Start::Free([0; 3]));
const TWO_AND_AGAIN: Bounds = Bounds::of([2, 1, 0], Start::Free([0; 3]));
const THREE: Bounds = Bounds::of([1, 1, 1], Start::Free([0; 3]));
/// One voter is ahead, by a hold that nobody was handed.
const APART: Bounds = Bounds::of([1, 1, 0], Start::Free([0, 0, 2]));
/// Ada has the lock, by a bare majority or by all.
const BARELY_HELD: Bounds = Bounds::of([1, 1, 0], Start::Held(2)).unfenced();
const HELD: Bounds = Bounds::of([1, 1, 0], Start::Held(3)).unfenced();

/// In a lease of one tick it is ahead of all that was lost before.
const RUNS: Clock = Clock { floors: [6; 3], step: 2 };

const ALWAYS: [Landmark; 3] = [HeldAtOnce, StoredFirst, StoringRefused];

#[test]
fn tokens_rise_from_one_hold_to_the_next() {
    let passing = [&ALWAYS[..], &[NotStored, LostAtItsDeadline]].concat();
    holds("equal counters", Rules::kept(TWO), 20_000, &passing);
    holds("counters apart", Rules::kept(APART).lease(1), 50_000, &passing);
    if is_large() {
        let apart = Rules::kept(Bounds { start: Start::Free([0, 1, 2]), ..TWO });
        holds("counters apart, a lease of two ticks", Rules::kept(APART), 200_000, &passing);
        holds("all counters apart", apart, 500_000, &passing);
    }
    // Ben's clock is ahead of ada's.
    let clock = Clock { floors: [0, 2, 0], step: 0 };
    holds("clocks apart", Rules::kept(TWO).clock(clock), 10_000, &passing);
}

#[test]
fn tokens_rise_while_holds_renew_and_attempts_ask_again() {
    let again = Rules::kept(TWO_AND_AGAIN);
    let rounds = Rules::kept(TWO.with(Budget { rounds: 1, ..NONE }));
    let renewals = Rules::kept(APART.with(Budget { renewals: 1, ..NONE }));
    holds("asked twice", again.lease(1), 90_000, &ALWAYS);
    holds("a round more", rounds.lease(1), 80_000, &ALWAYS);
    if is_large() {
        holds("asked twice, a lease of two ticks", again, 500_000, &ALWAYS);
        holds("a round more, a lease of two ticks", rounds, 300_000, &ALWAYS);
        holds("renewed, counters apart", renewals, 500_000, &[&ALWAYS[..], &[Renewed]].concat());
        holds("three clients", Rules::kept(THREE).lease(1), 1_000_000, &ALWAYS);
    }
}

#[test]
fn tokens_rise_while_connections_break() {
    let cuts = TWO.with(Budget { cuts: 1, ..NONE });
    holds("a connection breaks", Rules::kept(cuts).lease(1), 10_000, &ALWAYS);
    if is_large() {
        let apart = APART.with(Budget { cuts: 1, ..NONE });
        holds("a connection breaks, counters apart", Rules::kept(apart), 500_000, &ALWAYS);
    }
}

/// The floor makes up for what is lost: it is above every token that was handed out before the
/// quarantine.
#[test]
fn tokens_rise_while_voters_forget() {
    let passing = [&ALWAYS[..], &[NotCounted, Behind]].concat();
    let one = Rules::kept(TWO.with(Budget { amnesias: 1, ..NONE })).clock(RUNS);
    let two = Rules::kept(TWO.with(Budget { amnesias: 2, ..NONE })).clock(RUNS);
    holds("two forget", two.lease(1), 100_000, &passing);
    if is_large() {
        let held = Bounds { fenced: true, ..BARELY_HELD };
        let held = held.with(Budget { renewals: 1, amnesias: 1, ..NONE });
        holds("a voter forgets, a lease of two ticks", one, 200_000, &passing);
        holds("two forget, a lease of two ticks", two, 500_000, &passing);
        holds("held, renewed, a voter forgets", Rules::kept(held).clock(RUNS), 100_000, &[Renewed]);
    }
}

#[test]
fn holds_exclude_each_other_while_voters_forget() {
    let once = Budget { renewals: 1, amnesias: 1, ..NONE };
    let passing = [HeldAtOnce, LostAtItsDeadline, NotCounted, Renewed, Proven];
    holds("barely held", Rules::kept(BARELY_HELD.with(once)), 40_000, &passing);
    let twice = Budget { renewals: 2, ..once };
    holds("held, two renewals", Rules::kept(HELD.with(twice)), 100_000, &passing);
    if is_large() {
        let free = Rules::kept(TWO.unfenced().with(twice));
        let both = Budget { amnesias: 2, ..twice };
        let three = Budget { renewals: 3, ..once };
        holds("free, two renewals", free, 100_000, &passing);
        holds(
            "barely held, three renewals",
            Rules::kept(BARELY_HELD.with(three)),
            200_000,
            &passing,
        );
        holds("held, two forget", Rules::kept(HELD.with(both)), 400_000, &passing);
        holds("barely held, two forget", Rules::kept(BARELY_HELD.with(both)), 400_000, &passing);
    }
}

#[test]
fn a_token_that_is_not_written_back_falls() {
    finds("none", Rules::broken(Broken::NoWriteBack, APART).lease(1), TOKENS);
}

#[test]
fn a_token_that_is_handed_out_before_a_majority_stores_it_falls() {
    finds("not awaited", Rules::broken(Broken::WriteBackNotAwaited, APART).lease(1), TOKENS);
}

#[test]
fn the_lowest_answer_is_no_token() {
    finds("lowest", Rules::broken(Broken::LowestAnswer, APART).lease(1), TOKENS);
}

/// Ben has the vote, and was told the counter before it was raised: he knows nothing of it.
#[test]
fn a_counter_raised_under_anothers_vote_stores_no_token() {
    finds("under another", Rules::broken(Broken::RaisedUnderAnother, APART.patient()), TOKENS);
}

/// Where the third voter is silent, one that granted less has to be raised.
#[test]
fn a_token_that_is_stored_only_at_those_that_did_not_vote_is_never_handed_out() {
    finds("elsewhere", Rules::broken(Broken::RaisedElsewhere, APART).lease(1), FREE);
}

#[test]
fn a_token_falls_where_a_voter_forgets_its_counter_and_there_is_no_floor() {
    let forgets = TWO.with(Budget { amnesias: 1, ..NONE });
    finds("no floor", Rules::kept(forgets).lease(1), TOKENS);
}

/// By more than it goes on in a quarantine.
#[test]
fn a_token_falls_where_a_voter_forgets_a_counter_that_ran_ahead_of_the_clock() {
    let ahead = |by: u8| {
        let start = Start::Free([0, RUNS.floors[0] + by, RUNS.floors[0] + by]);
        let bounds = Bounds::of([1, 0, 0], start).with(Budget { amnesias: 1, ..NONE });
        Rules::kept(bounds).clock(RUNS).lease(1)
    };
    holds("as the clock", ahead(0), 500, &[HeldAtOnce, NotCounted]);
    finds("ahead", ahead(RUNS.step), TOKENS);
}

#[test]
fn without_quarantine_or_with_half_of_it_one_voter_that_forgets_breaks_exclusion() {
    let bounds = BARELY_HELD.with(Budget { amnesias: 1, ..NONE });
    for quarantine in [0, 1] {
        finds("quarantine", Rules { quarantine, ..Rules::kept(bounds) }, EXCLUSION);
    }
}

/// An attempt has the vote of 3 from before it forgot; then ada's hold has it as well, and lets go
/// of another.
#[test]
fn a_renewal_that_counts_every_voter_in_quarantine_breaks_exclusion() {
    let bounds = BARELY_HELD.with(Budget { renewals: 1, amnesias: 1, ..NONE });
    finds("every renewal", Rules::broken(Broken::EveryRenewalCounts, bounds), EXCLUSION);
}

#[test]
fn a_vote_that_did_not_count_is_no_proof() {
    let bounds = BARELY_HELD.patient().with(Budget { renewals: 2, amnesias: 1, ..NONE });
    finds("any vote", Rules::broken(Broken::AnyVoteIsProof, bounds), EXCLUSION);
}

/// In that tick, but before it forgot, the voter may have voted for somebody else.
#[test]
fn a_vote_that_ended_when_the_voter_forgot_is_no_proof() {
    let bounds = HELD.patient().with(Budget { renewals: 2, amnesias: 1, ..NONE });
    finds("the last tick", Rules::broken(Broken::ProofToTheLastTick, bounds), EXCLUSION);
}

/// The voter forgets that vote too, and ada has proof that she had the one before; ben has yet to
/// learn of it.
#[test]
fn a_vote_given_in_quarantine_does_not_count_after_it() {
    let bounds = HELD.patient().with(Budget { renewals: 1, amnesias: 2, ..NONE });
    finds("when heard", Rules::broken(Broken::JudgedWhenHeard, bounds), EXCLUSION);
}
