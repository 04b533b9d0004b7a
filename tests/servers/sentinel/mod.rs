//! A voter whose server sentinels name: a failover costs nobody a lock, and gives none twice.

mod connecting;
mod failover;
mod partition;
mod replica;

use quorate_support::{RedisServer, Sentinels};

/// The address of a voter that these sentinels watch.
fn address(sentinels: &Sentinels) -> String {
    named(sentinels, &sentinels.sentinel_addresses())
}

/// The same by these ways to the sentinels.
fn named(sentinels: &Sentinels, hosts: &[String]) -> String {
    format!("redis-sentinel://{}/{}", hosts.join(","), sentinels.service())
}

/// No sentinel has the server follow another one, or ends its connections. By what is left of
/// `CLIENT`: servers older than 7.0 cannot take one part of a command away.
fn make_deaf(server: &RedisServer) {
    let user = ["ACL", "SETUSER", "default", "-slaveof", "-replicaof", "-client"];
    let rules = [&user[..], &["+client|id", "+client|list", "+client|setname"]].concat();
    server.command(&rules).expect("the user is set");
}
