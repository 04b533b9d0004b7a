//! Holds, tokens and voters that forget as a small model, of which every state is looked at: all
//! orders of all messages between two or three clients and three voters, with a few faults of every
//! kind.
//!
//! What a client makes of what it hears is decided by `proto` (`judge.rs`); what a
//! voter does follows `lua/` step by step (`voter.rs`). `tests/proofs/model.md` says what it leaves
//! out.

mod client;
mod judge;
mod landmarks;
mod moves;
#[cfg(quorate_mutants)]
mod mutants;
mod properties;
mod requests;
mod rules;
mod state;
mod voter;

use crate::{
    change::{Change, Sets},
    check::{finds, holds, is_large},
};
use landmarks::Landmark::{
    self, Behind, ExpiredEarly, HandedOver, LostAtItsDeadline, NotCounted, NotStored, Proven,
    RenewalRefused, Renewed, SplitWon, StoredFirst, StoringRefused, UndoneTooEarly, Vanished,
    VoteRegained, VoteWithoutOwner, Won, WonJoint, WonNew, WonOld,
};
use properties::{BACKED, EXCLUSION, FREE, HEALS, NO_LEAK, TOKENS, UNINTERRUPTED, has_one_leader};
use rules::{Bounds, Broken, Budget, Clock, RenewalCounts, Rules, Start};
use state::State;

/// One attempt each; or two of one client, whose late messages then meet its own next attempt.
const TWO: Bounds = Bounds::of([1, 1, 0]);
const TWO_AND_AGAIN: Bounds = Bounds::of([2, 1, 0]);
const THREE: Bounds = Bounds::of([1, 1, 1]);
const NONE: Budget = Budget::NONE;

/// With tokens: the counters are equal at first, or one is ahead by a hold that nobody was handed.
const EQUAL: Bounds = TWO.fenced([0; 3]).busy(2);
const APART: Bounds = TWO.fenced([0, 0, 2]).busy(2);
/// Ada has the lock, by a bare majority or by all.
const BARELY_HELD: Bounds = TWO.from(Start::Held(2)).busy(2);
const HELD: Bounds = TWO.from(Start::Held(3)).busy(2);

/// In a lease of one tick it is ahead of all that was lost before.
const RUNS: Clock = Clock { floors: [6; 3], step: 2 };

const ALWAYS: [Landmark; 4] = [Won, HandedOver, LostAtItsDeadline, ExpiredEarly];
const TOKENS_ALWAYS: [Landmark; 3] = [Won, StoredFirst, StoringRefused];

/// Without drift, in a lease of so many ticks.
fn exact(bounds: Bounds, lease: u8) -> Rules {
    Rules::kept(bounds).lease(lease, 0)
}

#[test]
fn two_clients_exclude_each_other_while_connections_break() {
    let passing = [&ALWAYS[..], &[Renewed, RenewalRefused, UndoneTooEarly, VoteWithoutOwner]];
    let bounds = TWO.with(Budget { renewals: 1, cuts: 1, ..NONE });
    holds("connections break", Rules::kept(bounds), 200_000, &passing.concat());
    if is_large() {
        let both = Rules::kept(bounds.busy(2));
        holds("connections of both break", both, 300_000, &passing.concat());
        let bounds = TWO_AND_AGAIN.with(Budget { cuts: 1, ..NONE }).busy(2);
        holds("connections break, asked twice", Rules::kept(bounds), 1_000_000, &ALWAYS);
    }
}

#[test]
fn two_clients_exclude_each_other_while_voters_restart() {
    let bounds = TWO.with(Budget { renewals: 1, restarts: 1, ..NONE });
    holds("a voter restarts", Rules::kept(bounds), 60_000, &ALWAYS);
}

#[test]
fn two_clients_exclude_each_other_while_voters_forget() {
    let passing = [&ALWAYS[..], &[Renewed, RenewalRefused, VoteRegained, NotCounted]].concat();
    let bounds = TWO.with(Budget { renewals: 1, amnesias: 1, ..NONE });
    holds("a voter forgets", Rules::kept(bounds), 200_000, &passing);
    if is_large() {
        let bounds = TWO.with(Budget { renewals: 1, amnesias: 2, ..NONE });
        holds("a majority forgets", Rules::kept(bounds), 500_000, &passing);
        let never = Rules { renewal_counts: RenewalCounts::Never, ..Rules::kept(bounds) };
        holds("a majority forgets, renewals do not count it", never, 500_000, &ALWAYS);
        let bounds = TWO.with(Budget { renewals: 2, amnesias: 1, ..NONE }).busy(2);
        holds("a voter forgets, two renewals", Rules::kept(bounds), 1_000_000, &passing);
        let bounds = TWO_AND_AGAIN.with(Budget { amnesias: 1, ..NONE });
        holds("a voter forgets, asked twice", Rules::kept(bounds), 500_000, &ALWAYS);
    }
}

#[test]
fn a_hold_that_stands_excludes_others_while_voters_forget() {
    let once = Budget { renewals: 1, amnesias: 1, ..NONE };
    let passing = [Won, LostAtItsDeadline, NotCounted, Renewed, Proven];
    holds("barely held", exact(BARELY_HELD.with(once), 2), 40_000, &passing);
    let twice = Budget { renewals: 2, ..once };
    holds("held, two renewals", exact(HELD.with(twice), 2), 100_000, &passing);
    let both = Budget { renewals: 1, amnesias: 2, ..NONE };
    let vanished = [&passing[..], &[Vanished]].concat();
    holds("held, a majority forgets", exact(HELD.with(both), 2), 50_000, &vanished);
    if is_large() {
        let free = exact(TWO.busy(2).with(twice), 2);
        let both = Budget { amnesias: 2, ..twice };
        let three = Budget { renewals: 3, ..once };
        holds("free, two renewals", free, 100_000, &passing);
        let bare = |budget| exact(BARELY_HELD.with(budget), 2);
        holds("barely held, three renewals", bare(three), 200_000, &passing);
        holds("held, two forget", exact(HELD.with(both), 2), 400_000, &passing);
        holds("barely held, two forget", bare(both), 400_000, &passing);
    }
}

#[test]
fn a_client_that_dies_leaves_nothing_that_outlives_its_lease() {
    let bounds = TWO.with(Budget { deaths: 1, ..NONE });
    holds("a client dies", Rules::kept(bounds), 15_000, &[Won, VoteWithoutOwner]);
    if is_large() {
        let bounds = TWO_AND_AGAIN.with(Budget { deaths: 1, ..NONE });
        holds("a client dies and asks again", Rules::kept(bounds), 500_000, &ALWAYS);
    }
}

#[test]
fn a_client_that_asks_again_is_not_hit_by_its_own_undo() {
    holds("asked twice", Rules::kept(TWO_AND_AGAIN), 50_000, &ALWAYS);
}

#[test]
fn three_clients_exclude_each_other() {
    let rules = Rules::kept(THREE);
    let lease = if is_large() { 3 } else { 2 };
    holds("three clients", rules.lease(lease, 1), 60_000, &ALWAYS);
}

/// All 27 ways in which three voters can have voted, as all three clients hear of them.
#[test]
fn in_every_split_there_is_one_leader() {
    let rules = Rules::kept(THREE);
    let mut splits = 0;
    for votes in 0..27_u8 {
        let votes = [votes % 3, votes / 3 % 3, votes / 9];
        let state = State::heard(votes, &rules);
        assert!(has_one_leader(&state, &rules), "{votes:?}");
        splits += u8::from(state.is_split(&rules));
    }
    assert_eq!(splits, 6);
}

#[test]
fn the_leader_of_a_split_may_win_it() {
    let rules = Rules::kept(TWO.with(Budget { rounds: 1, ..NONE }));
    holds("a split", rules, 20_000, &[Won, HandedOver, SplitWon]);
    if is_large() {
        let rules = Rules::kept(THREE.with(Budget { rounds: 1, ..NONE }));
        let landmarks = [Won, HandedOver, SplitWon];
        holds("a split of three", rules.lease(2, 1), 500_000, &landmarks);
    }
}

#[test]
fn tokens_rise_from_one_hold_to_the_next() {
    let passing = [&TOKENS_ALWAYS[..], &[NotStored, LostAtItsDeadline]].concat();
    holds("equal counters", exact(EQUAL, 2), 10_000, &passing);
    holds("counters apart", exact(APART, 2), 50_000, &passing);
    if is_large() {
        let apart = exact(EQUAL.fenced([0, 1, 2]), 2);
        holds("all counters apart", apart, 100_000, &passing);
    }
    // Ben's clock is ahead of ada's.
    let clock = Clock { floors: [0, 2, 0], step: 0 };
    holds("clocks apart", exact(EQUAL, 2).clock(clock), 10_000, &passing);
}

#[test]
fn tokens_rise_while_holds_renew_and_attempts_ask_again() {
    let again = TWO_AND_AGAIN.fenced([0; 3]);
    let rounds = EQUAL.with(Budget { rounds: 1, ..NONE });
    holds("tokens, asked twice", exact(again, 1), 50_000, &TOKENS_ALWAYS);
    holds("tokens, a split", exact(rounds, 2), 10_000, &[Won, StoredFirst, SplitWon]);
    if is_large() {
        let renewals = exact(APART.with(Budget { renewals: 1, ..NONE }), 2);
        let passing = [&TOKENS_ALWAYS[..], &[Renewed]].concat();
        let three = THREE.fenced([0; 3]);
        holds("tokens, asked twice, a lease of two ticks", exact(again, 2), 200_000, &[Won]);
        let apart = exact(APART.with(Budget { rounds: 1, ..NONE }), 2);
        holds("a split, counters apart", apart, 100_000, &[Won, StoredFirst, SplitWon]);
        holds("renewed, counters apart", renewals, 300_000, &passing);
        holds("tokens, three clients", exact(three, 1), 500_000, &TOKENS_ALWAYS);
    }
}

#[test]
fn tokens_rise_while_connections_break() {
    let cuts = Budget { cuts: 1, ..NONE };
    holds("tokens, a connection breaks", exact(EQUAL.with(cuts), 1), 10_000, &TOKENS_ALWAYS);
    if is_large() {
        let apart = exact(APART.with(cuts), 2);
        holds("a connection breaks, counters apart", apart, 500_000, &TOKENS_ALWAYS);
    }
}

/// The floor makes up for what is lost: it is above every token that was handed out before the
/// quarantine.
#[test]
fn tokens_rise_while_voters_forget() {
    let passing = [&TOKENS_ALWAYS[..], &[NotCounted, Behind]].concat();
    let one = EQUAL.with(Budget { amnesias: 1, ..NONE });
    let two = EQUAL.with(Budget { amnesias: 2, ..NONE });
    holds("two forget", exact(two, 1).clock(RUNS), 100_000, &passing);
    if is_large() {
        let held = Bounds { fenced: true, ..BARELY_HELD };
        let held = exact(held.with(Budget { renewals: 1, amnesias: 1, ..NONE }), 2);
        holds("a voter forgets, a lease of two", exact(one, 2).clock(RUNS), 200_000, &passing);
        holds("two forget, a lease of two ticks", exact(two, 2).clock(RUNS), 500_000, &passing);
        holds("held, renewed, a voter forgets", held.clock(RUNS), 100_000, &[Renewed]);
    }
}

/// One voter that forgets is enough where the hold had a bare majority; with the rule a majority of
/// them is not.
#[test]
fn the_restart_rule_is_what_keeps_forgetful_voters_from_breaking_exclusion() {
    for amnesias in [1, 2] {
        let rules = Rules::kept(TWO.with(Budget { amnesias, ..NONE })).lease(2, 1);
        finds("no restart rule", Rules { quarantine: 0, ..rules }, EXCLUSION);
        holds("the restart rule", rules, 10_000, &[Won, NotCounted]);
    }
}

/// What comes out at the quarantine's end must be no hold's vote any more: the shortest that will
/// do is a hold's validity.
#[test]
fn a_quarantine_shorter_than_the_validity_breaks_exclusion() {
    let rules = Rules::kept(TWO.with(Budget { amnesias: 1, ..NONE }));
    finds("short quarantine", Rules { quarantine: rules.validity() - 1, ..rules }, EXCLUSION);
    let enough = Rules { quarantine: rules.validity(), ..rules };
    holds("shortest quarantine", enough, 20_000, &[Won, NotCounted]);
    let held = exact(BARELY_HELD.with(Budget { amnesias: 1, ..NONE }), 2);
    for quarantine in [0, 1] {
        finds("short quarantine of a hold", Rules { quarantine, ..held }, EXCLUSION);
    }
}

/// A vote that an attempt heard before the voter forgot still counts for the attempt; and the voter
/// may have it no more when the standing hold asks for it in exchange for one that expires.
#[test]
fn a_renewal_that_counts_any_voter_in_quarantine_breaks_exclusion() {
    let once = Budget { renewals: 1, amnesias: 1, ..NONE };
    for rules in [Rules::kept(TWO.with(once)), exact(BARELY_HELD.with(once), 2)] {
        finds("renewal", Rules { renewal_counts: RenewalCounts::Always, ..rules }, EXCLUSION);
    }
}

#[test]
fn each_rule_is_needed() {
    let two = |budget| Rules::kept(TWO.with(budget));
    let held = |budget| exact(HELD.patient().with(budget), 2);
    let renewed = two(Budget { renewals: 1, ..NONE });
    let restarted = two(Budget { restarts: 1, ..NONE });
    let twice = held(Budget { renewals: 2, amnesias: 1, ..NONE });
    let both = held(Budget { renewals: 1, amnesias: 2, ..NONE });
    let reused = Rules::kept(Bounds::of([2, 0, 0]).with(Budget { cuts: 1, ..NONE }));
    let apart = exact(APART, 1);
    for (broken, rules, property) in [
        (Broken::TrustFromTheReply, two(NONE), EXCLUSION),
        (Broken::RenewalTakesOver, renewed, EXCLUSION),
        // In that tick, but before it forgot, the voter may have voted for somebody else.
        (Broken::ProofToTheLastTick, twice, EXCLUSION),
        // The voter forgets that vote too, and ada has proof that she had the one before; ben has
        // yet to learn of it.
        (Broken::JudgedWhenHeard, both, EXCLUSION),
        // The votes are there again, but another hold came and went since.
        (Broken::RenewalAfterTheDeadline, renewed, UNINTERRUPTED),
        (Broken::UndoNotRepeated, restarted, NO_LEAK),
        (Broken::UndoNotRepeated, restarted, FREE),
        (Broken::ReleaseOfAnybody, two(NONE), BACKED),
        (Broken::NumbersReused, reused, BACKED),
        (Broken::NoWriteBack, apart, TOKENS),
        (Broken::WriteBackNotAwaited, apart, TOKENS),
        (Broken::LowestAnswer, apart, TOKENS),
        // Ben has the vote, and was told the counter before it was raised: he knows nothing of it.
        (Broken::RaisedUnderAnother, exact(APART.patient(), 2), TOKENS),
        // Where the third voter is silent, one that granted less has to be raised.
        (Broken::RaisedElsewhere, apart, HEALS),
    ] {
        finds(&format!("{broken:?}"), rules.breaking(broken), property);
    }
    let forgets = EQUAL.with(Budget { amnesias: 1, ..NONE });
    finds("no floor", exact(forgets, 1), TOKENS);
}

/// Three clients that have the old voters alone, both, and the new ones alone.
#[test]
fn a_step_that_is_skipped_breaks_exclusion() {
    for change in [Change::of(2, 1), Change::of(0, 1), Change::of(2, 0)] {
        let skipped = exact(TWO.changing(change), 2).breaking(Broken::StepSkipped);
        finds("a step is skipped", skipped, EXCLUSION);
    }
}

/// By more than it goes on in a quarantine.
#[test]
fn a_token_falls_where_a_voter_forgets_a_counter_that_ran_ahead_of_the_clock() {
    let ahead = |by: u8| {
        let counter = RUNS.floors[0] + by;
        let bounds = Bounds::of([1, 0, 0]).fenced([0, counter, counter]);
        exact(bounds.with(Budget { amnesias: 1, ..NONE }), 1).clock(RUNS)
    };
    holds("as the clock", ahead(0), 500, &[Won, NotCounted]);
    finds("ahead", ahead(RUNS.step), TOKENS);
}

/// One voter to three, three to one, one after another, and two in the place of one.
const CHANGES: [Change; 4] =
    [Change::of(2, 1), Change::of(0, 1), Change::of(2, 0), Change::of(1, 1)];

/// Clients that go from the old voters over both sets to the new voters, each at any time that the
/// rule allows.
#[test]
fn clients_exclude_each_other_while_the_voters_are_changed() {
    let passing = [Won, HandedOver, WonOld, WonJoint, WonNew];
    for change in CHANGES {
        let renewals = TWO.busy(2).changing(change).with(Budget { renewals: 1, ..NONE });
        holds("changed, one renewal", exact(renewals, 2), 50_000, &passing);
        let amnesias = TWO.changing(change).with(Budget { amnesias: 1, ..NONE });
        holds("changed, a voter forgets", exact(amnesias, 1), 5_000, &passing);
        if is_large() {
            let again = TWO_AND_AGAIN.changing(change);
            holds("changed, asked twice", exact(again, 2), 200_000, &passing);
            let deaths = TWO_AND_AGAIN.changing(change).with(Budget { deaths: 1, ..NONE });
            holds("changed, a client dies", exact(deaths, 1), 200_000, &passing);
            let both = Budget { renewals: 1, amnesias: 1, ..NONE };
            let amnesias = TWO.changing(change).with(both);
            holds("changed, renewed, a voter forgets", exact(amnesias, 2), 200_000, &passing);
            let bounds = TWO_AND_AGAIN.changing(change).with(Budget { cuts: 1, ..NONE });
            holds("changed, a connection breaks", exact(bounds, 1), 20_000, &passing);
            let three = THREE.changing(change);
            holds("changed, three clients", exact(three, 1), 20_000, &passing);
        }
    }
}

/// From one step to the next the counters do the work alone: each hold that comes later shares a
/// voter with each that came before.
#[test]
fn tokens_rise_from_one_step_of_a_change_to_the_next() {
    for (from, to) in [(Sets::Old, Sets::Joint), (Sets::Joint, Sets::New)] {
        for change in CHANGES.map(|change| Change { from, to, ..change }) {
            let attempts = if is_large() { TWO_AND_AGAIN } else { TWO };
            let bounds = attempts.fenced([0; 3]).changing(change);
            holds("tokens, the voters are changed", exact(bounds, 1), 2_000, &[Won, WonJoint]);
        }
    }
}
