//! Each task has a lock of its own, and nobody waits for another.

use std::rc::Rc;

use quorate_benches::{
    common,
    report::{Length, Report},
};

use crate::side::{Outcome, Servers, Side, in_turns};

/// Ours beside Redisson and redsync. Returns how often ours failed.
pub(crate) fn compare(report: &mut Report, length: Length, sides: &mut [Side; 3]) -> u32 {
    let [_, redisson, redsync] = sides.each_ref().map(Side::name);
    report.table([
        "own locks: servers, tasks",
        "quorate, a second",
        redisson,
        redsync,
        "p50, us, in this order",
        "p99, us",
        "client, us each",
        "servers, us each",
        "failed",
    ]);
    let mut failures = 0;
    for &servers in length.pick(&[1, 3, 5][..], &[3]) {
        let all = Servers::Redis(Rc::new(common::servers(servers)));
        for side in sides.iter_mut() {
            side.connect(&all);
        }
        for &tasks in length.pick(&[1, 16, 64, 256, 1024][..], &[16]) {
            let outcomes = cycles(sides, tasks, length);
            failures += failed(&outcomes[0]);
            bars(report, sides, &outcomes, &format!("{servers}_{tasks}"));
            let [ours, redisson, redsync] = [0, 1, 2].map(|at| rate(&outcomes[at]));
            report.row([
                format!("{servers}, {tasks}"),
                ours,
                redisson,
                redsync,
                each(&outcomes, |one| one.p50, 0),
                each(&outcomes, |one| one.p99, 0),
                each(&outcomes, |one| one.client, 1),
                each(&outcomes, |one| one.servers, 1),
                each(&outcomes, |one| f64::from(one.failed), 0),
            ]);
        }
    }
    failures
}

/// Ours beside this etcd, both with every write on disk before the answer.
pub(crate) fn beside_etcd(
    report: &mut Report,
    length: Length,
    etcd: &str,
    sides: &mut [Side; 2],
) -> u32 {
    let theirs = match sides[1].program() {
        Ok(program) => format!("{etcd}, {}", program.name()),
        Err(_) => etcd.to_owned(),
    };
    report.table([
        "own locks, all on disk: tasks",
        "quorate, a second",
        &theirs,
        "p50, us, in this order",
        "p99, us",
        "client, us each",
        "servers, us each",
        "failed",
    ]);
    let mut failures = 0;
    for &tasks in length.pick(&[1, 64, 256][..], &[4]) {
        let outcomes = cycles(sides, tasks, length);
        failures += failed(&outcomes[0]);
        bars(report, sides, &outcomes, &tasks.to_string());
        report.row([
            tasks.to_string(),
            rate(&outcomes[0]),
            rate(&outcomes[1]),
            each(&outcomes, |one| one.p50, 0),
            each(&outcomes, |one| one.p99, 0),
            each(&outcomes, |one| one.client, 1),
            each(&outcomes, |one| one.servers, 1),
            each(&outcomes, |one| f64::from(one.failed), 0),
        ]);
    }
    failures
}

pub(crate) fn cycles(sides: &mut [Side], tasks: usize, length: Length) -> Vec<Outcome> {
    // What connects, loads and allocates at first is not measured.
    in_turns(sides, &format!("cycles {tasks} {}", length.pick(150, 20)), 1, |_| false);
    let request = format!("cycles {tasks} {}", length.pick(400, 100));
    in_turns(sides, &request, length.rounds(3, 1), |_| false)
}

fn bars(report: &mut Report, sides: &[Side], outcomes: &[Outcome], cell: &str) {
    let Ok(ours) = &outcomes[0] else { return };
    for (side, outcome) in sides.iter().zip(outcomes).skip(1) {
        if let Ok(theirs) = outcome {
            report.bar(&format!("slowness_{}_{cell}", side.key), theirs.rate / ours.rate, 1.0);
        }
    }
}

pub(crate) fn rate(outcome: &Outcome) -> String {
    outcome.as_ref().map_or_else(Clone::clone, |figures| format!("{:.0}", figures.rate))
}

/// A value of each side.
pub(crate) fn each(
    outcomes: &[Outcome],
    of: impl Fn(&crate::side::Figures) -> f64,
    decimals: usize,
) -> String {
    let text = |outcome: &Outcome| match outcome {
        Ok(figures) => format!("{:.decimals$}", of(figures)),
        Err(_) => "-".to_owned(),
    };
    outcomes.iter().map(text).collect::<Vec<_>>().join(" / ")
}

pub(crate) fn failed(outcome: &Outcome) -> u32 {
    outcome.as_ref().expect("ours runs").failed
}
