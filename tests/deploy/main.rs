//! What `deploy/` has works as it stands there, and agrees with the rest of the repository.
//!
//! That the suites of the locks pass on such nodes is seen in these: `on_one_lock_node` is one.

mod compose;
mod containers;
mod kubernetes;
mod passwords;
mod probes;
#[path = "../faults/scene.rs"]
mod scene;
mod servers;
#[path = "../support/mod.rs"]
mod support;
mod systemd;
mod tree;
mod users;
mod walk;
mod watch;
