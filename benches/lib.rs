//! What the benches share: the clients that take part, the floor that they are measured against,
//! the report at their end, how it gets onto a page of the documentation, and the plots there.

#![allow(missing_docs, clippy::missing_panics_doc, reason = "only the benches use it")]

pub mod common;
pub mod floor;
pub mod page;
pub mod plots;
pub mod report;
pub mod tally;
