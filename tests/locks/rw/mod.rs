//! What users of the read/write lock rely on. Each test's name is the claim; each claim is written
//! once and holds on voters inside the process (in paused time: fast and exact) and on real
//! servers.

mod crowd;
mod downgrade;
mod leases;
mod owners;
mod preference;
mod processes;
pub(crate) mod waiting;
