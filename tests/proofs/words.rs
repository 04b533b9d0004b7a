//! The words that the engine speaks, by the library's own files.

#![expect(dead_code, unreachable_pub, reason = "the models do not need all of them")]

#[path = "../../src/words/error.rs"]
mod error;
#[path = "../../src/words/ids.rs"]
#[allow(
    unfulfilled_lint_expectations,
    reason = "clippy judges some names only where they are public"
)]
mod ids;
#[path = "../../src/words/leader.rs"]
mod leader;
#[path = "../../src/words/majorities.rs"]
mod majorities;
#[path = "../../src/words/quarantine.rs"]
mod quarantine;
#[path = "../../src/words/report.rs"]
mod report;
#[path = "../../src/words/rounded.rs"]
mod rounded;
#[path = "../../src/words/slots.rs"]
mod slots;
#[path = "../../src/words/taker.rs"]
mod taker;
#[path = "../../src/words/token.rs"]
mod token;
#[path = "../../src/words/verdict.rs"]
mod verdict;

pub(crate) use error::Error;
pub(crate) use ids::HoldId;
pub(crate) use leader::{Incumbent, Leader, LeaderValue, Proclaimed};
pub(crate) use majorities::{Majorities, Side};
pub(crate) use quarantine::{Quarantine, Quarantined, RestartGuard};
pub(crate) use report::{Listed, VoterReport};
pub(crate) use rounded::Rounded;
pub(crate) use slots::Slots;
pub(crate) use taker::{HolderKind, Taker};
pub(crate) use token::Token;
pub(crate) use verdict::{Cause, Verdict};
