//! What a lock costs beside other libraries: each takes and gives back locks of its own names, on
//! the same servers, in turns.
//!
//! `cargo bench -p quorate-peers --bench peers`, about seven minutes; `QUORATE_BENCH_ROUNDS` sets
//! how often each has its turn (default 5), `QUORATE_PEERS=3,64` restricts it to three servers and
//! 64 tasks. It starts its own servers. Everybody has one client, as by default, for all tasks.
//!
//! The tables have medians. A bar is the ratio of ours to rslock's in the same cell; of rates it is
//! how many times as slow. *plain* is no lock library: one `SET NX PX` and one compare-and-delete
//! to each server, whose answers are all waited for.

mod cell;
mod side;

use std::{env, process::ExitCode};

use quorate_benches::{
    common,
    report::{self, Length, Promised, Report},
};
use tokio::runtime::{Builder, Runtime};

use cell::{Cell, Figures};
use side::{SIDES, Side};

const BARS: Promised = Promised {
    long: &[
        "slowness_multi_3_64",
        "slowness_multi_3_256",
        "slowness_multi_3_1024",
        "slowness_multi_5_64",
        "slowness_multi_5_256",
        "slowness_multi_5_1024",
        "client_multi_3_64",
        "servers_multi_3_64",
        "p50_multi_3_1",
        "failures",
    ],
    short: &["slowness_multi_1_16", "p50_multi_1_1", "failures"],
};

fn main() -> ExitCode {
    report::run(BARS, measure)
}

fn measure(length: Length) -> Report {
    let mut report = Report::default();
    let mut failures = 0;
    let only = env::var("QUORATE_PEERS").unwrap_or_default();
    for runtime in length.pick(&["multi", "current"][..], &["multi"]) {
        let [ours, rslock, distributed, plain, plain_fred] = SIDES;
        report.table([
            &format!("{runtime}: servers, tasks"),
            &format!("{ours}, a second"),
            rslock,
            distributed,
            plain,
            plain_fred,
            "p50, us: ours / rslock",
            "p99, us",
            "p99.9, us",
            "client, us each",
            "servers, us each",
            "failed",
        ]);
        for &servers in length.pick(&[1, 3, 5][..], &[1]) {
            for &tasks in length.pick(&[1, 16, 64, 256, 1024][..], &[1, 16]) {
                if only.is_empty() || only == format!("{servers},{tasks}") {
                    failures += compare(&mut report, length, (runtime, servers, tasks));
                }
            }
        }
    }
    report.bar("failures", f64::from(failures), 0.0);
    report
}

/// Adds a row for each side. Returns how often ours failed.
fn compare(
    report: &mut Report,
    length: Length,
    (runtime, count, tasks): (&str, usize, usize),
) -> u32 {
    let runs = if runtime == "multi" { Runtime::new() } else { current() }.expect("a runtime");
    let servers = common::servers(count);
    let sides: Vec<Side> =
        SIDES.iter().map(|name| runs.block_on(Side::connect(name, &servers))).collect();
    let mut cells: Vec<Vec<Cell>> = sides.iter().map(|_| Vec::new()).collect();
    for round in 0..length.rounds(5, 1) {
        for at in 0..sides.len() {
            // Everybody comes behind everybody else.
            let at = if round % 2 == 0 { at } else { sides.len() - 1 - at };
            let cell = Cell::measure(&runs, &sides[at], &servers, tasks, length);
            cells[at].push(cell);
        }
    }
    let figures: Vec<Figures> = cells.iter().map(|cells| Figures::median(cells)).collect();
    let (ours, rslock) = (figures[0], figures[1]);
    let name = format!("{runtime}_{count}_{tasks}");
    let many = tasks >= 64;
    // Rates: how many times as slow, so that less is better in each bar.
    let limit = if count == 1 { 1.25 } else { 1.0 };
    report.bar(&format!("slowness_{name}"), rslock.rate / ours.rate, limit);
    if many && count > 1 {
        report.bar(&format!("client_{name}"), ours.client / rslock.client, 1.0);
        report.bar(&format!("servers_{name}"), ours.servers / rslock.servers, 1.5);
    }
    if tasks == 1 {
        let limit = if count == 1 { 2.0 } else { 1.3 };
        report.bar(&format!("p50_{name}"), ours.p50 / rslock.p50, limit);
    }
    let rate = |at: usize| format!("{:.0}", figures[at].rate);
    report.row([
        format!("{count}, {tasks}"),
        rate(0),
        rate(1),
        rate(2),
        rate(3),
        rate(4),
        format!("{:.0} / {:.0}", ours.p50, rslock.p50),
        format!("{:.0} / {:.0}", ours.p99, rslock.p99),
        format!("{:.0} / {:.0}", ours.p999, rslock.p999),
        format!("{:.1} / {:.1}", ours.client, rslock.client),
        format!("{:.1} / {:.1}", ours.servers, rslock.servers),
        ours.failed.to_string(),
    ]);
    figures[0].failed
}

fn current() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}
