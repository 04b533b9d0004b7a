//! Bugs in telling which voters may have forgotten votes, and in what their votes count for.

use crate::plant::{Edit, Plant};

pub(crate) const PLANTS: &[Plant] = &[
    Plant {
        name: "quarantined_vote_counts",
        what: "A new hold counts the vote of a voter in quarantine.",
        edits: &[Edit {
            file: "src/coordinator/panel.rs",
            find: "if verdict != Verdict::Granted {",
            replace: "if PLANTED || verdict != Verdict::Granted {",
        }],
        caught_by: &["Exclusion"],
    },
    Plant {
        name: "quarantine_spares_renewals",
        what: "A renewal counts every vote of a voter in quarantine.",
        edits: &[Edit {
            file: "src/engine/support.rs",
            find: "Verdict::Granted if had => verdict,",
            replace: "Verdict::Granted if had || PLANTED => verdict,",
        }],
        caught_by: &["Exclusion"],
    },
    Plant {
        name: "quarantined_vote_proves",
        what: "A vote that a voter gave in quarantine counts as had when it forgets once more.",
        edits: &[
            Edit {
                file: "src/hold/held.rs",
                find: "let counted = state.support.counted(voter, verdict, kept_out);",
                replace: "let said = verdict.clone();
        let counted = state.support.counted(voter, verdict, kept_out);",
            },
            Edit {
                file: "src/hold/held.rs",
                find: "state.support.heard(voter, &counted,",
                replace: "let proves = if PLANTED { &said } else { &counted };
        state.support.heard(voter, proves,",
            },
        ],
        caught_by: &["Exclusion"],
    },
    Plant {
        name: "restart_not_noticed",
        what: "Nobody notices that a voter came back as another.",
        edits: &[Edit {
            file: "src/engine/standing.rs",
            find: "if !(life.durable && durable) {",
            replace: "if !PLANTED && !(life.durable && durable) {",
        }],
        caught_by: &["Exclusion"],
    },
    Plant {
        name: "young_not_noticed",
        what: "Whoever meets a voter after it came back trusts it at once.",
        edits: &[Edit {
            file: "src/engine/standing.rs",
            find: "(is_later || self.suspicion.guard == RestartGuard::Strict)",
            replace: "(!PLANTED && (is_later || self.suspicion.guard == RestartGuard::Strict))",
        }],
        caught_by: &["Exclusion"],
    },
    Plant {
        name: "clock_jump_not_noticed",
        what: "Nobody notices that a voter's clock was set.",
        edits: &[Edit {
            file: "src/engine/standing.rs",
            find: "standing.forgot = Some((stamp.answered, Quarantine::ClockMoved(moved)));",
            replace: "if !PLANTED {
            standing.forgot = Some((stamp.answered, Quarantine::ClockMoved(moved)));
        }",
        }],
        caught_by: &["Exclusion"],
    },
    Plant {
        name: "clock_apart_not_noticed",
        what: "Whoever meets a voter after its clock was set trusts it at once.",
        edits: &[Edit {
            file: "src/engine/standing.rs",
            find: "(together >= self.quorum.needed() && by > allowed)",
            replace: "(!PLANTED && together >= self.quorum.needed() && by > allowed)",
        }],
        caught_by: &["Exclusion"],
    },
    Plant {
        name: "quarantine_ends_early",
        what: "A voter counts again after half of the longest lease.",
        edits: &[Edit {
            file: "src/engine/standing.rs",
            find: "let until = forgot + self.suspicion.longest;",
            replace: "let longest = self.suspicion.longest;
        let until = forgot + if PLANTED { longest / 2 } else { longest };",
        }],
        caught_by: &["Exclusion"],
    },
];
