//! Many seeds, on all processors.

use std::{
    env,
    fmt::Write,
    process,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
};

use crate::sim::{
    draft,
    prelude::*,
    schedule::{self, Outcome},
};

/// How many schedules a sweep runs where nothing else is said.
const SEEDS: u64 = if cfg!(debug_assertions) { 100 } else { 10_000 };

/// What a sweep has seen.
#[derive(Default)]
struct Tally {
    schedules: u64,
    scripts: u64,
    /// Schedules in which a law did not hold for a reason that the promise excludes.
    outside: BTreeMap<(Law, &'static str), u64>,
    /// The smallest seed that fails.
    failed: Option<u64>,
}

#[test]
fn sweep() {
    #[cfg(quorate_mutants)]
    crate::mutants::rewrite_script();
    if let Some(seed) = number("QUORATE_SIM_SEED") {
        return repeat(seed);
    }
    let seeds = number("QUORATE_SIM_SEEDS").unwrap_or(SEEDS);
    let first = number("QUORATE_SIM_FIRST").unwrap_or(0);
    let tally = run(first, seeds);
    println!("{}", tally.report());
    if let Some(seed) = tally.failed {
        repeat(seed);
        panic!(
            "seed {seed} failed in the sweep and not when repeated: something is left to chance"
        );
    }
    assert_eq!(tally.schedules, seeds);
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    for seed in 0..40 {
        let run = || schedule::run(draft::plan(seed), true).trace;
        let (one, other) = (run(), run());
        assert!(one.len() > 1_000, "seed {seed}: {one}");
        let differs = one.lines().zip(other.lines()).find(|(one, other)| one != other);
        assert_eq!(differs, None, "seed {seed}");
        assert_eq!(one, other, "seed {seed}");
    }
}

fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

fn run(first: u64, seeds: u64) -> Tally {
    let tally = Mutex::new(Tally::default());
    let next = AtomicU64::new(first);
    let threads = thread::available_parallelism().map_or(2, usize::from);
    let busy_with: Vec<AtomicU64> = (0..threads).map(|_| AtomicU64::new(first)).collect();
    let (over, goes_on) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let watched = &busy_with;
        scope.spawn(move || look_out(&goes_on, watched));
        let workers: Vec<_> = busy_with
            .iter()
            .map(|busy_with| {
                let (tally, next) = (&tally, &next);
                scope.spawn(move || {
                    loop {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if seed >= first + seeds || locked(tally).failed.is_some() {
                            break;
                        }
                        busy_with.store(seed, Ordering::Relaxed);
                        let outcome = schedule::run(draft::plan(seed), false);
                        locked(tally).add(seed, &outcome);
                    }
                    busy_with.store(u64::MAX, Ordering::Relaxed);
                })
            })
            .collect();
        for worker in workers {
            worker.join().expect("a schedule's panics are caught");
        }
        drop(over);
    });
    tally.into_inner().expect("no thread panicked")
}

/// A schedule takes milliseconds. One that is not over after a minute goes round at one moment of
/// its time, and would do so for ever.
fn look_out(goes_on: &mpsc::Receiver<()>, busy_with: &[AtomicU64]) {
    let seeds = || busy_with.iter().map(|seed| seed.load(Ordering::Relaxed)).collect::<Vec<_>>();
    let mut before = seeds();
    while goes_on.recv_timeout(Duration::from_mins(1)) == Err(RecvTimeoutError::Timeout) {
        let now = seeds();
        let stuck = now.iter().zip(&before).find(|(now, before)| now == before && **now < u64::MAX);
        if let Some((seed, _)) = stuck {
            println!("no time passes any more: QUORATE_SIM_SEED={seed} does not come to its end");
            process::exit(1);
        }
        before = now;
    }
}

/// Runs one seed, and says what happens in it. What each task does, and what goes wrong, is in the
/// trace.
fn repeat(seed: u64) {
    let mut plan = draft::plan(seed);
    let outcome = schedule::run(plan.clone(), true);
    plan.clients.iter_mut().for_each(|client| client.tasks.clear());
    println!("{plan:?}\n{}", outcome.trace);
    for breach in &outcome.breaches {
        println!("{:>7} ms  {:?}: {}", breach.at_ms, breach.law, breach.what);
    }
    if let Some(breach) = outcome.failure() {
        panic!(
            "{:?} did not hold at {} ms: {}\n\
             repeat it: QUORATE_SIM_SEED={seed} tests/run proofs sweep --nocapture",
            breach.law, breach.at_ms, breach.what
        );
    }
}

impl Tally {
    fn add(&mut self, seed: u64, outcome: &Outcome) {
        self.schedules += 1;
        self.scripts += outcome.scripts_run;
        let excused = |breach: &Breach| Some((breach.law, breach.excuse?));
        let excused: BTreeSet<_> = outcome.breaches.iter().filter_map(excused).collect();
        for excused in excused {
            *self.outside.entry(excused).or_default() += 1;
        }
        if outcome.failure().is_some() {
            self.failed = Some(self.failed.map_or(seed, |failed| failed.min(seed)));
        }
    }

    fn report(&self) -> String {
        let mut report = format!("{} schedules, {} scripts run", self.schedules, self.scripts);
        for ((law, why), count) in &self.outside {
            write!(report, "\n  outside the promise: {law:?} ({why}): {count}")
                .expect("a string takes all");
        }
        report
    }
}
