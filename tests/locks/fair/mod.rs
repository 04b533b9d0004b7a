//! What users of the fair mutex rely on. Each test's name is the claim; each claim is written once
//! and holds on voters inside the process (in paused time: fast and exact) and on real servers.
//!
//! What a mutex does a fair one does too: the claims about the mutex are run on it as well.

mod dead;
mod line;
mod order;
mod processes;
pub(crate) mod queue;
