//! What it costs to be seen: lock and release without contention while somebody listens to the
//! metrics or to the log, against the same client while nobody does.
//!
//! `cargo bench --bench observed`; `QUORATE_BENCH_ROUNDS` sets its length (default 200, some 20
//! seconds). It starts its own servers. All sides take turns, block by block, on one thread, so
//! whatever else the machine does meanwhile falls on all of them.

mod common;
#[path = "../tests/support/mod.rs"]
mod support;

use std::{
    io,
    time::{Duration, Instant},
};

use common::Bars;
use metrics::NoopRecorder;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusRecorder};
use quorate::{Mutex, metric};
use support::RedisServer;
use tracing::{Dispatch, Level, level_filters::LevelFilter};

/// The most that the median may be of what it is where nobody listens.
const LIMIT: f64 = 1.05;
/// Cycles before another side has its turn.
const BLOCK: usize = 50;

/// Who listens.
enum Side {
    Nobody,
    /// A recorder that does nothing, as when none is installed, but asked for each metric.
    Noop,
    Prometheus(Box<PrometheusRecorder>),
    /// Formats everything from a level on, and writes it nowhere.
    Log(Dispatch),
}

fn main() {
    let rounds = common::rounds(200);
    let servers: Vec<RedisServer> = (0..3).map(|_| RedisServer::start()).collect();
    let sides = [
        ("nobody", Side::Nobody),
        ("no-op recorder", Side::Noop),
        ("Prometheus", Side::Prometheus(Box::new(prometheus()))),
        ("log at info", log(Level::INFO)),
        ("log at debug", log(Level::DEBUG)),
    ];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let times = runtime.expect("a runtime").block_on(measure(&servers, &sides, rounds));
    println!("lock + release, 3 nodes, heard by     p50 us    p99 us   count");
    let mut bars = Bars::default();
    let mut alone = None;
    for ((name, _), mut times) in sides.iter().zip(times) {
        times.sort_unstable();
        let at = |percent: usize| times[times.len() * percent / 100].as_secs_f64() * 1e6;
        println!("    {name:27} {:12.1} {:9.1} {:7}", at(50), at(99), times.len());
        match alone {
            None => alone = Some(at(50)),
            Some(alone) => {
                let name = name.to_lowercase().replace([' ', '-'], "_");
                bars.add(&format!("observed_by_{name}_p50"), at(50) / alone, LIMIT);
            }
        }
    }
    bars.print();
}

/// As the documentation says that it is set up.
fn prometheus() -> PrometheusRecorder {
    let with_buckets = metric::ALL.iter().filter(|metric| !metric.buckets.is_empty());
    let builder = with_buckets.fold(PrometheusBuilder::new(), |builder, metric| {
        let name = Matcher::Full(metric.name.to_owned());
        builder.set_buckets_for_metric(name, metric.buckets).expect("there are some")
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
    client.close().await;
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
