//! The protocol as a small model, of which every state is looked at: all orders of all messages
//! between two or three clients and three voters, with a few faults of every kind.
//!
//! The model follows `lua/` and `src/engine` step by step; `docs/model.md` says what it leaves out.

mod client;
mod landmarks;
mod moves;
mod properties;
mod queue;
mod rules;
mod state;
mod voter;

use crate::check::{finds, holds, is_large};
use landmarks::Landmark::{
    self, ExpiredEarly, HandedOver, LostAtItsDeadline, NotCounted, RenewalRefused, Renewed,
    SplitWon, UndoneTooEarly, VoteRegained, VoteWithoutOwner, Won,
};
use properties::{BACKED, EXCLUSION, FREE, NO_LEAK, UNINTERRUPTED, has_one_leader};
use rules::{Bounds, Broken, Budget, RenewalCounts, Rules};
use state::State;

/// One attempt each; or two of one client, whose late messages then meet its own next attempt.
const TWO: Bounds = Bounds::of([1, 1, 0]);
const TWO_AND_AGAIN: Bounds = Bounds::of([2, 1, 0]);
const THREE: Bounds = Bounds::of([1, 1, 1]);
const NONE: Budget = Budget::NONE;

const ALWAYS: [Landmark; 4] = [Won, HandedOver, LostAtItsDeadline, ExpiredEarly];

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
}

/// A vote that an attempt heard before the voter forgot still counts for the attempt; and the voter
/// may have it no more when the standing hold asks for it in exchange for one that expires.
#[test]
fn a_renewal_that_counts_any_voter_in_quarantine_breaks_exclusion() {
    let rules = Rules::kept(TWO.with(Budget { renewals: 1, amnesias: 1, ..NONE }));
    finds("renewal", Rules { renewal_counts: RenewalCounts::Always, ..rules }, EXCLUSION);
    if is_large() {
        let rules = Rules::kept(TWO.with(Budget { renewals: 2, amnesias: 1, ..NONE }));
        let heard = Rules { renewal_counts: RenewalCounts::IfItHeardOfTheVote, ..rules };
        finds("second renewal", heard, EXCLUSION);
    }
}

#[test]
fn a_majority_of_those_that_answered_breaks_exclusion() {
    finds("the answered", Rules::broken(Broken::MajorityOfTheAnswered, TWO), EXCLUSION);
}

#[test]
fn trust_counted_from_the_reply_breaks_exclusion() {
    finds("from the reply", Rules::broken(Broken::TrustFromTheReply, TWO), EXCLUSION);
}

#[test]
fn trust_for_the_whole_lease_breaks_exclusion() {
    finds("no drift", Rules::broken(Broken::NoDrift, TWO), EXCLUSION);
}

/// The votes are there again, but another hold came and went since.
#[test]
fn a_renewal_that_counts_after_the_deadline_lets_another_hold_in_between() {
    let bounds = TWO.with(Budget { renewals: 1, ..NONE });
    let broken = Rules::broken(Broken::RenewalAfterTheDeadline, bounds);
    finds("late renewal", broken, UNINTERRUPTED);
}

#[test]
fn an_undo_only_where_a_grant_is_known_leaves_votes_behind() {
    let broken = Rules::broken(Broken::UndoOnlyWhereKnown, TWO);
    finds("undo where known", broken, NO_LEAK);
    finds("undo where known", broken, FREE);
}

#[test]
fn an_undo_that_is_not_repeated_leaves_votes_behind() {
    let broken = Rules::broken(Broken::UndoNotRepeated, TWO.with(Budget { restarts: 1, ..NONE }));
    finds("undo once", broken, NO_LEAK);
    finds("undo once", broken, FREE);
}

#[test]
fn a_release_of_anybodys_vote_takes_the_majority_from_a_hold() {
    finds("release", Rules::broken(Broken::ReleaseOfAnybody, TWO), BACKED);
}

#[test]
fn a_number_used_again_lets_an_undo_take_a_later_holds_vote() {
    let bounds = Bounds::of([2, 0, 0]).with(Budget { cuts: 1, ..NONE });
    finds("one number", Rules::broken(Broken::NumbersReused, bounds), BACKED);
}

#[test]
fn a_renewal_that_takes_over_another_holds_vote_breaks_exclusion() {
    let bounds = TWO.with(Budget { renewals: 1, ..NONE });
    finds("taken over", Rules::broken(Broken::RenewalTakesOver, bounds), EXCLUSION);
}
