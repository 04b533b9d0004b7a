//! Lock and release without contention, against the floor: the same scripts, sent with the same
//! client library by hand, to the same servers, in the same run.
//!
//! `cargo bench --bench uncontended`; `QUORATE_BENCH_ROUNDS` sets its length (default 200, some 30
//! seconds). It starts its own servers. What counts is the ratio: both sides take turns, block by
//! block, so whatever else the machine does meanwhile falls on both.

mod common;
mod floor;
#[path = "../tests/support/mod.rs"]
mod support;

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use common::Bars;
use floor::{Nodes, Script};
use fred::types::Value;
use quorate::Quorate;
use support::{RedisServer, eventually_async};
use tokio::runtime::{self, Runtime};

/// The most that a percentile may be of what it is compared with.
const LIMIT: f64 = 1.2;
/// The same of locking with a token, against locking without.
const TOKEN_LIMIT: f64 = 1.05;
/// Cycles before the other side has its turn.
const BLOCK: usize = 50;
/// Rounds with a stopped server before it goes on: long enough that requests run into their
/// deadlines and its connection is given up, so that all of that is measured.
const STOPPED_ROUNDS: usize = 50;
const WARM_UP: usize = 100;

fn main() {
    let rounds = common::rounds(200);
    let servers: Vec<RedisServer> = (0..10).map(|_| RedisServer::start()).collect();
    let mut bars = Bars::default();
    println!("lock + release{:27}     p50 us    p99 us   count", "");
    for (name, make) in RUNTIMES {
        for nodes in [3, 5] {
            let (floor, ours) = make().block_on(against_the_floor(&servers[..nodes], rounds));
            println!("{name}, {nodes} nodes");
            compare(
                &mut bars,
                (&format!("lock_release_{nodes}{}", suffix(name)), LIMIT),
                [("the same scripts, raw", floor), ("quorate", ours)],
            );
        }
    }
    for (name, make) in RUNTIMES {
        let (without, with) = make().block_on(with_and_without_tokens(&servers[..3], rounds));
        println!("{name}, 3 nodes, only locking");
        compare(
            &mut bars,
            (&format!("token_cost{}", suffix(name)), TOKEN_LIMIT),
            [("without a token", without), ("with a token", with)],
        );
    }
    for (name, make) in RUNTIMES {
        let (healthy, stopped) = make().block_on(with_one_stopped(&servers, rounds));
        println!("{name}, 5 nodes");
        compare(
            &mut bars,
            (&format!("one_stopped_of_5{}", suffix(name)), LIMIT),
            [("quorate, all healthy", healthy), ("quorate, one stopped", stopped)],
        );
    }
    bars.print();
}

const RUNTIMES: [(&str, MakeRuntime); 2] = [
    ("multi-thread", || {
        runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime")
    }),
    ("current-thread", || {
        runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
    }),
];

type MakeRuntime = fn() -> Runtime;

fn suffix(runtime: &str) -> String {
    // The runtime that most programs have is not named.
    if runtime == "multi-thread" {
        String::new()
    } else {
        format!("_{}", runtime.replace('-', "_"))
    }
}

/// Prints both sides, and notes how their percentiles compare.
fn compare(bars: &mut Bars, (name, limit): (&str, f64), sides: [(&str, Vec<Duration>); 2]) {
    let measured = sides.map(|(side, mut times)| {
        times.sort_unstable();
        let at = |percent: usize| times[times.len() * percent / 100].as_secs_f64() * 1e6;
        println!("    {side:30} {:13.1} {:9.1} {:7}", at(50), at(99), times.len());
        [at(50), at(99)]
    });
    for (at, percentile) in ["p50", "p99"].into_iter().enumerate() {
        bars.add(&format!("{name}_{percentile}"), measured[1][at] / measured[0][at], limit);
    }
}

async fn against_the_floor(
    servers: &[RedisServer],
    rounds: usize,
) -> (Vec<Duration>, Vec<Duration>) {
    let raw = Raw::connect(servers).await;
    let ours = Ours::connect(servers).await;
    // In a task, as in a service: the caller of `block_on` stands outside the runtime's workers.
    let measured = tokio::spawn(async move {
        let times = in_turns(&raw, &ours, rounds).await;
        ours.quorum.close().await;
        raw.nodes.close().await;
        times
    });
    measured.await.expect("the measuring task ends")
}

/// Of one client, for two locks.
async fn with_and_without_tokens(
    servers: &[RedisServer],
    rounds: usize,
) -> (Vec<Duration>, Vec<Duration>) {
    let ours = Ours::connect(servers).await;
    let quorum = ours.quorum.clone();
    let other = Ours { quorum: quorum.clone(), name: "bench:bare".to_owned() };
    let (without, with) = (Locking { ours: other, fenced: false }, Locking { ours, fenced: true });
    let measured = tokio::spawn(async move { in_turns(&without, &with, rounds).await });
    let times = measured.await.expect("the measuring task ends");
    quorum.close().await;
    times
}

/// Times of a client whose servers are all healthy, and of one that has one of five stopped: two
/// sets of servers, which change parts from time to time.
async fn with_one_stopped(
    servers: &[RedisServer],
    rounds: usize,
) -> (Vec<Duration>, Vec<Duration>) {
    let (mut healthy, mut stopped) = (Vec::new(), Vec::new());
    let sets: [&[RedisServer]; 2] = [&servers[..5], &servers[5..]];
    let mut sides = [Ours::connect(sets[0]).await, Ours::connect(sets[1]).await];
    for part in 0..rounds.div_ceil(STOPPED_ROUNDS) {
        let sick = part % 2;
        let server = &sets[sick][part % 5];
        server.stop();
        let measured = tokio::spawn(async move {
            let times = in_turns(&sides[1 - sick], &sides[sick], STOPPED_ROUNDS).await;
            (sides, times)
        });
        let (returned, times) = measured.await.expect("the measuring task ends");
        sides = returned;
        healthy.extend(times.0);
        stopped.extend(times.1);
        server.resume();
        let mutex = sides[sick].quorum.mutex(&sides[sick].name);
        eventually_async("every voter answers again", async || {
            let seen = mutex.inspect().await.expect("a majority answers");
            seen.voters.iter().all(|view| view.holder.is_ok())
        })
        .await;
    }
    for side in &sides {
        side.quorum.close().await;
    }
    (healthy, stopped)
}

/// Blocks of both sides in turns; who goes first changes each round.
async fn in_turns(
    one: &impl Side,
    other: &impl Side,
    rounds: usize,
) -> (Vec<Duration>, Vec<Duration>) {
    let (mut ones, mut others) = (Vec::new(), Vec::new());
    block(one, WARM_UP, &mut Vec::new()).await;
    block(other, WARM_UP, &mut Vec::new()).await;
    for round in 0..rounds {
        if round % 2 == 0 {
            block(one, BLOCK, &mut ones).await;
            block(other, BLOCK, &mut others).await;
        } else {
            block(other, BLOCK, &mut others).await;
            block(one, BLOCK, &mut ones).await;
        }
    }
    (ones, others)
}

/// Who locks and releases.
trait Side: Sync {
    /// What it took.
    fn cycle(&self) -> impl Future<Output = Duration> + Send;
}

async fn block(side: &impl Side, cycles: usize, times: &mut Vec<Duration>) {
    for _ in 0..cycles {
        times.push(side.cycle().await);
    }
}

struct Ours {
    quorum: Quorate,
    name: String,
}

impl Ours {
    async fn connect(servers: &[RedisServer]) -> Self {
        let quorum = Quorate::connect(servers.iter().map(RedisServer::url)).await;
        Self { quorum: quorum.expect("the servers answer"), name: "bench:ours".to_owned() }
    }
}

impl Side for Ours {
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures in real time")]
    async fn cycle(&self) -> Duration {
        let started = Instant::now();
        let guard = self.quorum.mutex(&self.name).lock().await.expect("the lock is free");
        guard.release().await.expect("a majority confirms");
        started.elapsed()
    }
}

/// What locking takes, without the release, with a token or without.
struct Locking {
    ours: Ours,
    fenced: bool,
}

impl Side for Locking {
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures in real time")]
    async fn cycle(&self) -> Duration {
        let mutex = self.ours.quorum.mutex(&self.ours.name).fenced(self.fenced);
        let started = Instant::now();
        let guard = mutex.lock().await.expect("the lock is free");
        let took = started.elapsed();
        assert_eq!(guard.token().is_some(), self.fenced);
        guard.release().await.expect("a majority confirms");
        took
    }
}

/// The floor.
struct Raw {
    nodes: Nodes,
    acquire: Script,
    release: Script,
    next: AtomicU64,
}

impl Raw {
    const NAME: &str = "bench:flat";

    async fn connect(servers: &[RedisServer]) -> Self {
        let nodes = Nodes::connect(servers, floor::DEADLINE).await;
        let acquire = nodes.load("mutex/acquire").await;
        let release = nodes.load("mutex/release").await;
        Self { nodes, acquire, release, next: AtomicU64::new(1) }
    }
}

impl Side for Raw {
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures in real time")]
    async fn cycle(&self) -> Duration {
        let started = Instant::now();
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        // As long as ours: the uuid of a client, and a number.
        let hold = Value::from(format!("67e55044-10b1-426f-9247-bb680e5fe0c8:{number}"));
        let keys = floor::keys(Self::NAME);
        self.nodes.majority(&self.acquire, &keys, &floor::asking(hold.clone())).await;
        let channel = floor::channel(Self::NAME);
        let publish = "PUBLISH".into();
        let args = [hold, "0".into(), "".into(), channel, publish, "quorate:calls:".into()];
        self.nodes.majority(&self.release, &keys[..3], &args).await;
        started.elapsed()
    }
}
