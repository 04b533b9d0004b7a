//! The queue of fair locks, and the read/write lock, as a small model, of which every state is
//! looked at: who reads, writes and waits on three voters, in all orders of all messages, with a
//! few faults of every kind. A fair mutex is a lock that all want to write.
//!
//! What a place makes of what it hears is decided by `proto` (`judge.rs`); what a
//! voter does follows `lua/rw.lua` (`voter.rs`). `tests/proofs/model.md` says what it leaves out.

mod fair;
mod hold;
mod judge;
mod moves;
mod order;
mod properties;
mod requests;
mod rest;
mod rules;
mod state;
mod voter;
mod waiter;

use crate::check::{finds, holds, is_large, large};
#[cfg(quorate_mutants)]
use fair::BEHIND_BEN;
use fair::{BEHIND_ADA, TWO};
use properties::{ALL_ENTER, EXCLUSION, HEAD_WINS, NOTHING_LEFT, ORDER, OWN_DEADLINE, UNPARTED};
use rules::{Bounds, Broken, Budget, Rules, Start, Turn, Wish};

const WRITE: Option<Wish> = Some(Wish::Write);
/// Readers by their preference: before all writers, in turn, and behind all writers.
const FIRST: Option<Wish> = Some(Wish::Read(Turn::First));
const NEXT: Option<Wish> = Some(Wish::Read(Turn::Next));
const LAST: Option<Wish> = Some(Wish::Read(Turn::Last));
const NONE: Budget = Budget::NONE;

/// Of two with the same ticket ada is the first.
const fn two(ada: Option<Wish>, ben: Option<Wish>) -> Bounds {
    Bounds::of([ada, ben, None])
}

/// Nobody has the lock yet.
const fn free(ada: Option<Wish>, ben: Option<Wish>) -> Bounds {
    two(ada, ben).from(Start::Free)
}

/// One who writes beside one with each of the four wishes, in the order in which `model.md` has
/// them, with at least so many states each; the first `slow` of them only where there is time.
fn pairs(name: &str, slow: usize, bounds: impl Fn(Bounds) -> Bounds, at_least: [usize; 4]) {
    for (at, ben) in [WRITE, FIRST, NEXT, LAST].into_iter().enumerate() {
        if at >= slow || is_large() {
            let rules = Rules::kept(bounds(two(WRITE, ben)));
            holds(&format!("{name}: a write, and {ben:?}"), rules, at_least[at]);
        }
    }
}

#[test]
fn two_users_come_in_in_their_order() {
    let ahead = |place, bids| move |two: Bounds| two.from(Start::Queued(place)).bids([bids; 4]);
    let free = |two: Bounds| two.from(Start::Free).bids([2; 4]);
    pairs("free", 0, free, [1_426, 1_362, 1_426, 1_362]);
    pairs("the writer ahead", 0, ahead(0, 1), [1_092, 979, 1_092, 401]);
    pairs("the other ahead", 0, ahead(1, 1), [1_129, 401, 1_129, 979]);
    pairs("the writer ahead, two bids", 3, ahead(0, 2), [20_223, 15_624, 20_279, 9_692]);
    pairs("the other ahead, two bids", 2, ahead(1, 2), [18_945, 9_692, 18_945, 15_624]);
    pairs("two bids", 3, |two| two.bids([2; 4]), [175_020, 26_730, 176_223, 26_730]);
    holds("read last, read in turn", Rules::kept(two(LAST, NEXT)), 15_422);
}

#[test]
fn one_voter_is_a_majority() {
    let budget = Budget { renewals: 1, passes: 1, reads: 1, ..NONE };
    for (users, at_least, all) in [
        ([WRITE, FIRST, LAST], 3_337, 30_000),
        ([WRITE, NEXT, WRITE], 14_603, 102_687),
        ([LAST, FIRST, WRITE], 3_337, 30_000),
    ] {
        let one = Bounds { voters: 1, ..Bounds::of(users).bids([2; 4]) };
        holds(&format!("one voter: {users:?}"), Rules::kept(one), at_least);
        large(&format!("one voter, all: {users:?}"), Rules::kept(one.with(budget)), all);
    }
}

/// Each has another preference, and nobody waits for another for good.
#[test]
fn three_users_of_all_preferences_come_in() {
    let behind = |users| Rules::kept(Bounds::of(users).from(Start::Queued(0)));
    let free = |users| Rules::kept(Bounds::of(users).from(Start::Free));
    holds("write, read last, read first", behind([WRITE, LAST, FIRST]), 32_915);
    large("read last, write, read in turn", behind([LAST, WRITE, NEXT]), 1_112_494);
    large("read in turn, read first, write", behind([NEXT, FIRST, WRITE]), 125_377);
    large("free: write, read last, read first", free([WRITE, LAST, FIRST]), 192_224);
    large("free: read last, write, read in turn", free([LAST, WRITE, NEXT]), 670_788);
    large("free: read in turn, read first, write", free([NEXT, FIRST, WRITE]), 425_752);
}

#[test]
fn nobody_writes_beside_another_while_connections_break_and_clients_die() {
    let free = |budget| move |two: Bounds| two.from(Start::Free).with(budget);
    let (cuts, dies) = (Budget { cuts: 1, ..NONE }, Budget { deaths: 1, ..NONE });
    pairs("a connection breaks", 3, free(cuts), [12_087, 11_384, 12_087, 11_384]);
    pairs("a client dies", 3, free(dies), [17_496, 15_125, 17_496, 15_125]);
    let late = Budget { timeouts: 1, ..cuts };
    let counts = [251_094, 157_366, 257_963, 167_734];
    pairs("a connection breaks, an answer is late", 4, free(late), counts);
    for ben in [FIRST, LAST] {
        large("who waits dies", Rules::kept(two(WRITE, ben).with(dies)), 175_724);
    }
}

#[test]
fn nobody_writes_beside_another_while_answers_are_late_and_entries_lapse() {
    let ahead = |budget| move |two: Bounds| two.from(Start::Queued(0)).with(budget);
    let lapses = Budget { lapses: 1, ..NONE };
    pairs("an entry lapses", 0, ahead(lapses), [9_535, 4_285, 9_537, 2_380]);
    let late = Budget { timeouts: 1, leaves: 1, ..NONE };
    pairs("an answer is late", 3, ahead(late), [35_147, 20_436, 35_406, 12_014]);
    let counts = [969_190, 60_222, 982_517, 60_222];
    pairs("an entry lapses, all wait", 4, |two| two.with(lapses), counts);
}

#[test]
fn nobody_writes_beside_another_while_voters_restart_and_forget() {
    let free = |budget| move |two: Bounds| two.from(Start::Free).with(budget);
    let (restarts, forgets) = (Budget { restarts: 1, ..NONE }, Budget { amnesias: 1, ..NONE });
    pairs("a voter restarts", 0, free(restarts), [3_369, 3_229, 3_369, 3_229]);
    pairs("a voter forgets", 3, free(forgets), [12_436, 12_009, 12_436, 12_009]);
    let late = Budget { timeouts: 1, ..restarts };
    let counts = [62_843, 37_087, 62_303, 40_200];
    pairs("a voter restarts, an answer is late", 4, free(late), counts);
    let late = Budget { timeouts: 1, ..forgets };
    let counts = [201_002, 126_095, 198_189, 133_774];
    pairs("a voter forgets, an answer is late", 4, free(late), counts);
}

#[test]
fn a_renewal_moves_the_own_deadline_only() {
    let budget = Budget { renewals: 1, passes: 1, ..NONE };
    for (ada, ben, [renewed, cut, forgotten]) in
        [(NEXT, WRITE, [13_514, 196_249, 542_241]), (WRITE, LAST, [12_601, 100_000, 100_000])]
    {
        let rules = |budget| Rules::kept(free(ada, ben).with(budget));
        holds(&format!("renewal: {ada:?}"), rules(budget), renewed);
        large(&format!("renewal, cut: {ada:?}"), rules(Budget { cuts: 1, ..budget }), cut);
        let forgets = rules(Budget { amnesias: 1, ..budget });
        large(&format!("renewal, forgets: {ada:?}"), forgets, forgotten);
    }
    let three = Bounds::of([NEXT, LAST, WRITE]).from(Start::Held(0)).with(budget);
    large("renewal: read, read, write", Rules::kept(three), 201_729);
}

#[test]
fn a_write_becomes_a_read_and_nobody_writes_in_between() {
    let budget = Budget { reads: 1, passes: 1, ..NONE };
    let renews = Budget { renewals: 1, ..budget };
    let held = |budget| move |two: Bounds| two.from(Start::Held(0)).with(budget);
    pairs("downgrade", 0, held(budget), [4_527, 4_967, 4_967, 4_967]);
    let free = |two: Bounds| two.from(Start::Free).with(renews);
    pairs("downgrade, renewal", 4, free, [330_156, 203_880, 226_345, 210_339]);
    let counts = [869_494, 1_080_264, 1_080_264, 1_080_264];
    pairs("downgrade, renewal, cut", 4, held(Budget { cuts: 1, ..renews }), counts);
    let three = held(budget)(Bounds::of([WRITE, LAST, WRITE]));
    large("downgrade: of three", Rules::kept(three), 372_307);
    let forgets = held(Budget { amnesias: 1, ..budget })(two(WRITE, WRITE));
    large("downgrade, forgets", Rules::kept(forgets), 33_342);
}

#[test]
fn each_rule_is_needed() {
    let lapses = BEHIND_ADA.with(Budget { lapses: 1, ..NONE });
    let leaves = TWO.with(Budget { leaves: 1, ..NONE });
    let dies = TWO.with(Budget { deaths: 1, ..NONE });
    let ben_tries = Bounds { tries: [false, true, false, false], ..TWO };
    let reads_first = two(WRITE, FIRST).bids([2; 4]).from(Start::Queued(1));
    let held = Bounds::of([NEXT, LAST, WRITE]).from(Start::Held(0));
    let reads = Budget { reads: 1, ..NONE };
    let renews = Budget { renewals: 1, passes: 1, ..NONE };
    let forgets = |ben| free(WRITE, ben).with(Budget { amnesias: 1, ..NONE });
    for (broken, bounds, property) in [
        // Ben gets the vote of 3 before ada's request is there. Then she stands on all three; her
        // entry on 2 lapses, and ben gets that vote too. She stood on a majority at every moment,
        // but not on one.
        (Broken::AnyMajority, lapses, ORDER),
        (Broken::OrderOfArrival, TWO, HEAD_WINS),
        (Broken::TakenOutAtGrant, BEHIND_ADA, ORDER),
        (Broken::TakenOutAtGrant, reads_first, ORDER),
        (Broken::UndoDropsPlace, BEHIND_ADA, ORDER),
        (Broken::Barging, TWO, ORDER),
        (Broken::Barging, ben_tries, ORDER),
        (Broken::LeavesWhereGranted, leaves, NOTHING_LEFT),
        (Broken::LeavesWhereGranted, leaves, HEAD_WINS),
        (Broken::LeavesWhereGranted, leaves, ALL_ENTER),
        (Broken::StaleMark, dies, HEAD_WINS),
        (Broken::StaleMark, dies, ALL_ENTER),
        (Broken::NoQuarantine, forgets(WRITE), EXCLUSION),
        (Broken::NoQuarantine, forgets(LAST), EXCLUSION),
        (Broken::SharedDeadline, free(NEXT, LAST), OWN_DEADLINE),
        (Broken::SharedDeadline, held, EXCLUSION),
        // Ada waits for ben, who came before her, and ben for her, as for every writer.
        (Broken::AskersChoice, two(WRITE, LAST), ALL_ENTER),
        (Broken::IgnoresReaders, free(WRITE, LAST), EXCLUSION),
        (Broken::RenewalTakesOver, free(NEXT, WRITE).with(renews), EXCLUSION),
        (Broken::RenewalTakesOver, free(WRITE, WRITE).with(renews), EXCLUSION),
        (Broken::ReleasedFirst, free(WRITE, WRITE).with(reads), UNPARTED),
        // What the voters grant says nothing about the time before: only the own clock does.
        (
            Broken::ReadOutlivesLoss,
            free(WRITE, WRITE).with(Budget { passes: 1, ..reads }),
            UNPARTED,
        ),
    ] {
        finds(&format!("{broken:?}"), Rules::broken(broken, bounds), property);
    }
}

#[cfg(quorate_mutants)]
#[test]
fn a_ticket_that_is_raised_after_it_was_fixed_breaks_the_order() {
    finds("ticket raised", Rules::broken(Broken::TicketRaised, BEHIND_BEN.bids([3; 4])), ORDER);
}
