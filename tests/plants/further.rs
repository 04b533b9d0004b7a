//! Bugs in giving back, in entering again, and in what no other plant breaks.

use crate::plant::{Edit, Plant};

pub(crate) const PLANTS: &[Plant] = &[
    Plant {
        name: "undoes_once",
        what: "An undo is not sent again to a voter that does not answer.",
        edits: &[Edit {
            file: "src/coordinator/claim.rs",
            find: "drop(panel.voters[voter].insist(call.clone(), until));",
            replace: "if PLANTED {
                drop(panel.voters[voter].run(call.clone()));
                continue;
            }
            drop(panel.voters[voter].insist(call.clone(), until));",
        }],
        caught_by: &["NothingLeaks"],
    },
    Plant {
        name: "no_line",
        what: "All who wait in one client ask the voters at once.",
        edits: &[Edit {
            file: "src/coordinator/line.rs",
            find: "turn: Semaphore::new(1),",
            replace: "turn: Semaphore::new(if PLANTED { 100 } else { 1 }),",
        }],
        caught_by: &["FewestTrips"],
    },
    Plant {
        name: "endless_patience",
        what: "Whoever waits never gives up on voters that do not answer.",
        edits: &[
            Edit {
                file: "src/coordinator/waiting.rs",
                find: "let patience = self.coordinator.settings.patience;
        self.limit == Limit::Now",
                replace: "let patience = self.coordinator.settings.patience;
        let patience = if PLANTED { Duration::MAX } else { patience };
        self.limit == Limit::Now",
            },
            Edit {
                file: "src/coordinator/silence.rs",
                find: "self.since.map_or(again, |since| again.min(since + patience))",
                replace: "self.since
                    .filter(|_| !PLANTED)
                    .map_or(again, |since| again.min(since + patience))",
            },
        ],
        caught_by: &["AnswersInTime"],
    },
    Plant {
        name: "renews_fixed_leases",
        what: "A fixed lease is renewed.",
        edits: &[Edit {
            file: "src/engine/lease.rs",
            find: "renew_at: (renewed",
            replace: "renew_at: (PLANTED || renewed",
        }],
        caught_by: &["TrustEndsEarly"],
    },
    Plant {
        name: "superseded_goes_on",
        what: "A round that shows that the hold is another's or revoked counts as a failed one.",
        edits: &[Edit {
            file: "src/engine/lease.rs",
            find: "if self.votes.is_superseded() {",
            replace: "if self.votes.is_superseded() && !PLANTED {",
        }],
        caught_by: &["WhatIsTold"],
    },
    Plant {
        name: "reentry_shortens",
        what: "An entry with a shorter lease shortens the hold's.",
        edits: &[
            Edit {
                file: "src/engine/lease.rs",
                find: "self.terms = self.terms.longer(terms);",
                replace: "self.terms = if PLANTED { terms } else { self.terms.longer(terms) };",
            },
            Edit {
                file: "src/engine/lease.rs",
                find: "self.deadline = self.deadline.max(terms.deadline(started));",
                replace: "let least = if PLANTED { Moment::BEGINNING } else { self.deadline };
        self.deadline = least.max(terms.deadline(started));",
            },
            Edit {
                file: "src/hold/held/rounds.rs",
                find: "wish.map_or(terms, |wish| terms.longer(wish))",
                replace: "wish.filter(|_| PLANTED).unwrap_or_else(|| {
            wish.map_or(terms, |wish| terms.longer(wish))
        })",
            },
        ],
        caught_by: &["RenewalNeverHarms"],
    },
    Plant {
        name: "cancelled_reentry_counts",
        what: "An entry that is given up is not left again.",
        edits: &[
            Edit {
                file: "src/hold/entry.rs",
                find: "let entry = Self { hold: Arc::clone(hold), left: false };",
                replace: "let mut entry = Self { hold: Arc::clone(hold), left: PLANTED };",
            },
            Edit {
                file: "src/hold/entry.rs",
                find: "                if let Some((terms, renewed)) = wish {
",
                replace: "                if PLANTED {
                    entry.left = false;
                }
                if let Some((terms, renewed)) = wish {
",
            },
        ],
        caught_by: &["NothingLeaks", "WhatIsTold"],
    },
    Plant {
        name: "a_refusal_is_a_grant",
        what: "A voter that another hold has counts as one that granted.",
        edits: &[Edit {
            file: "src/engine/votes.rs",
            find: "self.verdicts[voter] = Some(verdict);",
            replace: "let refused = matches!(verdict, Verdict::Refused { .. });
        self.verdicts[voter] =
            Some(if PLANTED && refused { Verdict::Granted } else { verdict });",
        }],
        caught_by: &["Exclusion", "WhatIsTold"],
    },
    Plant {
        name: "inspection_panics",
        what: "Whoever inspects a lock brings the task down.",
        edits: &[Edit {
            file: "src/lock/exclusive.rs",
            find: "let answers = self.asking.ask(&record, &record.inspect(), rules).await?;",
            replace: "assert!(!PLANTED, \"planted\");
        let answers = self.asking.ask(&record, &record.inspect(), rules).await?;",
        }],
        caught_by: &["NoPanic"],
    },
];
