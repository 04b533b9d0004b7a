//! Lock and release without contention, against the floor: the same scripts, sent with the same
//! client library by hand, to the same servers, in the same run.
//!
//! `cargo bench -p quorate-benches --bench uncontended`; `QUORATE_BENCH_ROUNDS` sets its length
//! (default 200, some 30 seconds). It starts its own servers. What counts is the ratio: both sides
//! take turns, block by block, so whatever else the machine does meanwhile falls on both.

use std::{
    process::ExitCode,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use fred::types::Value;
use quorate::{Quorate, Semaphore, VoterSet};
use quorate_benches::{
    common::{self, Times},
    floor::{self, MUTEX_ACQUIRE, MUTEX_RELEASE, Nodes, Script},
    report::{self, Length, Promised, Report},
};
use quorate_support::{RedisServer, eventually_async};
use tokio::runtime::{self, Runtime};

/// The most that a percentile may be of what it is compared with.
const LIMIT: f64 = 1.2;
/// The same of a permit of a semaphore, against a lock.
const PERMIT_LIMIT: f64 = 1.3;
/// The same of a client whose voters are being replaced by as many others, against one of three:
/// it asks twice as many, and needs both majorities.
const JOINT_LIMIT: f64 = 2.5;
/// The same of locking with a token, against locking without.
const TOKEN_LIMIT: f64 = 1.05;
const BARS: Promised = Promised::always(&[
    "lock_release_3_p50",
    "lock_release_3_p99",
    "lock_release_5_p50",
    "lock_release_5_p99",
    "lock_release_3_current_thread_p50",
    "lock_release_3_current_thread_p99",
    "lock_release_5_current_thread_p50",
    "lock_release_5_current_thread_p99",
    "token_cost_p50",
    "token_cost_p99",
    "token_cost_current_thread_p50",
    "token_cost_current_thread_p99",
    "permit_3_p50",
    "permit_3_p99",
    "permit_3_current_thread_p50",
    "permit_3_current_thread_p99",
    "replaced_3_p50",
    "replaced_3_p99",
    "replaced_3_current_thread_p50",
    "replaced_3_current_thread_p99",
    "one_stopped_of_5_p50",
    "one_stopped_of_5_p99",
    "one_stopped_of_5_current_thread_p50",
    "one_stopped_of_5_current_thread_p99",
]);

fn main() -> ExitCode {
    report::run(BARS, measure)
}

fn measure(length: Length) -> Report {
    let size = Size::of(length);
    let servers = common::servers(10);
    let mut report = Report::default();
    report.table(["measured", "compared with", "median", "99th percentile", "limit"]);
    println!("{:64} {:>9} {:>9} {:>7}", "", "p50 us", "p99 us", "count");
    for runtime in RUNTIMES {
        for nodes in [3, 5] {
            let sides = runtime.start().block_on(against_the_floor(&servers[..nodes], size));
            Comparison {
                bar: format!("lock_release_{nodes}"),
                measured: format!("lock and release, {nodes} servers"),
                with: "the floor",
                limit: LIMIT,
            }
            .print(&mut report, runtime, sides);
        }
    }
    for runtime in RUNTIMES {
        let sides = runtime.start().block_on(with_and_without_tokens(&servers[..3], size));
        Comparison {
            bar: "token_cost".to_owned(),
            measured: "the floor's lock alone, 3 servers, with a token".to_owned(),
            with: "without a token",
            limit: TOKEN_LIMIT,
        }
        .print(&mut report, runtime, sides);
    }
    for runtime in RUNTIMES {
        let sides = runtime.start().block_on(permits_and_locks(&servers[..3], size));
        Comparison {
            bar: "permit_3".to_owned(),
            measured: "acquire and release, 5 of 10 permits taken, 3 servers".to_owned(),
            with: "lock and release",
            limit: PERMIT_LIMIT,
        }
        .print(&mut report, runtime, sides);
    }
    for runtime in RUNTIMES {
        let sides = runtime.start().block_on(in_both_sets(&servers[..6], size));
        Comparison {
            bar: "replaced_3".to_owned(),
            measured: "lock and release, 3 servers being replaced by 3 others".to_owned(),
            with: "3 servers",
            limit: JOINT_LIMIT,
        }
        .print(&mut report, runtime, sides);
    }
    for runtime in RUNTIMES {
        let sides = runtime.start().block_on(with_one_stopped(&servers, size));
        Comparison {
            bar: "one_stopped_of_5".to_owned(),
            measured: "lock and release, one of 5 servers stopped".to_owned(),
            with: "all 5 healthy",
            limit: LIMIT,
        }
        .print(&mut report, runtime, sides);
    }
    report
}

/// How much is measured.
#[derive(Clone, Copy)]
struct Size {
    /// Blocks of each side.
    rounds: usize,
    /// Cycles before the other side has its turn.
    block: usize,
    /// Cycles that are not timed.
    warm_up: usize,
    /// Rounds with a stopped server before it goes on: long enough that requests run into their
    /// deadlines and its connection is given up, so that all of that is measured.
    stopped_rounds: usize,
}

impl Size {
    fn of(length: Length) -> Self {
        let rounds = length.rounds(200, 4);
        let [block, warm_up, stopped_rounds] = length.pick([50, 100, 50], [10, 10, 2]);
        Self { rounds, block, warm_up, stopped_rounds }
    }
}

/// What both sides run on.
#[derive(Clone, Copy)]
enum Threads {
    /// The runtime that most programs have.
    Many,
    One,
}

const RUNTIMES: [Threads; 2] = [Threads::Many, Threads::One];

impl Threads {
    fn start(self) -> Runtime {
        let mut builder = match self {
            Self::Many => runtime::Builder::new_multi_thread(),
            Self::One => runtime::Builder::new_current_thread(),
        };
        builder.enable_all().build().expect("a runtime")
    }
}

struct Comparison {
    bar: String,
    measured: String,
    with: &'static str,
    limit: f64,
}

/// Times of what is compared with, and of what is measured.
struct Sides {
    with: Vec<Duration>,
    measured: Vec<Duration>,
}

impl Comparison {
    /// Prints both sides, and reports how their percentiles compare.
    fn print(self, report: &mut Report, runtime: Threads, sides: Sides) {
        let Self { mut bar, mut measured, with, limit } = self;
        if let Threads::One = runtime {
            bar.push_str("_current_thread");
            measured.push_str(", one thread");
        }
        let sides = [(with, sides.with), (&measured, sides.measured)];
        let [with_us, measured_us] = sides.map(|(side, times)| {
            let times = Times::new(times);
            let (p50, p99) = (times.percentile(50), times.percentile(99));
            println!("    {side:60} {p50:9.1} {p99:9.1} {:7}", times.count());
            [p50, p99]
        });
        let p50 = report.bar(&format!("{bar}_p50"), measured_us[0] / with_us[0], limit);
        let p99 = report.bar(&format!("{bar}_p99"), measured_us[1] / with_us[1], limit);
        report.row([measured, with.to_owned(), p50, p99, format!("{limit:.2}")]);
    }
}

async fn against_the_floor(servers: &[RedisServer], size: Size) -> Sides {
    let raw = Raw::connect(servers).await;
    let ours = Ours::connect(servers).await;
    // In a task, as in a service: the caller of `block_on` stands outside the runtime's workers.
    let measured = tokio::spawn(async move {
        let times = in_turns(&raw, &ours, size).await;
        drop(ours.quorum.close().await);
        raw.nodes.close().await;
        times
    });
    measured.await.expect("the measuring task ends")
}

/// Of the floor: every exclusive lock of the library has a token.
async fn with_and_without_tokens(servers: &[RedisServer], size: Size) -> Sides {
    let without = Locking { raw: Raw::connect(servers).await, asking: floor::asking_bare };
    let with = Locking { raw: Raw::connect(servers).await, asking: floor::asking };
    let measured = tokio::spawn(async move {
        let times = in_turns(&without, &with, size).await;
        without.raw.nodes.close().await;
        with.raw.nodes.close().await;
        times
    });
    measured.await.expect("the measuring task ends")
}

/// Of a semaphore of which half is taken all along.
async fn permits_and_locks(servers: &[RedisServer], size: Size) -> Sides {
    let locks = Ours::connect(servers).await;
    let quorum = Ours::connect(servers).await.quorum;
    let semaphore = quorum.semaphore("bench:permits", 10);
    let taken = semaphore.acquire_many(5).await.expect("all are free");
    let permits = Permits { semaphore };
    let measured = tokio::spawn(async move {
        let times = in_turns(&locks, &permits, size).await;
        taken.release().await.expect("a majority confirms");
        drop(locks.quorum.close().await);
        drop(quorum.close().await);
        times
    });
    measured.await.expect("the measuring task ends")
}

/// Of a client with the first half of the servers, and of one in which the others replace them.
async fn in_both_sets(servers: &[RedisServer], size: Size) -> Sides {
    let (old, new) = servers.split_at(servers.len() / 2);
    let one = Ours::connect(old).await;
    // Of names of its own: those of one name take the steps of a change in turn.
    let builder = Quorate::builder().voters(new.iter().map(RedisServer::url)).prefix("replaced");
    let builder = builder.replacing(VoterSet::new().voters(old.iter().map(RedisServer::url)));
    let quorum = builder.voter_configuration(2).connect().await.expect("the servers answer");
    let both = Ours { quorum, name: "bench:ours".to_owned() };
    let measured = tokio::spawn(async move {
        let times = in_turns(&one, &both, size).await;
        drop(one.quorum.close().await);
        drop(both.quorum.close().await);
        times
    });
    measured.await.expect("the measuring task ends")
}

/// Times of a client whose servers are all healthy, and of one that has one of five stopped: two
/// sets of servers, which change parts from time to time.
async fn with_one_stopped(servers: &[RedisServer], size: Size) -> Sides {
    let mut all = Sides { with: Vec::new(), measured: Vec::new() };
    let sets: [&[RedisServer]; 2] = [&servers[..5], &servers[5..]];
    let mut sides = [Ours::connect(sets[0]).await, Ours::connect(sets[1]).await];
    for part in 0..size.rounds.div_ceil(size.stopped_rounds) {
        let sick = part % 2;
        let server = &sets[sick][part % 5];
        server.stop();
        let measured = tokio::spawn(async move {
            let part = Size { rounds: size.stopped_rounds, ..size };
            let times = in_turns(&sides[1 - sick], &sides[sick], part).await;
            (sides, times)
        });
        let (returned, times) = measured.await.expect("the measuring task ends");
        sides = returned;
        all.with.extend(times.with);
        all.measured.extend(times.measured);
        server.resume();
        let mutex = sides[sick].quorum.mutex(&sides[sick].name);
        eventually_async("every voter answers again", async || {
            let seen = mutex.inspect().await.expect("a majority answers");
            seen.voters.iter().all(|view| view.state.is_ok())
        })
        .await;
    }
    for side in &sides {
        drop(side.quorum.close().await);
    }
    all
}

/// Blocks of both sides in turns; who goes first changes each round.
async fn in_turns(with: &impl Side, measured: &impl Side, size: Size) -> Sides {
    let mut sides = Sides { with: Vec::new(), measured: Vec::new() };
    block(with, size.warm_up, &mut Vec::new()).await;
    block(measured, size.warm_up, &mut Vec::new()).await;
    for round in 0..size.rounds {
        if round % 2 == 0 {
            block(with, size.block, &mut sides.with).await;
            block(measured, size.block, &mut sides.measured).await;
        } else {
            block(measured, size.block, &mut sides.measured).await;
            block(with, size.block, &mut sides.with).await;
        }
    }
    sides
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
        let quorum = common::builder(servers.iter().map(RedisServer::url)).connect().await;
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

/// Takes a permit that is free, and gives it back.
struct Permits {
    semaphore: Semaphore,
}

impl Side for Permits {
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures in real time")]
    async fn cycle(&self) -> Duration {
        let started = Instant::now();
        let guard = self.semaphore.acquire().await.expect("a permit is free");
        guard.release().await.expect("a majority confirms");
        started.elapsed()
    }
}

/// What locking takes the floor, without the release, with a token or without.
struct Locking {
    raw: Raw,
    asking: fn(Value) -> [Value; 7],
}

impl Side for Locking {
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures in real time")]
    async fn cycle(&self) -> Duration {
        let started = Instant::now();
        let hold = self.raw.acquire(self.asking).await;
        let took = started.elapsed();
        self.raw.release(hold).await;
        took
    }
}

/// The floor.
struct Raw {
    nodes: Nodes,
    acquire: Script<4, 7>,
    release: Script<3, 7>,
    next: AtomicU64,
}

impl Raw {
    const NAME: &str = "bench:flat";

    async fn connect(servers: &[RedisServer]) -> Self {
        let nodes = Nodes::connect(servers, floor::DEADLINE).await;
        let acquire = nodes.load(&MUTEX_ACQUIRE).await;
        let release = nodes.load(&MUTEX_RELEASE).await;
        Self { nodes, acquire, release, next: AtomicU64::new(1) }
    }

    /// Its hold.
    async fn acquire(&self, asking: fn(Value) -> [Value; 7]) -> Value {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        // As long as ours: the uuid of a client, and a number.
        let hold = Value::from(format!("67e55044-10b1-426f-9247-bb680e5fe0c8:{number}"));
        let keys = floor::keys(Self::NAME);
        self.nodes.majority(&self.acquire, &keys, &asking(hold.clone())).await;
        hold
    }

    async fn release(&self, hold: Value) {
        let (keys, leaving) = (floor::keys(Self::NAME), floor::leaving(hold, "".into()));
        self.nodes.majority(&self.release, floor::first_three(&keys), &leaving).await;
    }
}

impl Side for Raw {
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures in real time")]
    async fn cycle(&self) -> Duration {
        let started = Instant::now();
        let hold = self.acquire(floor::asking).await;
        self.release(hold).await;
        started.elapsed()
    }
}
