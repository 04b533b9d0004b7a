//! All want one lock.

use quorate_benches::report::{Length, Report};

use crate::{
    own_locks::{each, failed},
    side::{Outcome, Side, in_turns},
};

/// After which those who have not had the lock leave, in seconds.
const LIMIT: f64 = 5.0;

/// Who wants the lock.
#[derive(Clone, Copy, Debug)]
struct Want {
    kind: &'static str,
    waiters: u32,
    clients: u32,
}

impl Want {
    fn all(length: Length) -> Vec<Self> {
        let mut all = Vec::new();
        for kind in ["plain", "fair"] {
            for &waiters in length.pick(&[10, 100, 1000][..], &[4]) {
                for &clients in length.pick(&[1, 5][..], &[2]) {
                    all.push(Self { kind, waiters, clients });
                }
            }
        }
        all
    }

    /// redsync has no fair lock.
    fn sides(self, sides: &mut [Side; 3]) -> &mut [Side] {
        if self.kind == "fair" { &mut sides[..2] } else { sides }
    }

    fn key(self) -> String {
        format!("{}_{}_{}", self.kind, self.waiters, self.clients)
    }

    fn first_cell(self) -> String {
        format!("{}, {}, {}", self.kind, self.waiters, self.clients)
    }
}

/// From a release until the next one has the lock. Returns how often ours failed.
pub(crate) fn handoff(report: &mut Report, length: Length, sides: &mut [Side; 3]) -> u32 {
    let [_, redisson, redsync] = sides.each_ref().map(Side::name);
    let header = "hand-off: kind, waiters, clients";
    report.table([header, "quorate, p50, us", redisson, redsync, "p99, us", "failed"]);
    let mut failures = 0;
    for want in Want::all(length) {
        let Want { kind, waiters, clients } = want;
        let millis = length.pick(500, 100);
        let request = format!("handoff {kind} {waiters} {clients} {millis}");
        let asked = want.sides(sides);
        let outcomes = in_turns(asked, &request, rounds(length), |_| false);
        failures += failed(&outcomes[0]);
        // None in all that time: so long at least.
        let p50 = |outcome: &Outcome| {
            let figures = outcome.as_ref().ok()?;
            Some(if figures.count == 0.0 { f64::from(millis) * 1e3 } else { figures.p50 })
        };
        bars(report, "handoff", want, asked, &outcomes, p50);
        let cell = |at: usize| match outcomes.get(at) {
            None => "has none".to_owned(),
            Some(Ok(figures)) if figures.count == 0.0 => format!("none in {millis} ms"),
            Some(Ok(figures)) => format!("{:.0}", figures.p50),
            Some(Err(why)) => why.clone(),
        };
        let (p99, failed) =
            (each(&outcomes, |one| one.p99, 0), each(&outcomes, |one| f64::from(one.failed), 0));
        report.row([want.first_cell(), cell(0), cell(1), cell(2), p99, failed]);
    }
    failures
}

/// All at once, each once, until the last has had it. Returns how often ours failed.
pub(crate) fn crowd(report: &mut Report, length: Length, sides: &mut [Side; 3]) -> u32 {
    let [_, redisson, redsync] = sides.each_ref().map(Side::name);
    let header = "all at once: kind, waiters, clients";
    report.table([header, "quorate, seconds", redisson, redsync, "client, us each", "failed"]);
    let mut failures = 0;
    for want in Want::all(length) {
        let Want { kind, waiters, clients } = want;
        let request = format!("crowd {kind} {waiters} {clients} {}", LIMIT * 1e3);
        let asked = want.sides(sides);
        let outcomes =
            in_turns(asked, &request, rounds(length), |turn| turn.answer.count < waiters);
        failures += failed(&outcomes[0]);
        let is_in = |count: f64| count >= f64::from(waiters);
        let seconds = |outcome: &Outcome| {
            let figures = outcome.as_ref().ok()?;
            Some(if is_in(figures.count) { figures.seconds } else { figures.seconds.max(LIMIT) })
        };
        bars(report, "crowd", want, asked, &outcomes, seconds);
        let cell = |at: usize| match outcomes.get(at) {
            None => "has none".to_owned(),
            Some(Ok(figures)) if is_in(figures.count) => format!("{:.3}", figures.seconds),
            Some(Ok(figures)) => format!("{} in {:.1} s", figures.count, figures.seconds),
            Some(Err(why)) => why.clone(),
        };
        let client = each(&outcomes, |one| one.client, 0);
        let failed = each(&outcomes, |one| f64::from(one.failed), 0);
        report.row([want.first_cell(), cell(0), cell(1), cell(2), client, failed]);
    }
    failures
}

fn rounds(length: Length) -> usize {
    length.rounds(3, 1).div_ceil(2)
}

fn bars(
    report: &mut Report,
    table: &str,
    want: Want,
    sides: &[Side],
    outcomes: &[Outcome],
    value: impl Fn(&Outcome) -> Option<f64>,
) {
    let Some(ours) = value(&outcomes[0]) else { return };
    for (side, outcome) in sides.iter().zip(outcomes).skip(1) {
        if let Some(theirs) = value(outcome) {
            report.bar(&format!("{table}_{}_{}", side.key, want.key()), ours / theirs, 1.0);
        }
    }
}
