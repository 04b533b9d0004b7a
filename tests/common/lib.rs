//! What the test programs of this package share: voters of either sort under one face, claims that
//! are tried on many sets of them, and a check of who held a lock when.

#![allow(
    missing_docs,
    clippy::missing_panics_doc,
    reason = "only the tests of this package use it"
)]

pub mod age;
pub mod asking;
#[cfg(all(unix, feature = "programs"))]
pub mod check;
pub mod claims;
pub mod doomed;
#[cfg(all(unix, feature = "programs"))]
pub mod event;
pub mod failures;
pub mod fixture;
pub mod force;
pub mod inside;
pub mod kind;
#[cfg(all(unix, feature = "programs"))]
pub mod load;
#[cfg(target_os = "linux")]
pub mod names;
pub mod prelude;
pub mod recorded;
pub mod rights;
pub mod scene;
pub mod standing;
