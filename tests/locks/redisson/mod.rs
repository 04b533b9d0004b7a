//! What services in Java share with us by the names of Redisson: the other side is Redisson's own
//! scripts.

mod fair;
mod holders;
mod java;
mod java_rw;
mod red_lock;
mod rights;
mod rw;
mod rw_model;
mod rw_waits;
mod splits;
mod tokens;
mod turns;
mod wakes;

use std::time::Duration;

use quorate::{Builder, Quorate};

use quorate_support::RedisServer;
use quorate_tests::fixture::secs;

const NAME: &str = "orders";
const LEASE: Duration = secs(30);

/// Does not poll within a test's time.
fn builder(servers: &[RedisServer]) -> Builder {
    let urls = servers.iter().map(RedisServer::url);
    let builder = Quorate::builder().voters(urls);
    builder.poll_interval(secs(600)).voter_deadline(secs(3)).connect_timeout(secs(20))
}

async fn client(servers: &[RedisServer]) -> Quorate {
    builder(servers).connect().await.unwrap()
}

fn servers<const N: usize>() -> [RedisServer; N] {
    std::array::from_fn(|_| RedisServer::start())
}
