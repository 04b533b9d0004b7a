//! Servers that are reached by TLS, by a Unix socket, and as users with few rights or with
//! passwords that change.

mod credentials;
mod rights;
#[path = "../faults/scene.rs"]
mod scene;
mod socket;
#[path = "../support/mod.rs"]
mod support;
mod tls;
