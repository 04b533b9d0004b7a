//! What users of the fair mutex rely on. Each test's name is the claim; each claim is written once
//! and holds on voters inside the process (in paused time: fast and exact) and on real servers.
//!
//! What a mutex does a fair one does too: the claims about the mutex are run on it as well.

#[path = "../mutex/basics.rs"]
mod basics;
#[path = "../mutex/claims.rs"]
mod claims;
#[path = "../mutex/contention.rs"]
mod contention;
mod crowd;
mod dead;
#[path = "../mutex/doomed.rs"]
mod doomed;
#[path = "../mutex/ends.rs"]
mod ends;
#[path = "../mutex/expiry.rs"]
mod expiry;
#[path = "../mutex/fixture.rs"]
mod fixture;
#[path = "../mutex/force.rs"]
mod force;
mod found;
mod kind;
mod mixed;
mod order;
#[path = "../mutex/outage.rs"]
mod outage;
mod processes;
mod queue;
#[path = "../mutex/reentry.rs"]
mod reentry;
mod rights;
#[path = "../support/mod.rs"]
mod support;
#[path = "../mutex/waiting.rs"]
mod waiting;

use claims::claims;
