//! What the benches share: the clients that take part, the floor that they are measured against,
//! the report at their end, the file that keeps it, and the plots of it.

#![allow(missing_docs, clippy::missing_panics_doc, reason = "only the benches use it")]

pub mod common;
pub mod floor;
pub mod plots;
pub mod report;
pub mod results;
pub mod tally;
