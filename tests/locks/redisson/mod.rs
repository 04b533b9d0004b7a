//! What services in Java share with us by the names of Redisson: the other side is Redisson's own
//! scripts. `tests/redisson` has Redisson itself there.

mod holders;
mod java;
mod java_rw;
mod red_lock;
mod rights;
mod rw;
mod rw_model;
mod splits;
mod tokens;
mod turns;

use quorate_tests::prelude::*;

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

/// Waits until somebody listens to this channel on each of these servers.
async fn until_listening(servers: &[RedisServer], channel: &str) {
    let listening = Ok(Reply::List(vec![Reply::Text(channel.to_owned()), Reply::Int(1)]));
    until!("it listens on all servers", {
        let mut answers = servers.iter().map(|it| it.command(&["PUBSUB", "NUMSUB", channel]));
        answers.all(|answer| answer == listening)
    });
}
