//! What tests that need a real server share: servers, a proxy that spoils connections, waiting.
//!
//! It knows nothing of the library, so that the library's own unit tests can use it too.

#![allow(missing_docs, clippy::missing_panics_doc, reason = "only tests and benches use it")]

mod cluster;
mod install;
mod node;
mod ports;
mod process;
mod proxy;
mod redis;
mod resp;
mod sentinel;
mod settings;
#[cfg(feature = "tls")]
mod tls;
mod wait;
mod watchdog;
mod worker;

use std::{fs, path::Path};

pub use cluster::{Cluster, Member};
pub use install::install_line;
pub use node::{NODE_PASSWORD, lock_node};
pub use ports::free_port;
pub use process::Signal;
pub use proxy::Proxy;
pub use redis::{RedisServer, are_before_7};
pub use resp::{Reply, packed, unpacked};
pub use sentinel::Sentinels;
pub use settings::Settings;
#[cfg(feature = "tls")]
pub use tls::{Certificates, ClientCertificates};
pub use wait::{eventually, eventually_async, succeeds, succeeds_async};
pub use watchdog::{Watchdog, Watched};
pub use worker::Worker;

/// The root of the repository.
pub const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The text of a file of the repository, by its path from the root.
#[track_caller]
pub fn read_file(path: &str) -> String {
    let file = Path::new(ROOT).join(path);
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Whether a key is the fingerprint of a voter.
pub fn is_fingerprint(key: &str) -> bool {
    key.contains("{%voter")
}

/// Whether a key has what clients believe of the voters.
pub fn is_configuration(key: &str) -> bool {
    key.contains("{%roster")
}

/// These keys but for those that outlast their locks: they remember tokens, or are the fingerprints
/// of voters or what clients believe.
pub fn without_lasting(mut keys: Vec<String>) -> Vec<String> {
    let is_fence = |key: &str| key.ends_with("fence") || key.starts_with("redisson_lock_token:");
    // What others asked with is remembered for a lease.
    let is_number = |key: &str| key.ends_with("semaphore:permits");
    let lasts = |key: &str| is_fence(key) || is_fingerprint(key) || is_configuration(key);
    keys.retain(|key| !lasts(key) && !is_number(key));
    keys
}
