//! Holds, tokens and voters that forget as a small model, of which every state is looked at: all
//! orders of all messages between two or three clients and three voters, with a few faults of every
//! kind.
//!
//! What a client makes of what it hears is decided by `proto` (`judge.rs`); what a
//! voter does follows `lua/` step by step (`voter.rs`). `tests/proofs/model.md` says what it leaves
//! out.

mod client;
mod judge;
mod moves;
mod properties;
mod requests;
mod rules;
mod state;
mod voter;

use crate::{
    change::{CHANGES, Change, Sets},
    check::{finds, holds, is_large, large},
};
use properties::{BACKED, EXCLUSION, FREE, HEALS, NO_LEAK, TOKENS, UNINTERRUPTED};
use rules::{Bounds, Broken, Budget, Clock, Rules, Start};

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

/// Without drift, in a lease of so many ticks.
fn exact(bounds: Bounds, lease: u8) -> Rules {
    Rules::kept(bounds).lease(lease, 0)
}

#[test]
fn two_clients_exclude_each_other_while_connections_break() {
    let bounds = TWO.with(Budget { renewals: 1, cuts: 1, ..NONE });
    holds("connections break", Rules::kept(bounds), 246_911);
    large("connections of both break", Rules::kept(bounds.busy(2)), 637_569);
    let again = TWO_AND_AGAIN.with(Budget { cuts: 1, ..NONE }).busy(2);
    large("connections break, asked twice", Rules::kept(again), 1_394_176);
}

#[test]
fn two_clients_exclude_each_other_while_voters_restart() {
    let bounds = TWO.with(Budget { renewals: 1, restarts: 1, ..NONE });
    holds("a voter restarts", Rules::kept(bounds), 69_379);
}

#[test]
fn two_clients_exclude_each_other_while_voters_forget() {
    let once = TWO.with(Budget { renewals: 1, amnesias: 1, ..NONE });
    holds("a voter forgets", Rules::kept(once), 240_835);
    let both = TWO.with(Budget { renewals: 1, amnesias: 2, ..NONE });
    large("a majority forgets", Rules::kept(both), 892_410);
    let twice = TWO.with(Budget { renewals: 2, amnesias: 1, ..NONE }).busy(2);
    large("a voter forgets, two renewals", Rules::kept(twice), 1_833_432);
    let again = TWO_AND_AGAIN.with(Budget { amnesias: 1, ..NONE });
    large("a voter forgets, asked twice", Rules::kept(again), 592_193);
}

#[test]
fn a_hold_that_stands_excludes_others_while_voters_forget() {
    let budget = |renewals, amnesias| Budget { renewals, amnesias, ..NONE };
    let run = |bounds: Bounds, budget| exact(bounds.with(budget), 2);
    holds("barely held", run(BARELY_HELD, budget(1, 1)), 54_259);
    holds("held, two renewals", run(HELD, budget(2, 1)), 193_281);
    holds("held, a majority forgets", run(HELD, budget(1, 2)), 85_222);
    large("free, two renewals", run(TWO.busy(2), budget(2, 1)), 1_288_234);
    large("barely held, three renewals", run(BARELY_HELD, budget(3, 1)), 1_265_561);
    large("held, two forget", run(HELD, budget(2, 2)), 879_536);
    large("barely held, two forget", run(BARELY_HELD, budget(2, 2)), 1_736_863);
}

#[test]
fn a_client_that_dies_leaves_nothing_that_outlives_its_lease() {
    let dies = Budget { deaths: 1, ..NONE };
    holds("a client dies", Rules::kept(TWO.with(dies)), 23_644);
    large("a client dies and asks again", Rules::kept(TWO_AND_AGAIN.with(dies)), 636_473);
}

#[test]
fn a_client_that_asks_again_is_not_hit_by_its_own_undo() {
    holds("asked twice", Rules::kept(TWO_AND_AGAIN), 72_307);
}

#[test]
fn three_clients_exclude_each_other() {
    holds("three clients", Rules::kept(THREE).lease(2, 1), 93_154);
    large("three clients, a longer lease", Rules::kept(THREE), 637_409);
}

#[test]
fn the_leader_of_a_split_may_win_it() {
    let round = Budget { rounds: 1, ..NONE };
    holds("a split", Rules::kept(TWO.with(round)), 32_420);
    large("a split of three", Rules::kept(THREE.with(round)).lease(2, 1), 948_710);
}

#[test]
fn tokens_rise_from_one_hold_to_the_next() {
    holds("equal counters", exact(EQUAL, 2), 14_979);
    holds("counters apart", exact(APART, 2), 80_207);
    large("all counters apart", exact(EQUAL.fenced([0, 1, 2]), 2), 166_662);
    // Ben's clock is ahead of ada's.
    let clock = Clock { floors: [0, 2, 0], step: 0 };
    holds("clocks apart", exact(EQUAL, 2).clock(clock), 10_996);
}

#[test]
fn a_block_of_numbers_is_above_all_that_was_given_before() {
    holds("blocks", exact(EQUAL, 2).blocks(2), 14_979);
    holds("blocks, counters apart", exact(APART, 2).blocks(2), 72_466);
    let clock = Clock { floors: [0, 2, 0], step: 0 };
    holds("blocks, clocks apart", exact(EQUAL, 2).clock(clock).blocks(2), 16_086);
    finds("overlap", exact(EQUAL, 2).blocks(2).breaking(Broken::BlocksOverlap), TOKENS);
    // A hold uses up twice as many numbers.
    let runs = Clock { floors: RUNS.floors, step: 2 * RUNS.step };
    let two = exact(EQUAL.with(Budget { amnesias: 2, ..NONE }), 1).clock(runs).blocks(2);
    holds("blocks, two forget", two, 84_458);
}

#[test]
fn tokens_rise_while_holds_renew_and_attempts_ask_again() {
    let (again, round) = (TWO_AND_AGAIN.fenced([0; 3]), Budget { rounds: 1, ..NONE });
    holds("tokens, asked twice", exact(again, 1), 54_553);
    holds("tokens, a split", exact(EQUAL.with(round), 2), 48_930);
    large("tokens, asked twice, a lease of two ticks", exact(again, 2), 287_709);
    large("a split, counters apart", exact(APART.with(round), 2), 242_174);
    let renewed = APART.with(Budget { renewals: 1, ..NONE });
    large("renewed, counters apart", exact(renewed, 2), 350_128);
    large("tokens, three clients", exact(THREE.fenced([0; 3]), 1), 576_656);
}

#[test]
fn tokens_rise_while_connections_break() {
    let cuts = Budget { cuts: 1, ..NONE };
    holds("tokens, a connection breaks", exact(EQUAL.with(cuts), 1), 34_986);
    large("a connection breaks, counters apart", exact(APART.with(cuts), 2), 1_042_560);
}

/// The floor makes up for what is lost: it is above every token that was handed out before the
/// quarantine.
#[test]
fn tokens_rise_while_voters_forget() {
    let one = EQUAL.with(Budget { amnesias: 1, ..NONE });
    let two = EQUAL.with(Budget { amnesias: 2, ..NONE });
    holds("two forget", exact(two, 1).clock(RUNS), 105_509);
    large("a voter forgets, a lease of two", exact(one, 2).clock(RUNS), 241_798);
    large("two forget, a lease of two ticks", exact(two, 2).clock(RUNS), 623_544);
    let held = Bounds { fenced: true, ..BARELY_HELD };
    let held = exact(held.with(Budget { renewals: 1, amnesias: 1, ..NONE }), 2);
    large("held, renewed, a voter forgets", held.clock(RUNS), 133_090);
}

/// One voter that forgets is enough where the hold had a bare majority; with the rule a majority of
/// them is not.
#[test]
fn the_restart_rule_is_what_keeps_forgetful_voters_from_breaking_exclusion() {
    for (amnesias, at_least) in [(1, 12_478), (2, 35_681)] {
        let rules = Rules::kept(TWO.with(Budget { amnesias, ..NONE })).lease(2, 1);
        finds("no restart rule", Rules { quarantine: 0, ..rules }, EXCLUSION);
        holds("the restart rule", rules, at_least);
    }
}

/// What comes out at the quarantine's end must be no hold's vote any more: the shortest that will
/// do is a hold's validity.
#[test]
fn a_quarantine_shorter_than_the_validity_breaks_exclusion() {
    let rules = Rules::kept(TWO.with(Budget { amnesias: 1, ..NONE }));
    finds("short quarantine", Rules { quarantine: rules.validity() - 1, ..rules }, EXCLUSION);
    holds("shortest quarantine", Rules { quarantine: rules.validity(), ..rules }, 56_904);
    let held = exact(BARELY_HELD.with(Budget { amnesias: 1, ..NONE }), 2);
    for quarantine in [0, 1] {
        finds("short quarantine of a hold", Rules { quarantine, ..held }, EXCLUSION);
    }
}

#[test]
fn each_rule_is_needed() {
    let two = |budget| Rules::kept(TWO.with(budget));
    let held = |budget| exact(HELD.patient().with(budget), 2);
    let once = Budget { renewals: 1, amnesias: 1, ..NONE };
    let renewed = two(Budget { renewals: 1, ..NONE });
    let restarted = two(Budget { restarts: 1, ..NONE });
    let twice = held(Budget { renewals: 2, ..once });
    let both = held(Budget { amnesias: 2, ..once });
    let reused = Rules::kept(Bounds::of([2, 0, 0]).with(Budget { cuts: 1, ..NONE }));
    let apart = exact(APART, 1);
    for (broken, rules, property) in [
        (Broken::TrustFromTheReply, two(NONE), EXCLUSION),
        // A vote that an attempt heard before the voter forgot still counts for the attempt; and
        // the voter may have it no more when the standing hold asks for it in exchange for one
        // that expires.
        (Broken::AnyRenewalCounts, two(once), EXCLUSION),
        (Broken::AnyRenewalCounts, exact(BARELY_HELD.with(once), 2), EXCLUSION),
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
    holds("as the clock", ahead(0), 1441);
    finds("ahead", ahead(RUNS.step), TOKENS);
}

/// Clients that go from the old voters over both sets to the new voters, each at any time that the
/// rule allows.
#[test]
fn clients_exclude_each_other_while_the_voters_are_changed() {
    let counts = [(349_077, 60_833), (451_751, 81_419), (96_250, 32_780), (206_104, 71_939)];
    for (change, (renewed, forgetful)) in CHANGES.into_iter().zip(counts) {
        let (two, again) = (TWO.changing(change), TWO_AND_AGAIN.changing(change));
        let renews = Budget { renewals: 1, ..NONE };
        holds("changed, one renewal", exact(two.busy(2).with(renews), 2), renewed);
        let forgets = Budget { amnesias: 1, ..NONE };
        holds("changed, a voter forgets", exact(two.with(forgets), 1), forgetful);
        large("changed, asked twice", exact(again, 2), 200_000);
        let dies = Budget { deaths: 1, ..NONE };
        large("changed, a client dies", exact(again.with(dies), 1), 200_000);
        let both = Budget { renewals: 1, ..forgets };
        large("changed, renewed, a voter forgets", exact(two.with(both), 2), 200_000);
        let cuts = Budget { cuts: 1, ..NONE };
        large("changed, a connection breaks", exact(again.with(cuts), 1), 20_000);
        large("changed, three clients", exact(THREE.changing(change), 1), 20_000);
    }
}

/// From one step to the next the counters do the work alone: each hold that comes later shares a
/// voter with each that came before.
#[test]
fn tokens_rise_from_one_step_of_a_change_to_the_next() {
    let steps = [
        ((Sets::Old, Sets::Joint), [8_185, 33_812, 5_412, 14_619]),
        ((Sets::Joint, Sets::New), [30_075, 21_227, 13_683, 24_819]),
    ];
    let attempts = if is_large() { TWO_AND_AGAIN } else { TWO };
    for (steps, counts) in steps {
        for (change, at_least) in CHANGES.into_iter().zip(counts) {
            let bounds = Bounds { steps, ..attempts.fenced([0; 3]).changing(change) };
            holds("tokens, the voters are changed", exact(bounds, 1), at_least);
        }
    }
}

/// The model finds bugs of the library's own decisions too.
#[cfg(quorate_mutants)]
#[test]
fn bugs_of_proto_break_what_they_break() {
    let held =
        |bounds: Bounds, renewals| exact(bounds.with(Budget { renewals, amnesias: 1, ..NONE }), 2);
    let two = Rules::kept(TWO);
    for (mutant, rules, property) in [
        ("quarantine_of_half_the_length", held(BARELY_HELD, 0), EXCLUSION),
        ("grant_in_quarantine_is_proof", held(BARELY_HELD.patient(), 2), EXCLUSION),
        ("majority_of_the_answered", two, EXCLUSION),
        ("no_drift", two, EXCLUSION),
        ("undoes_known_grants", two, NO_LEAK),
        ("undoes_known_grants", two, FREE),
    ] {
        finds(mutant, rules.mutant(mutant), property);
    }
    // Where the sets share a voter that both need, no hold comes in beside another.
    for change in CHANGES.into_iter().filter(|change| (change.only_new, change.both) != (1, 1)) {
        let one = exact(TWO.changing(change), 2).mutant("one_set_decides");
        finds("one_set_decides", one, EXCLUSION);
    }
}
