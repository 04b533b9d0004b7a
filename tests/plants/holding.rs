//! Bugs in keeping a hold, in entering it again and in telling its loss.

use crate::plant::{Edit, Plant};

pub(crate) const PLANTS: &[Plant] = &[Plant {
    name: "dropped_guard_stays",
    what: "A guard that is dropped is not released.",
    edits: &[Edit {
        file: "src/hold/entry.rs",
        find: "if !self.left {",
        replace: "if !self.left && !PLANTED {",
    }],
    caught_by: &["NothingLeaks"],
}];
