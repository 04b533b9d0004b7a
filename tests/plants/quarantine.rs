//! Bugs in telling which voters may have forgotten votes, and in what their votes count for.
//!
//! Those in renewals by voters that forgot, in when a quarantine ends, and in telling voters that
//! are young or apart take more schedules than are hunted here to do harm: the tests of `engine`
//! and the model of tokens have these.

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
        name: "restart_not_noticed",
        what: "Nobody notices that a voter came back as another.",
        edits: &[Edit {
            file: "src/engine/standing.rs",
            find: "let forgot = !(life.durable && durable);",
            replace: "let forgot = !PLANTED && !(life.durable && durable);",
        }],
        caught_by: &["Exclusion"],
    },
    Plant {
        name: "clock_jump_not_noticed",
        what: "Nobody notices that a voter's clock was set.",
        edits: &[Edit {
            file: "src/engine/standing.rs",
            find: "standing.forgot = Some((seen, Quarantine::ClockMoved(moved)));",
            replace: "if !PLANTED {
            standing.forgot = Some((seen, Quarantine::ClockMoved(moved)));
        }",
        }],
        caught_by: &["Exclusion"],
    },
];
