//! What a lock costs beside other libraries: each takes and gives back locks of its own names, on
//! the same servers, in turns.
//!
//! `cargo bench -p quorate-peers --bench peers`, about seven minutes; `QUORATE_BENCH_ROUNDS` sets
//! how often each has its turn (default 5), `QUORATE_PEERS=3,64` restricts it to three servers and
//! 64 tasks. It starts its own servers. Everybody has one client for all tasks.
//!
//! The tables have medians. A bar is the ratio of ours to rslock's in the same cell; of rates it is
//! how many times as slow. *thread* is our client as by default, on the thread of all clients; *home*
//! lives on the caller's runtime. *plain* is no lock library: one `SET NX PX` and one compare-and-delete
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
        "thread_slowness_multi_3_64",
        "thread_slowness_multi_5_64",
        "thread_client_multi_3_64",
        "thread_p50_multi_3_1",
        "thread_p50_multi_5_1",
        "home_slowness_multi_3_64",
        "home_slowness_multi_5_64",
        "home_client_multi_3_64",
        "home_p50_multi_3_1",
        "home_p50_multi_5_1",
        "servers_multi_3_64",
        "failures",
    ],
    short: &["thread_slowness_multi_1_16", "home_p50_multi_1_1", "failures"],
};

fn main() -> ExitCode {
    report::run(BARS, measure)
}

fn measure(length: Length) -> Report {
    let mut report = Report::default();
    let mut failures = 0;
    let only = env::var("QUORATE_PEERS").unwrap_or_default();
    for runtime in length.pick(&["multi", "current"][..], &["multi"]) {
        let [thread, home, rslock, distributed, plain, plain_fred] = SIDES;
        report.table([
            &format!("{runtime}: servers, tasks"),
            &format!("{thread}, a second"),
            home,
            rslock,
            distributed,
            plain,
            plain_fred,
            "p50, us: thread / home / rslock",
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
    let (ours, rslock) = ([figures[0], figures[1]], figures[2]);
    let name = format!("{runtime}_{count}_{tasks}");
    for (home, ours) in [("thread", ours[0]), ("home", ours[1])] {
        for (what, ratio) in ratios(&ours, &rslock, count, tasks) {
            report.bar(&format!("{home}_{what}_{name}"), ratio, limit(home, what, count));
        }
    }
    if tasks >= 64 && count > 1 {
        report.bar(&format!("servers_{name}"), ours[0].servers / rslock.servers, 1.9);
    }
    let rate = |at: usize| format!("{:.0}", figures[at].rate);
    let three = |of: fn(&Figures) -> f64, digits: usize| {
        let [thread, home] = ours.map(|ours| of(&ours));
        format!("{thread:.digits$} / {home:.digits$} / {:.digits$}", of(&rslock))
    };
    let failed = ours[0].failed + ours[1].failed;
    report.row([
        format!("{count}, {tasks}"),
        rate(0),
        rate(1),
        rate(2),
        rate(3),
        rate(4),
        rate(5),
        three(|side| side.p50, 0),
        three(|side| side.p99, 0),
        three(|side| side.p999, 0),
        three(|side| side.client, 1),
        three(|side| side.servers, 1),
        failed.to_string(),
    ]);
    failed
}

/// Ours to theirs, so that less is better; of rates, how many times as slow.
fn ratios(
    ours: &Figures,
    theirs: &Figures,
    servers: usize,
    tasks: usize,
) -> Vec<(&'static str, f64)> {
    let mut ratios = vec![("slowness", theirs.rate / ours.rate)];
    if tasks >= 64 && servers > 1 {
        ratios.push(("client", ours.client / theirs.client));
    }
    if tasks == 1 {
        ratios.push(("p50", ours.p50 / theirs.p50));
    }
    ratios
}

/// What a ratio is to be at most. Over one server rslock has no quorum to count.
fn limit(home: &str, what: &str, servers: usize) -> f64 {
    match (home, what) {
        ("thread", "p50") => 1.8,
        (_, "p50") => 1.3,
        ("thread", "client") => 1.25,
        (_, "client") => 1.1,
        ("thread", _) => {
            if servers == 5 {
                1.0 / 0.85
            } else {
                1.0 / 0.65
            }
        }
        (_, _) => {
            if servers == 5 {
                1.0 / 0.95
            } else {
                1.0 / 0.75
            }
        }
    }
}

fn current() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}
