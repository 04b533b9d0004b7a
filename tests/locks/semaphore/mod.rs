//! What users of the semaphore rely on. Each test's name is the claim; each claim is written once
//! and holds on voters inside the process (in paused time: fast and exact) and on real servers.

mod differing;
mod inputs;
mod leases;
mod order;
mod sharing;
mod slots;
pub(crate) mod waiting;
