//! The slots of a semaphore as a small model, of which every state is looked at: all orders of all
//! messages between two or three clients and three voters.
//!
//! Which slots a client has, and what it asks for next, is decided by `proto`; what a
//! voter does follows `lua/semaphore` step by step (`voter.rs`). A lease is whether its holder
//! trusts it, and a voter may forget once; `hold_model` has both in full. The queue is left out,
//! which
//! `queue_model` has.

mod moves;
mod rules;
mod state;
mod voter;

use crate::check::{finds, holds, is_large};
use moves::{BACKED, FREE_IS_HAD, NOTHING_LEFT, ONE_HOLDER};
use rules::{
    Broken,
    Landmark::{AskedAgain, Forgot, GaveUp, Lapsed, PutRight, Won},
    Rules,
};

/// Two permits, and two or three who want one each, from the same slot on.
const TWO: Rules = Rules::of(2, [1, 1, 0]);
const THREE: Rules = Rules::of(2, [1, 1, 1]);

#[test]
fn no_slot_is_held_twice() {
    holds("two ask", TWO, 10_000, &[Won, AskedAgain]);
    holds("one wants both", Rules::of(2, [2, 1, 0]).again(), 50_000, &[Won, GaveUp]);
    if is_large() {
        holds("two ask, one again", TWO.again(), 500_000, &[Won, AskedAgain, GaveUp]);
        holds("three ask", THREE.steadfast(), 100_000, &[Won, AskedAgain, GaveUp, PutRight]);
    }
}

#[test]
fn no_slot_is_held_twice_though_messages_are_lost_or_run_twice() {
    holds("a request is lost", TWO.losing(1), 20_000, &[Won, AskedAgain]);
    holds("a request runs again, late", TWO.copying(1), 20_000, &[Won, AskedAgain]);
    if is_large() {
        holds("two ask, one again, and a request is lost", TWO.again().losing(1), 500_000, &[Won]);
    }
}

/// One permit, and two who want it and do not give up.
const ONE: Rules = Rules::of(1, [1, 1, 0]).forgetting(1).lapsing(1).steadfast();

#[test]
fn no_slot_is_held_twice_though_a_voter_forgets_and_leases_end() {
    holds("a voter forgets, a lease ends", ONE, 1_000, &[Won, Forgot, Lapsed]);
}

#[cfg(quorate_mutants)]
mod mutants {
    use super::{moves::AT_MOST, *};

    /// With three voters and two permits three hold, each by another pair of voters.
    #[test]
    fn permits_that_are_counted_by_majority_are_held_by_too_many() {
        let counted = THREE.steadfast().broken(Broken::AnySlotIsAVote);
        finds("three hold two permits", counted, AT_MOST);
        finds("two hold one slot", counted, ONE_HOLDER);
    }
}

#[test]
fn each_rule_is_needed() {
    let back = TWO.copying(1).broken(Broken::CopyMovesBack);
    finds("a late request takes a hold back", back, BACKED);
    finds("a voter gives what is taken", TWO.broken(Broken::GivesTaken), ONE_HOLDER);
    finds("a renewal moves nothing", TWO.broken(Broken::RenewalMovesNothing), FREE_IS_HAD);
    finds("who gives up keeps a slot", TWO.broken(Broken::KeepsOnGivingUp), NOTHING_LEFT);
    finds("quarantine", ONE.broken(Broken::QuarantinedSlotCounts), ONE_HOLDER);
    finds("a late renewal takes a slot", ONE.broken(Broken::RenewalTakes), BACKED);
}
