//! A voter whose server sentinels name: a failover costs nobody a lock, and gives none twice.

mod connecting;
mod failover;
mod replica;

use quorate_support::Sentinels;

/// The address of a voter that these sentinels watch.
fn address(sentinels: &Sentinels) -> String {
    let hosts = sentinels.sentinel_addresses().join(",");
    format!("redis-sentinel://{hosts}/{}", sentinels.service())
}

/// What errors call it.
fn label(sentinels: &Sentinels) -> String {
    format!("{}@{}", sentinels.service(), sentinels.sentinel_addresses().join(","))
}
