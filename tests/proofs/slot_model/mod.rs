//! The slots of a semaphore as a small model, of which every state is looked at: all orders of all
//! messages between two or three clients and three voters.
//!
//! Which slots a client has, and what it asks for next, is decided by the library's engine; what a
//! voter does follows `lua/semaphore` step by step (`voter.rs`). Leases and forgetting are left
//! out: each slot is given and kept as a mutex is, of which `hold_model` has both. So is the queue,
//! of which `queue_model` has.

mod moves;
mod rules;
mod state;
mod voter;

use crate::check::{finds, holds, is_large};
use moves::{AT_MOST, FREE_IS_HAD, NOTHING_LEFT, ONE_HOLDER};
use rules::{
    Broken,
    Landmark::{AskedAgain, GaveUp, PutRight, Won},
    Rules,
};

/// Two permits, and three who want one each, from the same slot on.
const THREE: Rules = Rules::of(2, [1, 1, 1]);

// Claim 58
#[test]
fn no_slot_is_held_twice() {
    holds("two ask, one again", Rules::of(2, [1, 1, 0]).again(), 10_000, &[Won, AskedAgain]);
    holds("one wants both", Rules::of(2, [2, 1, 0]).again(), 5_000, &[Won, GaveUp]);
    holds("three ask", THREE, 100_000, &[Won, AskedAgain, GaveUp, PutRight]);
    if is_large() {
        holds("three ask, from two slots on", THREE.from([0, 1, 0]), 100_000, &[Won, GaveUp]);
        holds("two of three", Rules::of(3, [2, 1, 1]), 100_000, &[Won, AskedAgain, GaveUp]);
    }
}

// Claim 58
#[test]
fn no_slot_is_held_twice_though_messages_are_lost_or_run_twice() {
    let two = Rules::of(2, [1, 1, 0]);
    holds("a request is lost", two.losing(1).again(), 20_000, &[Won, AskedAgain]);
    holds("a request runs again, late", two.copying(1).again(), 20_000, &[Won, AskedAgain]);
    if is_large() {
        holds("three ask, one runs again", THREE.copying(1), 500_000, &[Won, PutRight]);
    }
}

// Claim 58
/// With three voters and two permits three hold, each by another pair of voters.
#[test]
fn permits_that_are_counted_by_majority_are_held_by_too_many() {
    let counted = THREE.steadfast().broken(Broken::AnySlotIsAVote);
    finds("three hold two permits", counted, AT_MOST);
    finds("any slot is a vote", counted, ONE_HOLDER);
}

#[test]
fn each_rule_is_needed() {
    let two = Rules::of(2, [1, 1, 0]).again();
    let back = two.copying(1).broken(Broken::CopyMovesBack);
    finds("a late request takes a hold back", back, ONE_HOLDER);
    finds("a voter gives what is taken", two.broken(Broken::GivesTaken), ONE_HOLDER);
    finds("a renewal moves nothing", two.broken(Broken::RenewalMovesNothing), FREE_IS_HAD);
    finds("who gives up keeps a slot", two.broken(Broken::KeepsOnGivingUp), NOTHING_LEFT);
}
