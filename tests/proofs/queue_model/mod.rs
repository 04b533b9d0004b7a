//! The queue of fair locks, and the read/write lock, as a small model, of which every state is
//! looked at: who reads, writes and waits on three voters, in all orders of all messages, with a
//! few faults of every kind. A fair mutex is a lock that all want to write.
//!
//! What a place makes of what it hears is decided by `proto` (`judge.rs`); what a
//! voter does follows `lua/rw` (`voter.rs`). `tests/proofs/model.md` says what it leaves out.

mod fair;
mod hold;
mod judge;
mod kind;
mod landmarks;
mod moves;
mod order;
mod properties;
mod requests;
mod rest;
mod rules;
mod state;
mod tell;
mod voter;
mod waiter;

use crate::check::{finds, holds, is_large};
use landmarks::Landmark::{
    BidAtOnce, Downgraded, Lapsed, LostAtItsDeadline, NotCounted, Renewed, Together, VoteRegained,
    Won, WonInTurn,
};
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

/// The four ways in which two can want the lock of whom one writes.
const PAIRS: [(&str, Option<Wish>, Option<Wish>); 4] = [
    ("write, write", WRITE, WRITE),
    ("write, read first", WRITE, FIRST),
    ("write, read in turn", WRITE, NEXT),
    ("write, read last", WRITE, LAST),
];

#[test]
fn two_users_come_in_in_their_order() {
    for (name, ada, ben) in PAIRS {
        let again = free(ada, ben).bids([2; 4]);
        holds(&format!("free: {name}"), Rules::kept(again), 1_000, &[Won, BidAtOnce]);
        for ahead in [0, 1] {
            let behind = two(ada, ben).from(Start::Queued(ahead));
            holds(&format!("{ahead} ahead: {name}"), Rules::kept(behind), 400, &[BidAtOnce]);
            if is_large() || ben == LAST && ahead == 0 {
                let name = format!("{ahead} ahead, two bids: {name}");
                holds(&name, Rules::kept(behind.bids([2; 4])), 8_000, &[Won, BidAtOnce]);
            }
        }
        if is_large() {
            let taken = two(ada, ben).bids([2; 4]);
            holds(&format!("two bids: {name}"), Rules::kept(taken), 10_000, &[Won, BidAtOnce]);
        }
    }
    let in_turn = two(WRITE, NEXT).from(Start::Queued(1)).bids([2; 4]);
    holds("a reader in turn is ahead", Rules::kept(in_turn), 10_000, &[Won, WonInTurn]);
    holds("read last, read in turn", Rules::kept(two(LAST, NEXT)), 10_000, &[Won, Together]);
}

#[test]
fn one_voter_is_a_majority() {
    let budget = Budget { renewals: 1, passes: 1, reads: 1, ..NONE };
    for (name, users) in [
        ("write, read first, read last", [WRITE, FIRST, LAST]),
        ("write, read in turn, write", [WRITE, NEXT, WRITE]),
        ("read last, read first, write", [LAST, FIRST, WRITE]),
    ] {
        let one = Bounds { voters: 1, ..Bounds::of(users).bids([2; 4]) };
        holds(&format!("one voter: {name}"), Rules::kept(one), 3_000, &[Won]);
        let all = Bounds { voters: 1, ..Bounds::of(users).with(budget).bids([2; 4]) };
        if is_large() {
            let name = format!("one voter, all: {name}");
            holds(&name, Rules::kept(all), 30_000, &[Won, Renewed, Downgraded]);
        }
    }
}

/// Each has another preference, and nobody waits for another for good.
#[test]
fn three_users_of_all_preferences_come_in() {
    for (name, users) in [
        ("write, read last, read first", [WRITE, LAST, FIRST]),
        ("read last, write, read in turn", [LAST, WRITE, NEXT]),
        ("read in turn, read first, write", [NEXT, FIRST, WRITE]),
    ] {
        let behind = Bounds::of(users).from(Start::Queued(0));
        if is_large() || users[1] == LAST {
            let name = format!("three users: {name}");
            holds(&name, Rules::kept(behind), 30_000, &[Won, BidAtOnce]);
        }
        if is_large() {
            let free = Bounds::of(users).from(Start::Free);
            holds(&format!("three free: {name}"), Rules::kept(free), 100_000, &[Won, BidAtOnce]);
        }
    }
}

#[test]
fn nobody_writes_beside_another_while_connections_break_and_clients_die() {
    for (name, ada, ben) in PAIRS {
        let cuts = free(ada, ben).with(Budget { cuts: 1, ..NONE });
        let dies = free(ada, ben).with(Budget { deaths: 1, ..NONE });
        if is_large() || ben == LAST {
            holds(&format!("a connection breaks: {name}"), Rules::kept(cuts), 10_000, &[Won]);
            holds(&format!("a client dies: {name}"), Rules::kept(dies), 10_000, &[Won]);
        }
        if is_large() {
            let late = free(ada, ben).with(Budget { cuts: 1, timeouts: 1, ..NONE });
            let name = format!("a connection breaks, an answer is late: {name}");
            holds(&name, Rules::kept(late), 50_000, &[Won, BidAtOnce]);
        }
        if is_large() && (ben == FIRST || ben == LAST) {
            let waits = two(ada, ben).with(Budget { deaths: 1, ..NONE });
            holds(&format!("who waits dies: {name}"), Rules::kept(waits), 100_000, &[Won]);
        }
    }
}

#[test]
fn nobody_writes_beside_another_while_answers_are_late_and_entries_lapse() {
    for (name, ada, ben) in PAIRS {
        let behind = two(ada, ben).from(Start::Queued(0));
        let lapses = behind.with(Budget { lapses: 1, ..NONE });
        holds(&format!("an entry lapses: {name}"), Rules::kept(lapses), 1_000, &[BidAtOnce]);
        let late = behind.with(Budget { timeouts: 1, leaves: 1, ..NONE });
        if is_large() || ben == LAST {
            holds(&format!("an answer is late: {name}"), Rules::kept(late), 10_000, &[BidAtOnce]);
        }
        if is_large() {
            let lapses = two(ada, ben).with(Budget { lapses: 1, ..NONE });
            let name = format!("an entry lapses, all wait: {name}");
            holds(&name, Rules::kept(lapses), 50_000, &[Won, BidAtOnce]);
        }
    }
}

#[test]
fn nobody_writes_beside_another_while_voters_restart_and_forget() {
    for (name, ada, ben) in PAIRS {
        let restarts = free(ada, ben).with(Budget { restarts: 1, ..NONE });
        holds(&format!("a voter restarts: {name}"), Rules::kept(restarts), 1_000, &[Won]);
        let bounds = free(ada, ben).with(Budget { amnesias: 1, ..NONE });
        if is_large() || ben == LAST {
            let name = format!("a voter forgets: {name}");
            holds(&name, Rules::kept(bounds), 10_000, &[Won, NotCounted]);
        }
        if is_large() {
            let budget = Budget { timeouts: 1, ..NONE };
            let restarts = free(ada, ben).with(Budget { restarts: 1, ..budget });
            let name = format!("an answer is late: {name}");
            holds(&format!("a voter restarts, {name}"), Rules::kept(restarts), 30_000, &[Won]);
            let forgets = Rules::kept(free(ada, ben).with(Budget { amnesias: 1, ..budget }));
            holds(&format!("a voter forgets, {name}"), forgets, 100_000, &[Won, NotCounted]);
        }
        let without = Rules { quarantine: false, ..Rules::kept(bounds) };
        finds(&format!("no restart rule: {name}"), without, EXCLUSION);
    }
}

#[test]
fn a_renewal_moves_the_own_deadline_only() {
    for (name, ada, ben) in [("read, write", NEXT, WRITE), ("write, read", WRITE, LAST)] {
        let budget = Budget { renewals: 1, passes: 1, ..NONE };
        let bounds = free(ada, ben).with(budget);
        let passing = [Won, Renewed, VoteRegained, LostAtItsDeadline, Lapsed];
        holds(&format!("renewal: {name}"), Rules::kept(bounds), 10_000, &passing);
        if is_large() {
            let cuts = bounds.with(Budget { cuts: 1, ..budget });
            holds(&format!("renewal, cut: {name}"), Rules::kept(cuts), 100_000, &passing);
            let forgets = bounds.with(Budget { amnesias: 1, ..budget });
            holds(&format!("renewal, forgets: {name}"), Rules::kept(forgets), 100_000, &passing);
        }
    }
    let three = Bounds::of([NEXT, LAST, WRITE]).from(Start::Held(0));
    let three = three.with(Budget { renewals: 1, passes: 1, ..NONE });
    if is_large() {
        holds("renewal: read, read, write", Rules::kept(three), 10_000, &[Together, Renewed]);
    }
}

#[test]
fn a_write_becomes_a_read_and_nobody_writes_in_between() {
    for (name, ada, ben) in PAIRS {
        let held = free(ada, ben).from(Start::Held(0));
        let bounds = held.with(Budget { reads: 1, passes: 1, ..NONE });
        holds(&format!("downgrade: {name}"), Rules::kept(bounds), 1_000, &[Won, Downgraded]);
        if is_large() {
            let budget = Budget { reads: 1, passes: 1, renewals: 1, ..NONE };
            let all = free(ada, ben).with(budget);
            let name = format!("downgrade, renewal: {name}");
            holds(&name, Rules::kept(all), 100_000, &[Downgraded, Renewed]);
            let cuts = held.with(Budget { cuts: 1, ..budget });
            let name = format!("{name}, cut");
            holds(&name, Rules::kept(cuts), 100_000, &[Downgraded, Renewed]);
        }
    }
    if is_large() {
        let three = Bounds::of([WRITE, LAST, WRITE]).from(Start::Held(0));
        let three = three.with(Budget { reads: 1, passes: 1, ..NONE });
        holds("downgrade: of three", Rules::kept(three), 300_000, &[Downgraded, Together]);
        let forgets = free(WRITE, WRITE).from(Start::Held(0));
        let forgets = forgets.with(Budget { reads: 1, passes: 1, amnesias: 1, ..NONE });
        holds("downgrade, forgets", Rules::kept(forgets), 10_000, &[Downgraded, NotCounted]);
    }
}

#[test]
fn a_check_and_an_entry_in_two_steps_let_both_in() {
    finds("two steps", Rules::broken(Broken::TwoSteps, free(WRITE, LAST)), EXCLUSION);
}

#[test]
fn one_deadline_of_all_readers_is_moved_by_the_last_one() {
    let rules = Rules::broken(Broken::SharedDeadline, free(NEXT, LAST));
    finds("one deadline", rules, OWN_DEADLINE);
    let held = Bounds::of([NEXT, LAST, WRITE]).from(Start::Held(0));
    finds("one deadline", Rules::broken(Broken::SharedDeadline, held), EXCLUSION);
}

#[test]
fn the_mark_of_a_writer_that_is_gone_keeps_everybody_out() {
    let dies = two(WRITE, LAST).with(Budget { deaths: 1, ..NONE });
    let leaves = two(WRITE, LAST).with(Budget { leaves: 1, ..NONE });
    finds("never swept", Rules::broken(Broken::StaleMark, dies), HEAD_WINS);
    finds("never swept", Rules::broken(Broken::StaleMark, dies), ALL_ENTER);
    let broken = Rules::broken(Broken::LeavesWhereGranted, leaves);
    finds("left somewhere", broken, NOTHING_LEFT);
    finds("left somewhere", broken, ALL_ENTER);
}

/// Ada waits for ben, who came before her, and ben for her, as for every writer.
#[test]
fn a_preference_that_is_no_ticket_makes_two_wait_for_each_other() {
    finds("asker's choice", Rules::broken(Broken::AskersChoice, two(WRITE, LAST)), ALL_ENTER);
}

#[test]
fn a_writer_that_ignores_readers_breaks_exclusion() {
    finds("ignored", Rules::broken(Broken::IgnoresReaders, free(WRITE, LAST)), EXCLUSION);
}

#[test]
fn a_renewal_that_takes_anybodys_vote_breaks_exclusion() {
    let budget = Budget { renewals: 1, passes: 1, ..NONE };
    for (name, ada) in [("a read over a write", NEXT), ("a write over a write", WRITE)] {
        let bounds = free(ada, WRITE).with(budget);
        finds(name, Rules::broken(Broken::RenewalTakesOver, bounds), EXCLUSION);
    }
}

#[test]
fn a_downgrade_that_releases_first_lets_another_write_in_between() {
    let bounds = free(WRITE, WRITE).with(Budget { reads: 1, ..NONE });
    finds("released first", Rules::broken(Broken::ReleasedFirst, bounds), UNPARTED);
}

/// What the voters grant says nothing about the time before: only the own clock does.
#[test]
fn a_read_that_outlives_the_loss_of_its_write_lets_another_write_in_between() {
    let bounds = free(WRITE, WRITE).with(Budget { reads: 1, passes: 1, ..NONE });
    finds("write lost meanwhile", Rules::broken(Broken::ReadOutlivesLoss, bounds), UNPARTED);
}

#[test]
fn a_place_that_is_taken_out_when_it_gets_a_vote_breaks_the_order() {
    for (name, ada, ben, ahead) in [
        ("taken out: a writer", WRITE, LAST, 0),
        ("taken out: a reader in turn", WRITE, NEXT, 1),
        ("taken out: a reader before writers", WRITE, FIRST, 1),
    ] {
        let bounds = two(ada, ben).bids([2; 4]).from(Start::Queued(ahead));
        finds(name, Rules::broken(Broken::TakenOutAtGrant, bounds), ORDER);
    }
}

#[cfg(quorate_mutants)]
mod mutants {
    use super::*;

    #[test]
    fn a_ticket_that_is_raised_breaks_the_order() {
        let behind = two(WRITE, NEXT).from(Start::Queued(1)).bids([1, 3, 1, 1]);
        finds("ticket raised", Rules::broken(Broken::TicketRaised, behind), ORDER);
    }
}

#[test]
fn a_ticket_of_a_minority_breaks_the_order() {
    let late = two(WRITE, NEXT).from(Start::Queued(1)).with(Budget { timeouts: 1, ..NONE });
    finds("ticket of a minority", Rules::broken(Broken::TicketOfAMinority, late), ORDER);
}

#[test]
fn what_breaks_the_fair_queue_breaks_this_one() {
    let bounds = two(WRITE, NEXT);
    finds("order of arrival", Rules::broken(Broken::OrderOfArrival, bounds), HEAD_WINS);
    finds("any vote", Rules::broken(Broken::WonByAMinority, bounds), EXCLUSION);
}
