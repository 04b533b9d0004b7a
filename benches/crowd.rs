//! A crowd of clients, as of a fleet of processes, that all want one mutex once, over three
//! servers: how long it takes until the last one has had it, and how often they ask for it.
//!
//! `cargo bench -p quorate-benches --bench crowd`; `QUORATE_BENCH_ROUNDS` sets how many rounds of
//! each kind are run (default 3, some two minutes in all). It starts its own servers.
//!
//! Every client has its own connections, as if it were a process of its own, and lives on the
//! runtime of the bench: the one thread of all clients of a process is no fleet's. In the first kind of
//! round all have just connected, as a fleet after a deployment, and ask at the same moment for a
//! lock that is free: a fair mutex, and then, other clients, a mutex. In the second, which follows,
//! all wait for a holder; a third of them belong to a process that is then killed, and the holder
//! gives the lock back.

use std::{
    env,
    io::{self, BufRead, Write},
    process::ExitCode,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use futures::{StreamExt, stream};
use quorate::{Error, Mutex, MutexGuard, Quorate};
use quorate_benches::{
    common,
    report::{self, Length, Promised, Report},
    tally::Attempts,
};
use quorate_support::{RedisServer, Worker};
use tokio::{runtime::Handle, task::JoinSet, time};

const CROWDS: &[usize] = &[30, 100, 300, 1000];
const SHORT_CROWDS: &[usize] = &[6, 15];
/// So many connect at once: more would keep the servers from answering in time.
const CONNECTING: usize = 20;
/// The most that it may take until all have had the lock, in seconds.
const TIME_LIMIT: f64 = 2.0;
/// The most attempts for each that gets it, whatever their number.
const ATTEMPTS_LIMIT: f64 = 8.0;
/// Until those who wait have asked, and nobody asks at this moment.
const SETTLE: Duration = Duration::from_secs(1);
const LOCK: &str = "crowd";
const BARS: Promised = Promised {
    long: &[
        "crowd_seconds_1000",
        "crowd_seconds_1000_third_killed",
        "crowd_attempts_per_grant_30",
        "crowd_attempts_per_grant_100",
        "crowd_attempts_per_grant_300",
        "crowd_attempts_per_grant_1000",
        "crowd_failures",
    ],
    short: &["crowd_attempts_per_grant_6", "crowd_attempts_per_grant_15", "crowd_failures"],
};

/// One round of a crowd.
struct Round {
    took: Duration,
    attempts: f64,
    failures: usize,
}

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    if arguments.next().as_deref() == Some("wait") {
        common::in_a_task(wait_until_killed(arguments.collect()));
        return ExitCode::FAILURE;
    }
    report::run(BARS, |length| common::in_a_task(measure(length)))
}

async fn measure(length: Length) -> Report {
    let (crowds, rounds) = (length.pick(CROWDS, SHORT_CROWDS), length.rounds(3, 1));
    let attempts = Attempts::record();
    let servers = common::servers(3);
    let (mut report, mut failures) = (Report::default(), 0);
    report.table([
        "clients",
        "all at once: seconds until the last has had it",
        "attempts per grant",
        "a fair mutex, all at once: seconds",
        "a third of the waiters killed: seconds",
        "attempts per grant",
    ]);
    println!("clients   seconds  attempts per grant");
    for &count in crowds {
        let (mut at_once, mut in_order, mut killed) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            let clients = connect(&servers, count).await;
            in_order.push(everybody(fair, &clients, &attempts, async || {}).await);
            common::close(clients).await;
            let clients = connect(&servers, count).await;
            at_once.push(everybody(plain, &clients, &attempts, async || {}).await);
            killed.push(third_killed(&servers, &clients, &attempts).await);
            common::close(clients).await;
        }
        let all = at_once.iter().chain(&in_order).chain(&killed);
        failures += all.map(|round| round.failures).sum::<usize>();
        let [at_once, in_order, killed] = [at_once, in_order, killed].map(median);
        let kinds = [("", &at_once), ("  fair", &in_order), ("  a third killed", &killed)];
        for (what, round) in kinds {
            let seconds = round.took.as_secs_f64();
            println!("{count:7} {seconds:9.2} {:9.2}{what}", round.attempts);
        }
        let seconds = |round: &Round| round.took.as_secs_f64();
        let mut time = [&at_once, &killed].map(|round| format!("{:.2}", seconds(round)));
        if count == 1000 {
            time[0] = report.bar("crowd_seconds_1000", seconds(&at_once), TIME_LIMIT);
            let name = "crowd_seconds_1000_third_killed";
            time[1] = report.bar(name, seconds(&killed), TIME_LIMIT);
        }
        let most = at_once.attempts.max(killed.attempts);
        report.bar(&format!("crowd_attempts_per_grant_{count}"), most, ATTEMPTS_LIMIT);
        let [time, killed_time] = time;
        let in_order = format!("{:.2}", seconds(&in_order));
        let [asked, killed_asked] = [at_once, killed].map(|round| format!("{:.2}", round.attempts));
        report.row([count.to_string(), time, asked, in_order, killed_time, killed_asked]);
    }
    #[expect(clippy::cast_precision_loss, reason = "there are few")]
    report.bar("crowd_failures", failures as f64, 0.0);
    report
}

/// The round that took neither the most nor the least time.
fn median(mut rounds: Vec<Round>) -> Round {
    rounds.sort_by_key(|round| round.took);
    rounds.swap_remove(rounds.len() / 2)
}

/// Clients with the settings that users have by default.
async fn connect(servers: &[RedisServer], count: usize) -> Vec<Quorate> {
    let urls: Vec<String> = servers.iter().map(RedisServer::url).collect();
    connect_to(&urls, count).await
}

async fn connect_to(urls: &[String], count: usize) -> Vec<Quorate> {
    // One thread for all of them would be what no fleet has.
    let builder = Quorate::builder().voters(urls).runtime(Handle::current());
    let connecting = (0..count).map(|_| builder.clone().connect());
    let clients = stream::iter(connecting).buffer_unordered(CONNECTING);
    clients.map(|client| client.expect("the servers answer")).collect().await
}

fn plain(client: &Quorate) -> Mutex {
    client.mutex(LOCK)
}

fn fair(client: &Quorate) -> Mutex {
    client.fair_mutex(LOCK)
}

/// They wait for a holder, and so do half as many clients of a process that is killed before the
/// holder gives the lock back.
async fn third_killed(servers: &[RedisServer], clients: &[Quorate], attempts: &Attempts) -> Round {
    let holder = connect(servers, 1).await.remove(0);
    let guard = holder.mutex(LOCK).lock().await.expect("it is free");
    let program = env::current_exe().expect("it has a path");
    let arguments = ["wait".to_owned(), (clients.len() / 2).to_string()];
    let urls = servers.iter().map(RedisServer::url);
    let mut doomed = Worker::start(&program, arguments.into_iter().chain(urls));
    assert_eq!(doomed.says(), "waiting");
    let round = everybody(plain, clients, attempts, async || {
        time::sleep(SETTLE).await;
        doomed.kill();
        guard.release().await.expect("all confirm");
    })
    .await;
    drop(holder.close().await);
    round
}

/// Everybody locks and releases once. The time counts from the end of `begin`, which runs while
/// they wait.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures in real time")]
async fn everybody(
    lock: fn(&Quorate) -> Mutex,
    clients: &[Quorate],
    attempts: &Attempts,
    begin: impl AsyncFnOnce(),
) -> Round {
    let asked = || attempts.plain.load(Ordering::Relaxed) + attempts.fair.load(Ordering::Relaxed);
    let before = asked();
    let mut waiters = JoinSet::new();
    for client in clients {
        let mutex = lock(client);
        waiters.spawn(async move { mutex.lock().await?.release().await });
    }
    begin().await;
    let started = Instant::now();
    let ends: Vec<Result<(), Error>> = waiters.join_all().await;
    let took = started.elapsed();
    let failed = ends.into_iter().filter_map(Result::err);
    let failures = failed.inspect(|error| println!("{error}")).count();
    #[expect(clippy::cast_precision_loss, reason = "there are few")]
    let attempts = (asked() - before) as f64 / clients.len() as f64;
    Round { took, attempts, failures }
}

/// The process that is killed: its clients wait for the lock.
async fn wait_until_killed(arguments: Vec<String>) {
    let [count, urls @ ..] = &arguments[..] else { panic!("no arguments") };
    let clients = connect_to(urls, count.parse().expect("a number")).await;
    let mut waiters: JoinSet<Result<MutexGuard, Error>> = JoinSet::new();
    for client in clients {
        waiters.spawn(async move { client.mutex(LOCK).lock().await });
    }
    println!("waiting");
    io::stdout().flush().expect("it is heard");
    // It ends by being killed; where its parent has gone first, with its input.
    tokio::task::spawn_blocking(|| io::stdin().lock().lines().count()).await.expect("it ends");
}
