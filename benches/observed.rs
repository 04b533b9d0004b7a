//! What it costs to be seen: lock and release without contention while somebody listens to the
//! metrics or to the log, against the same client while nobody does.
//!
//! `cargo bench -p quorate-benches --bench observed`; `QUORATE_BENCH_ROUNDS` sets its length
//! (default 200, some 20 seconds). It starts its own servers. All sides take turns, block by block,
//! on one thread, so whatever else the machine does meanwhile falls on all of them.

use std::{
    io,
    process::ExitCode,
    time::{Duration, Instant},
};

use metrics::NoopRecorder;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusRecorder};
use quorate::{Mutex, metric};
use quorate_benches::{
    common::{self, Times},
    report::{self, Length, Promised, Report},
};
use quorate_support::RedisServer;
use tracing::{Dispatch, Level, level_filters::LevelFilter};

/// The most that the median may be of what it is where nobody listens.
const LIMIT: f64 = 1.05;
/// Cycles before another side has its turn.
const BLOCK: usize = 50;
const BARS: Promised = Promised::always(&[
    "observed_by_no_op_recorder_p50",
    "observed_by_prometheus_p50",
    "observed_by_log_at_info_p50",
    "observed_by_log_at_debug_p50",
]);

/// Who listens.
enum Side {
    Nobody,
    /// A recorder that does nothing, as when none is installed, but asked for each metric.
    Noop,
    Prometheus(Box<PrometheusRecorder>),
    /// Formats everything from a level on, and writes it nowhere.
    Log(Dispatch),
}

fn main() -> ExitCode {
    report::run(BARS, compare)
}

fn compare(length: Length) -> Report {
    let rounds = length.rounds(200, 4);
    let servers = common::servers(3);
    let sides = [
        ("nobody", Side::Nobody),
        ("no-op recorder", Side::Noop),
        ("Prometheus", Side::Prometheus(Box::new(prometheus()))),
        ("log at info", log(Level::INFO)),
        ("log at debug", log(Level::DEBUG)),
    ];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let times = runtime.expect("a runtime").block_on(measure(&servers, &sides, rounds));
    let mut report = Report::default();
    report.table(["lock and release, heard by", "median / unheard", "limit"]);
    println!("lock + release, 3 nodes, heard by     p50 us    p99 us   count");
    let mut alone = None;
    for ((name, _), times) in sides.iter().zip(times) {
        let times = Times::new(times);
        let (p50, p99) = (times.percentile(50), times.percentile(99));
        println!("    {name:27} {p50:12.1} {p99:9.1} {:7}", times.count());
        match alone {
            None => alone = Some(p50),
            Some(alone) => {
                let bar = name.to_lowercase().replace([' ', '-'], "_");
                let cell = report.bar(&format!("observed_by_{bar}_p50"), p50 / alone, LIMIT);
                report.row([(*name).to_owned(), cell, format!("{LIMIT:.2}")]);
            }
        }
    }
    report
}

/// As the documentation says that it is set up.
fn prometheus() -> PrometheusRecorder {
    let builder = metric::buckets().fold(PrometheusBuilder::new(), |builder, (name, buckets)| {
        let name = Matcher::Full(name.to_owned());
        builder.set_buckets_for_metric(name, buckets).expect("there are some")
    });
    builder.build_recorder()
}

fn log(level: Level) -> Side {
    let log = tracing_subscriber::fmt().with_max_level(LevelFilter::from_level(level));
    Side::Log(Dispatch::new(log.with_writer(io::sink).finish()))
}

async fn measure(
    servers: &[RedisServer],
    sides: &[(&str, Side)],
    rounds: usize,
) -> Vec<Vec<Duration>> {
    let client = common::clients(servers, 1, |builder| builder).await.remove(0);
    let mutex = client.mutex("bench");
    let mut times = vec![Vec::new(); sides.len()];
    for round in 0..=rounds {
        for place in 0..sides.len() {
            // Who goes first changes each round.
            let side = (round + place) % sides.len();
            let took = block(&mutex, &sides[side].1).await;
            // The first round is for warming up.
            if round > 0 {
                times[side].extend(took);
            }
        }
    }
    drop(client.close().await);
    times
}

/// The tasks of the client run on this thread, so they are heard as well.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures in real time")]
async fn block(mutex: &Mutex, side: &Side) -> Vec<Duration> {
    let _recording = match side {
        Side::Noop => Some(metrics::set_default_local_recorder(&NoopRecorder)),
        Side::Prometheus(recorder) => Some(metrics::set_default_local_recorder(&**recorder)),
        Side::Nobody | Side::Log(_) => None,
    };
    let _listening = match side {
        Side::Log(log) => Some(tracing::dispatcher::set_default(log)),
        _ => None,
    };
    let mut times = Vec::with_capacity(BLOCK);
    for _ in 0..BLOCK {
        let started = Instant::now();
        let guard = mutex.lock().await.expect("nobody else wants it");
        guard.release().await.expect("all confirm");
        times.push(started.elapsed());
    }
    times
}
