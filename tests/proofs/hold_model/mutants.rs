//! Bugs of the library's own decisions: the model finds them too.

use super::{
    BARELY_HELD, CHANGES, NONE, TWO, exact,
    properties::{EXCLUSION, FREE, NO_LEAK},
    rules::{Budget, Rules},
};
use crate::check::{finds, is_large};

#[test]
fn a_quarantine_of_half_the_length_breaks_exclusion() {
    let held = exact(BARELY_HELD.with(Budget { amnesias: 1, ..NONE }), 2);
    finds("half of it", held.mutant("quarantine_of_half_the_length"), EXCLUSION);
}

#[test]
fn a_vote_that_did_not_count_is_no_proof() {
    let twice = Budget { renewals: 2, amnesias: 1, ..NONE };
    let proves = |rules: Rules| rules.mutant("grant_in_quarantine_is_proof");
    finds("any vote", proves(exact(BARELY_HELD.patient().with(twice), 2)), EXCLUSION);
    if is_large() {
        finds("second renewal", proves(Rules::kept(TWO.with(twice))), EXCLUSION);
    }
}

#[test]
fn a_majority_of_those_that_answered_breaks_exclusion() {
    finds("the answered", Rules::kept(TWO).mutant("majority_of_the_answered"), EXCLUSION);
}

#[test]
fn trust_for_the_whole_lease_breaks_exclusion() {
    finds("no drift", Rules::kept(TWO).mutant("no_drift"), EXCLUSION);
}

#[test]
fn an_undo_only_where_a_grant_is_known_leaves_votes_behind() {
    for property in [NO_LEAK, FREE] {
        finds("undo where known", Rules::kept(TWO).mutant("undoes_known_grants"), property);
    }
}

#[test]
fn a_majority_of_one_of_two_sets_breaks_exclusion() {
    for change in CHANGES {
        // Where the sets share a voter that both need, no hold comes in beside another.
        if (change.only_new, change.both) != (1, 1) {
            let bounds = TWO.changing(change);
            finds("one set", exact(bounds, 2).mutant("one_set_decides"), EXCLUSION);
        }
    }
}
