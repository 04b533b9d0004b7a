//! What tests that need a real server share: servers, a proxy that spoils connections, waiting.
//!
//! A test binary says `mod support;`; unit tests reach it by `#[path]`.

#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    reason = "compiled into many test binaries, and each of them uses only a part"
)]

mod cargo;
mod cluster;
mod install;
mod node;
mod ports;
mod proxy;
mod redis;
mod resp;
mod sentinel;
mod settings;
mod tls;
mod wait;
mod watchdog;
mod worker;

pub use cargo::{compile, profile};
pub use cluster::{Cluster, Member};
pub use install::install_line;
pub use node::{NODE_PASSWORD, lock_node};
pub use ports::free_port;
pub use proxy::Proxy;
pub use redis::RedisServer;
pub use resp::Reply;
pub use sentinel::Sentinels;
pub use settings::Settings;
pub use tls::{Certificates, ClientCertificates};
pub use wait::{eventually, eventually_async, succeeds, succeeds_async};
pub use watchdog::Watchdog;
pub use worker::{Worker, compile_example};

/// These keys but for those that remember tokens: they outlast their locks.
pub fn without_fences(mut keys: Vec<String>) -> Vec<String> {
    keys.retain(|key| !key.ends_with("fence"));
    keys
}
