//! A voter whose server sentinels name: a failover costs nobody a lock, and gives none twice.

mod connecting;
mod failover;
mod partition;
mod replica;

use quorate_support::Sentinels;

/// The address of a voter that these sentinels watch.
fn address(sentinels: &Sentinels) -> String {
    named(sentinels, &sentinels.sentinel_addresses())
}

/// The same by these ways to the sentinels.
fn named(sentinels: &Sentinels, hosts: &[String]) -> String {
    format!("redis-sentinel://{}/{}", hosts.join(","), sentinels.service())
}

/// What errors call it.
fn label(sentinels: &Sentinels) -> String {
    format!("{}@{}", sentinels.service(), sentinels.sentinel_addresses().join(","))
}
