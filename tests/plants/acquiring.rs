//! Bugs in asking, waiting and giving back.

use crate::plant::{Edit, Plant};

pub(crate) const PLANTS: &[Plant] = &[
    Plant {
        name: "counts_the_answered",
        what: "A majority of the voters that answered is enough.",
        edits: &[Edit {
            file: "src/engine/votes.rs",
            find: "self.granted() >= self.quorum.needed()",
            replace: "self.granted() >= self.quorum.needed()
            || PLANTED
                && self.open() == 0
                && 2 * self.granted() > self.quorum.voters() - self.unknown()",
        }],
        caught_by: &["TrustEndsEarly", "Exclusion"],
    },
    Plant {
        name: "validity_from_the_reply",
        what: "Trust counts from the last answer, not from before the first request.",
        edits: &[Edit {
            file: "src/coordinator/attempt.rs",
            find: "return Ok(Won { claim, started, rules });",
            replace: "let started = if PLANTED { self.clock.now() } else { started };
                    return Ok(Won { claim, started, rules });",
        }],
        caught_by: &["TrustEndsEarly"],
    },
];
