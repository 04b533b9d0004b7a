//! What locks cost the servers: processor time and memory, for sizing.
//!
//! `cargo bench --bench capacity`; `QUORATE_BENCH_ROUNDS` sets its length (default 200, some 30
//! seconds). It starts its own servers. Processor time is what the server itself says that it took
//! (`INFO cpu`), as a multiple of a plain `SET` with an expiry, sent by the same client library
//! over as many connections and from as many tasks, to the same server, in turns. Memory is what
//! the server has more of (`INFO memory`), for each of many.

mod common;
#[path = "../tests/support/mod.rs"]
mod support;

use std::time::Duration;

use fred::{
    clients::Client,
    interfaces::ClientLike,
    types::{Builder, ClusterHash, CustomCommand, config::Config},
};
use futures::future::join_all;
use quorate::Quorate;
use support::{RedisServer, eventually_async};
use tokio::runtime::Runtime;

/// Tasks that ask at the same time, spread over as many clients as the other benches have.
const TASKS: usize = 50;
/// What each does before the other side has its turn.
const BLOCK: usize = 20;
/// How many of each are there while memory is read.
const MANY: u32 = 1_000;

type Work = fn(Quorate, String) -> futures::future::BoxFuture<'static, Result<(), quorate::Error>>;

const WORKS: [(&str, Work); 5] = [
    ("mutex: lock, release", |client, name| {
        Box::pin(async move { client.mutex(name).lock().await?.release().await })
    }),
    ("the same, without a token", |client, name| {
        Box::pin(async move { client.mutex(name).fenced(false).lock().await?.release().await })
    }),
    ("fair mutex: lock, release", |client, name| {
        Box::pin(async move { client.fair_mutex(name).lock().await?.release().await })
    }),
    ("rw lock: read, release", |client, name| {
        Box::pin(async move { client.rw_lock(name).read().await?.release().await })
    }),
    ("rw lock: write, release", |client, name| {
        Box::pin(async move { client.rw_lock(name).write().await?.release().await })
    }),
];

fn main() {
    let rounds = common::rounds(200);
    let server = [RedisServer::start()];
    let runtime = Runtime::new().expect("a runtime");
    println!("processor time of one server{:18}in plain SETs", "");
    for (name, work) in WORKS {
        let ratio = runtime.block_on(processor(&server, work, rounds));
        println!("    {name:40} {ratio:8.1}");
    }
    println!("memory on each server{:35}bytes", "");
    for (name, bytes) in runtime.block_on(memory(&server)) {
        println!("    {name:40} {bytes:11.0}");
    }
}

/// How many times as long as a `SET` the server works on this.
async fn processor(server: &[RedisServer], work: Work, rounds: usize) -> f64 {
    let clients = common::clients(server, TASKS, patient).await;
    let raw = join_all((0..clients.len()).map(|_| connect(&server[0]))).await;
    let (mut ours, mut floor) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..rounds.div_ceil(10) {
        let before = used(&server[0]);
        let locking = (0..TASKS).map(|task| {
            let client = clients[task % clients.len()].clone();
            async move {
                for _ in 0..BLOCK {
                    let done = work(client.clone(), format!("capacity:{task}")).await;
                    done.expect("the server answers");
                }
            }
        });
        join_all(locking.map(tokio::spawn)).await;
        let between = used(&server[0]);
        let setting = (0..TASKS).map(|task| {
            let client = raw[task % raw.len()].clone();
            async move {
                for _ in 0..BLOCK {
                    let set = CustomCommand::new_static("SET", ClusterHash::Custom(0), false);
                    let words =
                        vec![format!("plain:{task}"), "1".into(), "PX".into(), "30000".into()];
                    let set = client.custom::<String, _>(set, words);
                    set.await.expect("the server answers");
                }
            }
        });
        join_all(setting.map(tokio::spawn)).await;
        ours += between.saturating_sub(before);
        floor += used(&server[0]).saturating_sub(between);
    }
    common::close(clients).await;
    for client in raw {
        client.quit().await.expect("the connection ends");
    }
    ours.as_secs_f64() / floor.as_secs_f64()
}

/// So many tasks at once may wait for one server.
fn patient(builder: quorate::Builder) -> quorate::Builder {
    builder.voter_deadline(Duration::from_secs(2))
}

async fn connect(server: &RedisServer) -> Client {
    let config = Config::from_url(&server.url()).expect("a good address");
    let client = Builder::from_config(config).build().expect("a good configuration");
    client.init().await.expect("the server answers");
    client
}

/// The processor time of the server so far.
fn used(server: &RedisServer) -> Duration {
    let seconds = |name| {
        let text = server.info(&["INFO", "cpu"], name).expect("it says so");
        text.parse::<f64>().expect("a number")
    };
    Duration::from_secs_f64(seconds("used_cpu_user") + seconds("used_cpu_sys"))
}

/// Of many of each, what one takes.
async fn memory(server: &[RedisServer]) -> Vec<(&'static str, f64)> {
    let client =
        common::clients(server, 1, |builder| patient(builder).lease(Duration::from_mins(10)));
    let client = client.await.remove(0);
    let mut found = Vec::new();
    // The first of everything is what the server and the client need anyway.
    let first = client.mutex("first").lock().await.expect("nobody has it");
    let each = |before: f64| (bytes(&server[0]) - before) / f64::from(MANY);

    let before = bytes(&server[0]);
    let mut guards = Vec::new();
    for number in 0..MANY {
        let mutex = client.mutex(format!("capacity:{number:07}"));
        guards.push(mutex.lock().await.expect("nobody has it"));
    }
    found.push(("mutex that is held, its token included", each(before)));
    for guard in guards {
        guard.release().await.expect("it confirms");
    }
    found.push(("token of one that is not", each(before)));

    let before = bytes(&server[0]);
    let mut guards = Vec::new();
    for _ in 0..MANY {
        guards.push(client.rw_lock("capacity").read().await.expect("nobody writes"));
    }
    found.push(("reader of one lock", each(before)));
    drop(guards);

    let fair = client.fair_mutex("capacity");
    let held = fair.lock().await.expect("nobody has it");
    let before = bytes(&server[0]);
    let waiting: Vec<_> = (0..MANY)
        .map(|_| {
            let fair = fair.clone();
            tokio::spawn(async move { fair.lock().await.map(drop) })
        })
        .collect();
    eventually_async("all wait", async || {
        fair.inspect().await.is_ok_and(|seen| seen.queue().len() == MANY as usize)
    })
    .await;
    found.push(("waiter for one fair mutex", each(before)));
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
    drop((held, first));
    client.close().await;
    found
}

fn bytes(server: &RedisServer) -> f64 {
    let text = server.info(&["INFO", "memory"], "used_memory").expect("it says so");
    text.parse().expect("a number")
}
