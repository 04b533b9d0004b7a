//! Many tasks of one client that ask at the same moment: how long until the last has had its lock,
//! how many fail, and how much memory each takes meanwhile. Their client has just connected.
//!
//! `cargo bench -p quorate-benches --bench waiters`, about a minute, on Linux. It starts its own
//! servers. The client has default settings.

#![expect(clippy::disallowed_methods, reason = "a benchmark measures in real time")]

use std::{process::ExitCode, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use quorate::{Error, Quorate};
use quorate_benches::{
    common,
    report::{self, Length, Promised, Report},
};
use quorate_support::RedisServer;
use tokio::{
    task::{JoinHandle, JoinSet},
    time::{Instant, sleep},
};

const BARS: Promised = Promised {
    long: &[
        "failed_own_10000",
        "seconds_mutex_10000",
        "failed_mutex_10000",
        "seconds_fair_10000",
        "failed_fair_10000",
        "seconds_read_10000",
        "failed_read_10000",
        "failed_permit_10000",
        "kib_fair_10000",
    ],
    short: &[
        "failed_own_200",
        "failed_mutex_200",
        "failed_fair_200",
        "failed_read_200",
        "failed_permit_200",
    ],
};

/// What every task wants once.
#[derive(Clone, Copy)]
struct Wish {
    wanted: &'static str,
    bar: &'static str,
    servers: usize,
    /// The most seconds until the last has had it; none is set where each has a lock of its own.
    limit: Option<f64>,
}

const WISHES: [Wish; 5] = [
    Wish { wanted: "a mutex of its own", bar: "own", servers: 5, limit: None },
    Wish { wanted: "one mutex", bar: "mutex", servers: 3, limit: Some(5.0) },
    Wish { wanted: "one fair mutex", bar: "fair", servers: 3, limit: Some(5.0) },
    Wish { wanted: "to read one lock", bar: "read", servers: 3, limit: Some(2.0) },
    Wish { wanted: "one of 5 permits", bar: "permit", servers: 3, limit: None },
];

/// What it came to.
struct Entered {
    seconds: f64,
    failed: u32,
    /// At the highest, for each task.
    kib: f64,
}

fn main() -> ExitCode {
    report::run(BARS, measure)
}

fn measure(length: Length) -> Report {
    let mut report = Report::default();
    report.table([
        "tasks",
        "each wants",
        "servers",
        "seconds until the last has had it",
        "failed",
        "KiB for each task, at most",
    ]);
    for &count in length.pick(&[1_000, 10_000][..], &[200]) {
        for wish in WISHES {
            let Wish { wanted, bar, servers, limit } = wish;
            let entered = common::in_a_task(enter(wish, count));
            let seconds = match limit {
                Some(limit) => {
                    report.bar(&format!("seconds_{bar}_{count}"), entered.seconds, limit)
                }
                None => format!("{:.2}", entered.seconds),
            };
            let failed = report.bar(&format!("failed_{bar}_{count}"), entered.failed.into(), 0.0);
            let kib = report.bar(&format!("kib_{bar}_{count}"), entered.kib, 10.0);
            let row = [count.to_string(), wanted.to_owned(), servers.to_string()];
            let [count, wanted, servers] = row;
            report.row([count, wanted, servers, seconds, failed, kib]);
        }
    }
    report
}

async fn enter(wish: Wish, count: u32) -> Entered {
    let servers = common::servers(wish.servers);
    let urls = servers.iter().map(RedisServer::url);
    let client = Quorate::connect(urls).await.expect("the servers answer");
    let before = common::resident();
    let highest = watch_memory();
    let (mut tasks, mut failed, started) = (JoinSet::new(), 0, Instant::now());
    for number in 0..count {
        tasks.spawn(once(client.clone(), wish, number));
    }
    while let Some(done) = tasks.join_next().await {
        failed += u32::from(done.expect("no panic").is_err());
    }
    let seconds = started.elapsed().as_secs_f64();
    let highest = highest.stop().await;
    drop(client.close().await);
    Entered { seconds, failed, kib: (highest - before).max(0.0) / 1024.0 / f64::from(count) }
}

/// Boxed by what is wanted: a task has no room for the others.
fn once(client: Quorate, wish: Wish, number: u32) -> BoxFuture<'static, Result<(), Error>> {
    match wish.bar {
        "own" => {
            async move { client.mutex(number.to_string()).lock().await?.release().await }.boxed()
        }
        "mutex" => async move { client.mutex("one").lock().await?.release().await }.boxed(),
        "fair" => async move { client.fair_mutex("one").lock().await?.release().await }.boxed(),
        "permit" => {
            async move { client.semaphore("one", 5).acquire().await?.release().await }.boxed()
        }
        _ => async move { client.rw_lock("one").read().await?.release().await }.boxed(),
    }
}

/// Looks at the memory of this process again and again.
struct Highest {
    looking: JoinHandle<f64>,
    over: tokio::sync::oneshot::Sender<()>,
}

fn watch_memory() -> Highest {
    let (over, mut ended) = tokio::sync::oneshot::channel();
    let looking = tokio::spawn(async move {
        let mut highest = common::resident();
        while ended.try_recv().is_err() {
            sleep(Duration::from_millis(5)).await;
            highest = highest.max(common::resident());
        }
        highest
    });
    Highest { looking, over }
}

impl Highest {
    async fn stop(self) -> f64 {
        let _ = self.over.send(());
        self.looking.await.expect("no panic")
    }
}
