//! What users of the read/write lock rely on. Each test's name is the claim; each claim is written
//! once and holds on voters inside the process (in paused time: fast and exact) and on real
//! servers.

#[path = "../mutex/claims.rs"]
mod claims;
mod crowd;
#[path = "../mutex/doomed.rs"]
mod doomed;
mod downgrade;
#[path = "../mutex/fixture.rs"]
mod fixture;
mod force;
mod found;
mod kind;
mod leases;
mod owners;
mod preference;
mod processes;
mod rights;
mod sharing;
#[path = "../support/mod.rs"]
mod support;
mod waiting;

use claims::claims;
