//! What the test programs of this package share: voters of either sort under one face, claims that
//! are tried on many sets of them, and a check of who held a lock when.

#![allow(
    missing_docs,
    clippy::missing_panics_doc,
    reason = "only the tests of this package use it"
)]

pub mod age;
pub mod asking;
pub mod claims;
pub mod doomed;
pub mod failures;
pub mod fixture;
pub mod force;
pub mod history;
pub mod inside;
pub mod kind;
pub mod load;
pub mod prelude;
pub mod recorded;
pub mod resource;
pub mod rights;
pub mod scene;
pub mod standing;
