//! Bugs in the scripts.

use crate::plant::{Edit, Plant};

pub(crate) const PLANTS: &[Plant] = &[Plant {
    name: "claim_takes_anybodys",
    what: "A vote is given although another hold has it.",
    edits: &[Edit {
        file: "lua/lib/claim.lua",
        find: "return 0, redis.call('PTTL', lock), by",
        replace: "redis.call('DEL', lock)",
    }],
    caught_by: &["Exclusion", "RenewalNeverHarms"],
}];
