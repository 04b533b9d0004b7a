//! What users of the mutex rely on. Each test's name is the claim; each claim is written once and
//! holds on voters inside the process (in paused time: fast and exact) and on real servers.

mod basics;
mod claims;
mod contention;
mod doomed;
mod ends;
mod expiry;
mod fixture;
mod force;
mod inputs;
mod kind;
mod line;
mod outage;
mod pins;
mod redisson;
mod reentry;
mod seen;
#[path = "../support/mod.rs"]
mod support;
mod validity;
mod waiting;

use claims::claims;
