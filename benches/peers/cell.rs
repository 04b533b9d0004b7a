//! One turn of one library: its tasks take and give back locks for a while.

#![expect(clippy::disallowed_methods, reason = "a benchmark measures in real time")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use quorate_benches::{common::Times, report::Length};
use quorate_peers::usage::{processor_time, used_by};
use quorate_support::RedisServer;
use tokio::{runtime::Runtime, task::JoinSet, time::sleep};

use crate::side::Side;

/// What one turn came to.
#[derive(Debug)]
pub(crate) struct Cell {
    times: Times,
    failed: u32,
    within: Duration,
    /// Processor time.
    client: Duration,
    servers: Duration,
}

/// The medians of all turns; times in microseconds, processor time for each lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) rate: f64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
    pub(crate) client: f64,
    pub(crate) servers: f64,
    /// In all turns.
    pub(crate) failed: u32,
}

impl Cell {
    pub(crate) fn measure(
        runtime: &Runtime,
        side: &Side,
        servers: &[RedisServer],
        tasks: usize,
        length: Length,
    ) -> Self {
        let within = length.pick(Duration::from_millis(400), Duration::from_millis(50));
        // What connects, loads and allocates at first is not measured.
        runtime.block_on(run(side, tasks, within / 4));
        let (ours, theirs) = (processor_time(), used_by(servers));
        let started = Instant::now();
        let (times, failed) = runtime.block_on(run(side, tasks, within));
        let within = started.elapsed();
        let client = processor_time().saturating_sub(ours);
        let servers = used_by(servers).saturating_sub(theirs);
        Self { times: Times::new(times), failed, within, client, servers }
    }

    fn each(&self, time: Duration) -> f64 {
        time.as_secs_f64() * 1e6 / f64::from(self.count())
    }

    fn count(&self) -> u32 {
        u32::try_from(self.times.count()).expect("not that many")
    }
}

impl Figures {
    pub(crate) fn median(cells: &[Cell]) -> Self {
        let median = |of: &dyn Fn(&Cell) -> f64| {
            let mut values: Vec<f64> = cells.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        Self {
            rate: median(&|cell| f64::from(cell.count()) / cell.within.as_secs_f64()),
            p50: median(&|cell| cell.times.permille(500)),
            p99: median(&|cell| cell.times.permille(990)),
            p999: median(&|cell| cell.times.permille(999)),
            client: median(&|cell| cell.each(cell.client)),
            servers: median(&|cell| cell.each(cell.servers)),
            failed: cells.iter().map(|cell| cell.failed).sum(),
        }
    }
}

/// How long each lock took, until it was given back, and how many failed.
async fn run(side: &Side, tasks: usize, within: Duration) -> (Vec<Duration>, u32) {
    let over = Arc::new(AtomicBool::new(false));
    let mut running = JoinSet::new();
    for task in 0..tasks {
        let (side, over) = (side.clone(), Arc::clone(&over));
        running.spawn(async move {
            let (mut times, mut failed) = (Vec::new(), 0);
            let name = format!("peers:{task}");
            while !over.load(Ordering::Relaxed) {
                let started = Instant::now();
                match side.lock_and_release(&name).await {
                    Ok(()) => times.push(started.elapsed()),
                    Err(_) => failed += 1,
                }
            }
            (times, failed)
        });
    }
    sleep(within).await;
    over.store(true, Ordering::Relaxed);
    let (mut times, mut failed) = (Vec::new(), 0);
    while let Some(done) = running.join_next().await {
        let (took, lost) = done.expect("no panic");
        times.extend(took);
        failed += lost;
    }
    (times, failed)
}
