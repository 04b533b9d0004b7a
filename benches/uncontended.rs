//! Lock and release without contention, against the floor: the same scripts, sent with the same
//! client library by hand, to the same servers, in the same run.
//!
//! `cargo bench --bench uncontended`; `QUORATE_BENCH_ROUNDS` sets its length (default 200, some 30
//! seconds). It starts its own servers. What counts is the ratio: both sides take turns, block by
//! block, so whatever else the machine does meanwhile falls on both.

#[path = "../tests/support/mod.rs"]
mod support;

use std::{
    env,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use fred::{
    clients::{Client, WithOptions},
    interfaces::ClientLike,
    types::{
        Builder, ClusterHash, CustomCommand, RespVersion, Value,
        config::{Config, Options, ReconnectPolicy},
    },
    util::sha1_hash,
};
use futures::stream::{FuturesUnordered, StreamExt};
use quorate::Quorate;
use support::{RedisServer, eventually_async};
use tokio::runtime::{self, Runtime};

/// The most that a percentile may be of what it is compared with.
const LIMIT: f64 = 1.2;
/// Cycles before the other side has its turn.
const BLOCK: usize = 50;
/// Rounds with a stopped server before it goes on: long enough that requests run into their
/// deadlines and its connection is given up, so that all of that is measured.
const STOPPED_ROUNDS: usize = 50;
const WARM_UP: usize = 100;
const LEASE: &str = "30000";
const DEADLINE: Duration = Duration::from_millis(200);

fn main() {
    let rounds = env::var("QUORATE_BENCH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    let rounds: usize = rounds.unwrap_or(200);
    let servers: Vec<RedisServer> = (0..10).map(|_| RedisServer::start()).collect();
    let mut bars = Vec::new();
    println!("lock + release{:27}     p50 us    p99 us   count", "");
    for (name, make) in RUNTIMES {
        for nodes in [3, 5] {
            let (floor, ours) = make().block_on(against_the_floor(&servers[..nodes], rounds));
            println!("{name}, {nodes} nodes");
            compare(
                &mut bars,
                &format!("lock_release_{nodes}{}", suffix(name)),
                [("the same scripts, raw", floor), ("quorate", ours)],
            );
        }
    }
    for (name, make) in RUNTIMES {
        let (healthy, stopped) = make().block_on(with_one_stopped(&servers, rounds));
        println!("{name}, 5 nodes");
        compare(
            &mut bars,
            &format!("one_stopped_of_5{}", suffix(name)),
            [("quorate, all healthy", healthy), ("quorate, one stopped", stopped)],
        );
    }
    println!();
    for (name, value) in &bars {
        println!("BAR {name} {value:.2} {LIMIT:.2}");
    }
    let missed = bars.iter().filter(|(_, value)| *value > LIMIT).map(|(name, _)| name.as_str());
    let missed: Vec<&str> = missed.collect();
    match missed.len() {
        0 => println!("all bars hold"),
        _ => println!("missed: {}", missed.join(", ")),
    }
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
fn compare(bars: &mut Vec<(String, f64)>, name: &str, sides: [(&str, Vec<Duration>); 2]) {
    let measured = sides.map(|(side, mut times)| {
        times.sort_unstable();
        let at = |percent: usize| times[times.len() * percent / 100].as_secs_f64() * 1e6;
        println!("    {side:30} {:13.1} {:9.1} {:7}", at(50), at(99), times.len());
        [at(50), at(99)]
    });
    for (at, percentile) in ["p50", "p99"].into_iter().enumerate() {
        bars.push((format!("{name}_{percentile}"), measured[1][at] / measured[0][at]));
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
        raw.close().await;
        times
    });
    measured.await.expect("the measuring task ends")
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
    fn cycle(&self) -> impl Future<Output = ()> + Send;
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures in real time")]
async fn block(side: &impl Side, cycles: usize, times: &mut Vec<Duration>) {
    for _ in 0..cycles {
        let started = Instant::now();
        side.cycle().await;
        times.push(started.elapsed());
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
    async fn cycle(&self) {
        let guard = self.quorum.mutex(&self.name).lock().await.expect("the lock is free");
        guard.release().await.expect("a majority confirms");
    }
}

/// What a careful user would write by hand: one client per node, each request sent at most once
/// and with a deadline, an answer at the majority, and nothing dropped that was asked for.
struct Raw {
    clients: Vec<Client>,
    options: Options,
    acquire: Value,
    release: Value,
    next: AtomicU64,
}

impl Raw {
    const NAME: &str = "bench:flat";

    async fn connect(servers: &[RedisServer]) -> Self {
        let script = |wanted| {
            let (_, source) =
                quorate::scripts().find(|(name, _)| *name == wanted).expect("it is ours");
            source
        };
        let scripts = [script("mutex/acquire"), script("mutex/release")];
        let mut clients = Vec::new();
        for server in servers {
            let client = client(server);
            client.init().await.expect("the server answers");
            for source in scripts {
                let load = CustomCommand::new_static("SCRIPT", ClusterHash::Custom(0), false);
                let loaded: Result<Value, _> = client.custom(load, vec!["LOAD", source]).await;
                loaded.expect("the script can be loaded");
            }
            clients.push(client);
        }
        let options = Options {
            timeout: Some(DEADLINE),
            max_attempts: Some(1),
            fail_fast: true,
            ..Options::default()
        };
        let [acquire, release] = scripts.map(|source| sha1_hash(source).into());
        Self { clients, options, acquire, release, next: AtomicU64::new(1) }
    }

    async fn close(&self) {
        for client in &self.clients {
            client.quit().await.expect("the connection ends");
        }
    }

    /// Returns when a majority has answered 1; what is left is heard in the background.
    async fn majority(&self, script: &Value, arguments: [Value; 3]) {
        let key = Value::from(format!("quorate:{{{}}}", Self::NAME));
        let request = |client: &Client| {
            let mut words = Vec::with_capacity(6);
            words.extend([script.clone(), 1.into(), key.clone()]);
            words.extend(arguments.iter().cloned());
            let command = CustomCommand::new_static("EVALSHA", ClusterHash::Custom(0), false);
            let client: WithOptions<Client> = client.with_options(&self.options);
            async move { client.custom::<(i64, i64, String), _>(command, words).await }
        };
        let mut replies: FuturesUnordered<_> = self.clients.iter().map(request).collect();
        let mut granted = 0;
        while granted < self.clients.len() / 2 + 1 {
            match replies.next().await.expect("a majority grants") {
                Ok((1, ..)) => granted += 1,
                other => eprintln!("a node did not grant: {other:?}"),
            }
        }
        tokio::spawn(async move { while replies.next().await.is_some() {} });
    }
}

impl Side for Raw {
    async fn cycle(&self) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        // As long as ours: the uuid of a client, and a number.
        let hold = Value::from(format!("67e55044-10b1-426f-9247-bb680e5fe0c8:{number}"));
        self.majority(&self.acquire, [hold.clone(), "1".into(), LEASE.into()]).await;
        let channel = Value::from(format!("quorate:{{{}}}:wake", Self::NAME));
        self.majority(&self.release, [hold, "0".into(), channel]).await;
    }
}

/// With the settings that ours have.
fn client(server: &RedisServer) -> Client {
    let mut config = Config::from_url(&server.url()).expect("a good address");
    config.version = RespVersion::RESP3;
    Builder::from_config(config)
        .with_connection_config(|connection| {
            connection.max_command_attempts = 1;
            connection.tcp.nodelay = Some(true);
        })
        .set_policy(ReconnectPolicy::new_exponential(0, 10, 500, 2))
        .build()
        .expect("a good configuration")
}
