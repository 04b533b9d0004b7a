//! Bugs of the library's own decisions: the model finds them too.

use super::{
    BARELY_HELD, NONE, TWO, exact,
    properties::{EXCLUSION, FREE, NO_LEAK},
    rules::{Bounds, Budget, Rules},
};
use crate::{change::CHANGES, check::finds};

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
