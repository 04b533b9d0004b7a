//! The slots of a semaphore as a small model, of which every state is looked at: all orders of all
//! messages between two or three clients and three voters.
//!
//! Which slots a client has, and what it asks for next, is decided by `proto`; what a
//! voter does follows `lua/semaphore.lua` step by step (`voter.rs`). A lease is whether its holder
//! trusts it, and a voter may forget once; `hold_model` has both in full. The queue is left out,
//! which
//! `queue_model` has.

mod moves;
mod rules;
mod state;
mod voter;

use crate::check::{finds, holds, large};
use moves::{BACKED, FREE_IS_HAD, NOTHING_LEFT, ONE_HOLDER};
use rules::{Broken, Rules};

/// Two permits, and two or three who want one each, from the same slot on.
const TWO: Rules = Rules::of(2, [1, 1, 0]);
const TWO_AGAIN: Rules = Rules { again: true, ..TWO };
const ONE_WANTS_BOTH: Rules = Rules { again: true, ..Rules::of(2, [2, 1, 0]) };
const THREE: Rules = Rules { steadfast: true, ..Rules::of(2, [1, 1, 1]) };
/// One permit, and two who want it and do not give up.
const ONE: Rules = Rules { forgets: 1, lapses: 1, steadfast: true, ..Rules::of(1, [1, 1, 0]) };
/// A request runs again, late.
const COPIED: Rules = Rules { copies: 1, ..TWO };

#[test]
fn no_slot_is_held_twice() {
    holds("two ask", TWO, 117_935);
    holds("one wants both", ONE_WANTS_BOTH, 110_998);
    large("two ask, one again", TWO_AGAIN, 500_000);
    large("three ask", THREE, 100_000);
}

#[test]
fn no_slot_is_held_twice_though_messages_are_lost_or_run_twice() {
    holds("a request is lost", Rules { losses: 1, ..TWO }, 281_106);
    holds("a request runs again, late", COPIED, 277_413);
    let lost = Rules { losses: 1, ..TWO_AGAIN };
    large("two ask, one again, and a request is lost", lost, 500_000);
}

#[test]
fn no_slot_is_held_twice_though_a_voter_forgets_and_leases_end() {
    holds("a voter forgets, a lease ends", ONE, 661_874);
}

/// With three voters and two permits three hold, each by another pair of voters.
#[cfg(quorate_mutants)]
#[test]
fn permits_that_are_counted_by_majority_are_held_by_too_many() {
    let counted = THREE.broken(Broken::AnySlotIsAVote);
    finds("three hold two permits", counted, moves::AT_MOST);
    finds("two hold one slot", counted, ONE_HOLDER);
}

#[test]
fn each_rule_is_needed() {
    for (broken, rules, property) in [
        (Broken::CopyMovesBack, COPIED, BACKED),
        (Broken::GivesTaken, TWO, ONE_HOLDER),
        (Broken::RenewalMovesNothing, TWO, FREE_IS_HAD),
        (Broken::KeepsOnGivingUp, TWO, NOTHING_LEFT),
        (Broken::QuarantinedSlotCounts, ONE, ONE_HOLDER),
        (Broken::RenewalTakes, ONE, BACKED),
    ] {
        finds(&format!("{broken:?}"), rules.broken(broken), property);
    }
}
