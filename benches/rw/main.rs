//! The read/write lock over five nodes: what reading one lock costs where many do, and how long a
//! writer waits for readers that come and go.
//!
//! `cargo bench -p quorate-benches --bench rw`; `QUORATE_BENCH_ROUNDS` sets its length (default 30,
//! about a minute). It starts its own servers. What counts are ratios: both sides of each take
//! turns, or are measured at the same moment, so whatever else the machine does falls on both.

mod entering;
mod reading;

use std::{process::ExitCode, time::Duration};

use entering::Tries;
use quorate::Preference;
use quorate_benches::{
    common,
    report::{self, Length, Promised, Report},
};

/// How many read at once.
const READERS: &[usize] = &[1, 16, 256];
const SHORT_READERS: &[usize] = &[1, 16];
/// How many read, come and go where a writer wants to enter.
const CROWD: usize = 100;
const SHORT_CROWD: usize = 20;
const BARS: Promised = Promised {
    long: &[
        "read_cost_1",
        "read_cost_16",
        "read_cost_256",
        "writer_among_100_writers",
        "writer_among_100_fair",
    ],
    short: &["read_cost_1", "read_cost_16", "writer_among_20_writers", "writer_among_20_fair"],
};

fn main() -> ExitCode {
    report::run(BARS, |length| common::in_a_task(measure(length)))
}

async fn measure(length: Length) -> Report {
    let rounds = length.rounds(30, 2);
    let servers = common::servers(5);
    let mut report = Report::default();
    println!("enter + leave              per second  / mutex   client us  servers us   script us");
    report.table([
        "tasks",
        "time to read and release one lock of all / to lock and release a mutex of its own",
        "limit",
    ]);
    for &readers in length.pick(READERS, SHORT_READERS) {
        println!("{readers} at once");
        let block = Duration::from_millis(length.pick(200, 50));
        reading::compare(&mut report, &servers, readers, rounds, block).await;
    }
    println!("\na writer among readers{:9}     entered    p50 ms  floor ms  p50/floor", "");
    let crowd = length.pick(CROWD, SHORT_CROWD);
    let writer = format!("a writer among {crowd} readers");
    report.table([&writer, "entered", "time to enter / floor", "limit"]);
    for preference in [Preference::Writers, Preference::Fair, Preference::Readers] {
        let tries = Tries::of(preference, length, rounds);
        entering::among(&mut report, &servers, crowd, preference, tries).await;
    }
    report
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}
