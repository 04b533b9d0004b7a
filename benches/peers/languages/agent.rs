//! Locks of this library from Rust, and from other languages by `quorate agent`.

use quorate_benches::report::{Length, Report};

use crate::{
    own_locks::{cycles, each, rate},
    side::{Outcome, Side},
    warm_up,
};

const CLIENTS: [&str; 3] = ["node", "asyncio", "threads"];
/// To a lock and its release, in microseconds.
const MOST_ADDED: f64 = 150.0;

/// Returns how often any failed.
pub(crate) fn compare(report: &mut Report, length: Length) -> u32 {
    let [node, asyncio, threads] = CLIENTS.map(|client| Side::agent(client, length));
    let mut sides = [Side::ours(length), node, asyncio, threads];
    warm_up(&mut sides, length);
    let [rust, node, asyncio, threads] = sides.each_ref().map(Side::name).map(str::to_owned);
    report.table([
        "own locks by `quorate agent`: tasks",
        &format!("{rust}, a second"),
        &node,
        &asyncio,
        &threads,
        "p50, us, in this order",
        "p99, us",
        "servers, us each",
        "failed",
    ]);
    let mut failures = 0;
    for &tasks in length.pick(&[1, 16, 64][..], &[1]) {
        let outcomes = cycles(&mut sides, tasks, length);
        failures += outcomes.iter().flatten().map(|figures| figures.failed).sum::<u32>();
        if tasks == 1 {
            bars(report, &sides, &outcomes);
        }
        let [rust, node, asyncio, threads] = [0, 1, 2, 3].map(|at| rate(&outcomes[at]));
        report.row([
            tasks.to_string(),
            rust,
            node,
            asyncio,
            threads,
            each(&outcomes, |one| one.p50, 0),
            each(&outcomes, |one| one.p99, 0),
            each(&outcomes, |one| one.servers, 1),
            each(&outcomes, |one| f64::from(one.failed), 0),
        ]);
    }
    failures
}

/// By how many microseconds a lock and its release take longer.
fn bars(report: &mut Report, sides: &[Side], outcomes: &[Outcome]) {
    let rust = outcomes[0].as_ref().expect("ours runs").p50;
    for (side, outcome) in sides.iter().zip(outcomes).skip(1) {
        if let Ok(figures) = outcome {
            report.bar(&format!("agent_adds_{}", side.key), figures.p50 - rust, MOST_ADDED);
        }
    }
}
