//! What `deploy/` has works as it stands there, and agrees with the rest of the repository.
//!
//! That the suites of the locks pass on such nodes is seen in these: `on_one_lock_node` is one.

mod containers;
mod files;
mod passwords;
mod probes;
mod servers;
mod systemd;
mod users;
mod waits;
mod walk;
