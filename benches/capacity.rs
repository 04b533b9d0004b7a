//! What locks cost the servers: processor time and memory, for sizing.
//!
//! `cargo bench -p quorate-benches --bench capacity`; `QUORATE_BENCH_ROUNDS` sets its length
//! (default 200, about a minute). It starts its own servers.
//!
//! Processor time is what the server itself reports (`INFO cpu`), as a multiple of a plain `SET`
//! with an expiry, sent by the same client library over as many connections and from as many tasks,
//! to the same server, in turns. Memory is what the server has more of (`INFO memory`), for each of
//! many.
//!
//! The limits are about a quarter above what a quiet machine with two processors and Redis 7.0
//! has shown. A value above its limit means that a script does more than it did, or keeps more, and
//! that servers need another sizing.

use std::{fs, process::ExitCode, time::Duration};

use fred::{
    clients::Client,
    interfaces::ClientLike,
    types::{Builder, ClusterHash, CustomCommand, config::Config},
};
use futures::future::{BoxFuture, join_all};
use quorate::Quorate;
use quorate_benches::{
    common,
    report::{self, Length, Promised, Report},
};
use quorate_support::{RedisServer, eventually_async};
use tokio::{runtime::Runtime, time::sleep};

/// What `deploy/redis.conf` sets, in bytes.
const MAXMEMORY: f64 = 256.0 * 1024.0 * 1024.0;

/// How much is measured.
#[derive(Clone, Copy)]
struct Size {
    /// Blocks of each side.
    blocks: usize,
    /// Tasks that ask at the same time, spread over as many clients as the other benches have.
    tasks: usize,
    /// What each task does before the other side has its turn.
    block: usize,
    /// How many of each are there while memory is read.
    many: u32,
    /// How many wait for one lock: of one client no more than 512 are in a queue.
    waiters: u32,
    /// After which memory is read: the server shrinks the buffers of connections that are idle.
    settle: Duration,
}

impl Size {
    fn of(length: Length) -> Self {
        let [tasks, block] = length.pick([50, 20], [10, 10]);
        let blocks = length.rounds(200, 20).div_ceil(10);
        let settle = length.pick(Duration::from_secs(4), Duration::ZERO);
        Self {
            blocks,
            tasks,
            block,
            many: length.pick(1_000, 100),
            waiters: length.pick(500, 50),
            settle,
        }
    }
}

const BARS: Promised = Promised::always(&[
    "processor_mutex",
    "processor_fair_mutex",
    "processor_read",
    "processor_write",
    "memory_mutex",
    "memory_token",
    "memory_reader",
    "memory_waiter",
]);

type Done = BoxFuture<'static, Result<(), quorate::Error>>;

struct Work {
    measured: &'static str,
    bar: &'static str,
    /// The most that it may take, in plain `SET`s.
    limit: f64,
    once: fn(Quorate, String) -> Done,
}

const WORKS: [Work; 4] = [
    Work {
        measured: "mutex: lock and release",
        bar: "processor_mutex",
        limit: 15.0,
        once: |client, name| {
            Box::pin(async move { client.mutex(name).lock().await?.release().await })
        },
    },
    Work {
        measured: "fair mutex: lock and release",
        bar: "processor_fair_mutex",
        limit: 17.0,
        once: |client, name| {
            Box::pin(async move { client.fair_mutex(name).lock().await?.release().await })
        },
    },
    Work {
        measured: "read/write lock: read and release",
        bar: "processor_read",
        limit: 18.0,
        once: |client, name| {
            Box::pin(async move { client.rw_lock(name).read().await?.release().await })
        },
    },
    Work {
        measured: "read/write lock: write and release",
        bar: "processor_write",
        limit: 18.0,
        once: |client, name| {
            Box::pin(async move { client.rw_lock(name).write().await?.release().await })
        },
    },
];

fn main() -> ExitCode {
    report::run(BARS, measure)
}

fn measure(length: Length) -> Report {
    let size = Size::of(length);
    let server = common::servers(1);
    let runtime = Runtime::new().expect("a runtime");
    let mut report = Report::default();
    report.table(["one of them", "processor time of each server, in `SET`s", "limit"]);
    for work in WORKS {
        let ratio = runtime.block_on(processor(&server, &work, size));
        let cell = report.bar(work.bar, ratio, work.limit);
        report.row([work.measured.to_owned(), cell, format!("{:.2}", work.limit)]);
    }
    let full = runtime.block_on(full(&common::servers(3), size));
    report.table([
        "64 tasks over three servers",
        "microseconds a lock",
        "locks a second when full",
    ]);
    for (what, micros) in [("the thread of the clients", full[0]), ("each server", full[1])] {
        report.row([what.to_owned(), format!("{micros:.1}"), format!("{:.0}", 1e6 / micros)]);
    }
    report.table(["one of them", "memory on each server, in bytes", "limit"]);
    // Of a server of its own: its tables double when they are full, so what is left would count.
    let [mutex, token, reader, waiter] = runtime.block_on(memory(&common::servers(1), size));
    for (measured, bar, bytes, limit) in [
        ("mutex that is held, its token included", "memory_mutex", mutex, 420.0),
        ("token of one that is not", "memory_token", token, 200.0),
        ("reader of one lock", "memory_reader", reader, 180.0),
        ("waiter for one fair mutex", "memory_waiter", waiter, 430.0),
    ] {
        let cell = report.bar(bar, bytes, limit);
        report.row([measured.to_owned(), cell, format!("{limit:.2}")]);
    }
    let fit = MAXMEMORY / token;
    report.table(["tokens in the 256 MB of `redis.conf`", "as many fit"]);
    report.row(["at once".to_owned(), format!("{:.2} million", fit / 1e6)]);
    for (fence_memory, seconds) in [("10 minutes, as by default", 600.0), ("a day", 86_400.0)] {
        let measured = format!("new names per second, where `fence_memory` is {fence_memory}");
        report.row([measured, format!("{:.0}", fit / seconds)]);
    }
    report
}

/// How many times as long as a `SET` the server works on this.
async fn processor(server: &[RedisServer], work: &Work, size: Size) -> f64 {
    let Size { blocks, tasks, block, .. } = size;
    let once = work.once;
    let clients = common::clients(server, tasks, |builder| builder).await;
    let raw = join_all((0..clients.len()).map(|_| connect(&server[0]))).await;
    let (mut ours, mut floor) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..blocks {
        let before = common::used(&server[0]);
        let locking = (0..tasks).map(|task| {
            let client = clients[task % clients.len()].clone();
            async move {
                for _ in 0..block {
                    let done = once(client.clone(), format!("capacity:{task}")).await;
                    done.expect("the server answers");
                }
            }
        });
        join_all(locking.map(tokio::spawn)).await;
        let between = common::used(&server[0]);
        let setting = (0..tasks).map(|task| {
            let client = raw[task % raw.len()].clone();
            async move {
                for _ in 0..block {
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
        floor += common::used(&server[0]).saturating_sub(between);
    }
    common::close(clients).await;
    for client in raw {
        client.quit().await.expect("the connection ends");
    }
    ours.as_secs_f64() / floor.as_secs_f64()
}

/// The processor time of a lock and its release, in microseconds: on the thread of the clients, and
/// on a server. Whichever is more is full first.
async fn full(servers: &[RedisServer], size: Size) -> [f64; 2] {
    let client = common::clients(servers, 1, |builder| builder).await.remove(0);
    let each = u32::try_from(size.blocks * size.block * 5).expect("it is few");
    let tasks = 64_u32;
    let (threads, server) = (thread_time(), common::used(&servers[0]));
    let locking = (0..tasks).map(|task| {
        let mutex = client.mutex(format!("capacity:{task}"));
        async move {
            for _ in 0..each {
                let guard = mutex.lock().await.expect("nobody else has it");
                guard.release().await.expect("it confirms");
            }
        }
    });
    join_all(locking.map(tokio::spawn)).await;
    let threads = thread_time().saturating_sub(threads);
    let server = common::used(&servers[0]).saturating_sub(server);
    drop(client.close().await);
    [threads, server].map(|time| time.as_secs_f64() * 1e6 / f64::from(tasks * each))
}

/// How long the thread of the clients has run, as Linux counts it.
fn thread_time() -> Duration {
    let threads = fs::read_dir("/proc/self/task").expect("Linux has it").flatten();
    let read = |thread: &fs::DirEntry, what| fs::read_to_string(thread.path().join(what));
    let of_clients =
        |thread: &fs::DirEntry| read(thread, "comm").is_ok_and(|name| name.trim() == "quorate");
    let times = threads.filter(of_clients).filter_map(|thread| {
        let told = read(&thread, "schedstat").ok()?;
        told.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
    });
    times.sum()
}

async fn connect(server: &RedisServer) -> Client {
    let config = Config::from_url(&server.url()).expect("a good address");
    let client = Builder::from_config(config).build().expect("a good configuration");
    client.init().await.expect("the server answers");
    client
}

/// Of many of each, what one takes: a mutex that is held, its token when it no longer is, a reader
/// and a waiter.
async fn memory(server: &[RedisServer], size: Size) -> [f64; 4] {
    let Size { many, waiters, settle, .. } = size;
    let client = common::clients(server, 1, common::long_lived).await.remove(0);
    // The first of everything has the server allocate what it needs once.
    for Work { once, .. } in WORKS {
        once(client.clone(), "first".to_owned()).await.expect("the server answers");
    }
    let more = async |before: f64| bytes(&server[0], settle).await - before;

    let before = bytes(&server[0], settle).await;
    let mut guards = Vec::new();
    for number in 0..many {
        let mutex = client.mutex(format!("capacity:{number:07}"));
        guards.push(mutex.lock().await.expect("nobody has it"));
    }
    let mutex = more(before).await / f64::from(many);
    for guard in guards {
        guard.release().await.expect("it confirms");
    }
    let token = more(before).await / f64::from(many);

    let before = bytes(&server[0], settle).await;
    let mut guards = Vec::new();
    for _ in 0..many {
        guards.push(client.rw_lock("capacity").read().await.expect("nobody writes"));
    }
    let reader = more(before).await / f64::from(many);
    for guard in guards {
        guard.release().await.expect("it confirms");
    }

    let fair = client.fair_mutex("capacity");
    let held = fair.lock().await.expect("nobody has it");
    // With the first ones the server allocates what all of them share.
    let (mut waiting, mut used) = (Vec::new(), Vec::new());
    for wait in [waiters / 5, waiters].map(|wait| wait as usize) {
        waiting.extend((waiting.len()..wait).map(|_| {
            let fair = fair.clone();
            tokio::spawn(async move { fair.lock().await.map(drop) })
        }));
        eventually_async("all wait", async || {
            fair.inspect().await.is_ok_and(|seen| seen.waiting.len() == wait)
        })
        .await;
        used.push(bytes(&server[0], settle).await);
    }
    let waiter = (used[1] - used[0]) / f64::from(waiters - waiters / 5);
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
    drop(held);
    drop(client.close().await);
    [mutex, token, reader, waiter]
}

/// Without the buffers of connections, which come and go.
async fn bytes(server: &RedisServer, settle: Duration) -> f64 {
    sleep(settle).await;
    let [used, buffers] = ["used_memory", "mem_clients_normal"].map(|name| {
        let text = server.info(&["INFO", "memory"], name).expect("it says so");
        text.parse::<f64>().expect("a number")
    });
    used - buffers
}
