//! The peers that are written in other languages: programs that do with a lock library of theirs
//! what each line of their input asks for.

#![allow(missing_docs, clippy::missing_panics_doc, reason = "only benches use it")]

pub mod holds;
pub mod program;
pub mod tools;
pub mod usage;
