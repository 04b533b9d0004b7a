//! Voters that forget, and what that does to nobody: tokens grow, and whoever holds a lock holds it
//! alone. On voters inside the process, in paused time, and on real servers that are killed.
//! CONFORMANCE 33, 36 to 38 and 41.

#[path = "../mutex/claims.rs"]
mod claims;
mod clocks;
#[path = "../mutex/fixture.rs"]
mod fixture;
mod growth;
mod guard;
#[path = "../faults/history.rs"]
mod history;
mod inside;
#[path = "../rw/kind.rs"]
mod kind;
mod live;
mod resource;
mod rolling;
#[path = "../faults/scene.rs"]
mod scene;
mod seen;
mod servers;
mod stored;
#[path = "../support/mod.rs"]
mod support;

use claims::claims;
