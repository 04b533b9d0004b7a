//! `quorate bench`: how fast these voters give locks to this machine.

use std::{
    io::{self, Write},
    num::NonZeroUsize,
    process,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use clap::Args;
use hdrhistogram::Histogram;
use quorate::{Error, Quorate};
use serde_json::{Value, json};
use tokio::{sync::watch, task::JoinSet, time};

use crate::{
    clock,
    console::{Code, Console, Failure},
    lock::{KindOptions, LockHeld, LockKind, Request},
    process::{INTERRUPTS, Signals},
    screen::{self, Frame, Picture, Short, Tone, counted, share_of, time_or},
    setup::{self, VoterOptions, settle},
};

/// How long the voters remember the tokens of its locks.
// Its locks are never used again: with ten minutes, a bench would leave thousands of keys behind
// (`each_cycle_is_counted_and_nothing_is_left`).
const MEMORY: Duration = Duration::from_secs(1);

/// Measure how fast locks are taken and released
///
/// Takes and releases locks on all cores of this machine, and shows for how long it waited. The
/// locks are its own, and nothing of them is left behind. It loads the servers: think of who else
/// uses them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quorate bench
  quorate bench --time 1m --tasks 64
  quorate bench --locks 1 --fair --hold 5ms      # all want one lock, and take turns
  quorate bench --json | jq .cycles_per_second")]
pub(crate) struct BenchOptions {
    /// For how long
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = setup::parse_time)]
    time: Duration,

    /// How many tasks lock at the same time
    #[arg(long, value_name = "N", default_value = "16")]
    tasks: NonZeroUsize,

    /// How many locks the tasks share [default: each has its own]
    #[arg(long, value_name = "N")]
    locks: Option<NonZeroUsize>,

    /// For how long each lock is held
    #[arg(long, value_name = "TIME", default_value = "0ms", value_parser = setup::parse_time)]
    hold: Duration,

    #[command(flatten)]
    kind: KindOptions,

    /// Write JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    voters: VoterOptions,
}

/// The longest time that is counted: an hour, in nanoseconds.
const LONGEST: u64 = 3_600_000_000_000;

pub(crate) async fn run(options: BenchOptions, console: &Console) -> Result<Code, Failure> {
    let builder = options.voters.setup()?.builder()?;
    let quorum = builder.fence_memory(MEMORY).connect().await?;
    let measured = options.measure(&quorum, console).await;
    let _ = quorum.close().await;
    let results = measured?;
    screen::print(&Picture::new(options.json, || results.json(), || results.frame()))?;
    results.measured.latest_error.map_or(Ok(Code::Fine), |error| Err(error.into()))
}

impl BenchOptions {
    async fn measure(&self, quorum: &Quorate, console: &Console) -> Result<Results, Failure> {
        let mut interrupts = Signals::listen(&INTERRUPTS)?;
        // Before the load: under it, a round trip has the time in the queues of the servers, too.
        settle(quorum).await;
        let survey = quorum.survey().await;
        let load = Load {
            kind: self.kind.kind(),
            tasks: self.tasks.get(),
            locks: self.locks.unwrap_or(self.tasks).get(),
            hold: self.hold,
        };
        let tally = Arc::new(Mutex::new(Measured::new()));
        let (stopped, stop) = watch::channel(false);
        let tasks = load.start(quorum, &tally, &stop);
        let started = clock::now();
        tokio::select! {
            () = time::sleep(self.time) => {}
            _ = interrupts.next() => {}
            () = show_progress(self.time, &tally), if console.is_watched() => {}
        }
        let took = clock::now().saturating_sub(started);
        if console.is_watched() {
            write_line("");
        }
        stopped.send_replace(true);
        // The tasks end by themselves, and are not aborted: each gives its lock back first.
        tasks.join_all().await;
        let round_trips = survey.voters.iter().map(|voter| voter.round_trip).collect();
        let tally = Arc::into_inner(tally).expect("all tasks have ended");
        let measured = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Results { load, took, round_trips, measured })
    }
}

/// Tasks that take locks and release them, again and again.
#[derive(Clone, Copy, Debug)]
struct Load {
    kind: LockKind<'static>,
    tasks: usize,
    /// Among how many locks the tasks are spread.
    locks: usize,
    /// For how long each lock is held.
    hold: Duration,
}

impl Load {
    fn start(
        self,
        quorum: &Quorate,
        tally: &Arc<Mutex<Measured>>,
        stop: &watch::Receiver<bool>,
    ) -> JoinSet<()> {
        // Names of this run alone: two benches at the same time would wait for each other.
        let run = format!("quorate-bench:{}-{}", process::id(), clock::wall().as_millis());
        let mut tasks = JoinSet::new();
        for task in 0..self.tasks {
            let name = format!("{run}:{}", task % self.locks);
            let (quorum, tally, stop) = (quorum.clone(), Arc::clone(tally), stop.clone());
            tasks.spawn(async move { self.repeat(&quorum, &name, &tally, stop).await });
        }
        tasks
    }

    async fn repeat(
        self,
        quorum: &Quorate,
        name: &str,
        tally: &Mutex<Measured>,
        mut stop: watch::Receiver<bool>,
    ) {
        // The first lock of each task is not counted: the servers may not have the scripts yet.
        let mut is_warm = false;
        loop {
            let asked = clock::now();
            let taken = tokio::select! {
                // A stopped bench begins no further lock, even if one is free at once.
                biased;
                _ = stop.wait_for(|is_stopped| *is_stopped) => return,
                taken = LockHeld::acquire(quorum, self.kind, name, Request::default()) => {
                    taken.map(|held| held.expect("no job"))
                }
            };
            let waited = clock::now().saturating_sub(asked);
            let released = match taken {
                Ok(guard) => {
                    // A lock that is held for an hour is given back when the user ends the bench
                    // (`a_signal_ends_it_also_while_locks_are_held`).
                    if self.hold > Duration::ZERO {
                        let stopped = stop.wait_for(|is_stopped| *is_stopped);
                        let _ = time::timeout(self.hold, stopped).await;
                    }
                    let asked = clock::now();
                    guard.release().await.map(|()| clock::now().saturating_sub(asked))
                }
                Err(error) => Err(error),
            };
            let mut measured = tally.lock().unwrap_or_else(PoisonError::into_inner);
            match released {
                Ok(released) if is_warm => measured.note(waited, released),
                Ok(_) => is_warm = true,
                Err(error) => measured.fail(error),
            }
        }
    }
}

/// What the tasks have measured: times in nanoseconds.
struct Measured {
    lock: Histogram<u64>,
    release: Histogram<u64>,
    failed: u64,
    latest_error: Option<Error>,
}

impl Measured {
    fn new() -> Self {
        let times = || Histogram::new_with_max(LONGEST, 3).expect("it has room for them");
        Self { lock: times(), release: times(), failed: 0, latest_error: None }
    }

    fn note(&mut self, waited: Duration, released: Duration) {
        self.lock.saturating_record(nanos(waited));
        self.release.saturating_record(nanos(released));
    }

    fn fail(&mut self, error: Error) {
        self.failed += 1;
        self.latest_error = Some(error);
    }
}

/// Draws one line on the terminal, again and again. Never ends.
async fn show_progress(time: Duration, tally: &Mutex<Measured>) {
    const WIDTH: usize = 24;
    let started = clock::now();
    let mut interval = time::interval(Duration::from_millis(200));
    loop {
        interval.tick().await;
        let passed = clock::now().saturating_sub(started).min(time);
        let done = share_of(passed, time, WIDTH);
        let (rest, seconds, all) = (WIDTH - done, passed.as_secs(), Short(time));
        let cycles = tally.lock().unwrap_or_else(PoisonError::into_inner).lock.len();
        write_line(&format!("[{:█<done$}{:rest$}] {seconds}s of {all}  {cycles} locks", "", ""));
    }
}

/// Replaces the current line of the terminal.
fn write_line(line: &str) {
    let mut stderr = io::stderr();
    let _ = write!(stderr, "\r\x1b[K{line}").and_then(|()| stderr.flush());
}

/// The shape of what `--json` writes. A later one may have further fields under the same number.
const VERSION: u32 = 1;

/// The length of the longest bar.
const WIDTH: u64 = 40;
/// The number of steps between the shortest and the longest time.
// Each is as many times as long as the one before: with steps of equal length, one slow lock of a
// second leaves all others in the first step (`one_long_time_does_not_hide_how_the_others_differ`).
const STEPS: i32 = 12;

const PERCENTILES: [(&str, f64); 4] =
    [("50%", 50.0), ("90%", 90.0), ("99%", 99.0), ("99.9%", 99.9)];

struct Results {
    load: Load,
    took: Duration,
    /// To each voter, before the load; `None` if it did not answer.
    round_trips: Vec<Option<Duration>>,
    measured: Measured,
}

/// How many of the times are longer than `from`, and no longer than `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    from: u64,
    to: u64,
    count: u64,
}

impl Results {
    fn per_second(&self) -> u64 {
        let took = self.took.as_micros().max(1);
        let each = u128::from(self.measured.lock.len()) * 1_000_000 / took;
        u64::try_from(each).unwrap_or(u64::MAX)
    }

    fn frame(&self) -> Frame {
        let Self { load, took, round_trips, measured } = self;
        let mut frame = Frame::default();
        let parts = [(round_trips.len(), "voter"), (load.tasks, "task"), (load.locks, "lock")];
        frame.line(Tone::Plain, parts.map(|(count, what)| counted(count, what)).join(", "));
        let trips: Vec<_> = round_trips.iter().map(|trip| time_or(*trip, "no answer")).collect();
        frame.line(Tone::Plain, format!("round trip before the load: {}", trips.join(", ")));
        let (cycles, each) = (measured.lock.len(), self.per_second());
        let summary =
            format!("{cycles} locks taken and released in {}, {each} each second", Short(*took));
        frame.line(Tone::Heading, summary);
        if measured.failed > 0 {
            frame.line(Tone::Bad, format!("{} attempts failed", measured.failed));
        }
        if cycles == 0 {
            return frame;
        }
        frame.blank();
        let headings: Vec<&str> =
            ["", "shortest"].into_iter().chain(PERCENTILES.map(|(name, _)| name)).collect();
        let rows = [row("lock", &measured.lock), row("release", &measured.release)];
        frame.table(&[&headings[..], &["longest"]].concat(), &rows);
        frame.blank();
        frame.line(Tone::Heading, "time to lock");
        let steps = steps(&measured.lock);
        let most = steps.iter().map(|step| step.count).max().unwrap_or(1).max(1);
        let rows: Vec<_> = steps.iter().map(|step| (Tone::Plain, step.row(most))).collect();
        frame.table(&["to", "count", ""], &rows);
        frame
    }

    fn json(&self) -> Value {
        let Self { load, took, round_trips, measured } = self;
        let steps = steps(&measured.lock).into_iter().map(|Step { from, to, count }| {
            json!({ "from_us": micros(from), "to_us": micros(to), "count": count })
        });
        json!({
            "version": VERSION,
            "tasks": load.tasks,
            "locks": load.locks,
            "hold_ms": millis(load.hold),
            "took_ms": millis(*took),
            "cycles": measured.lock.len(),
            "cycles_per_second": self.per_second(),
            "failed": measured.failed,
            "round_trips_us": round_trips.iter()
                .map(|trip| trip.map(|trip| micros(nanos(trip))))
                .collect::<Vec<_>>(),
            "lock_us": summary(&measured.lock),
            "release_us": summary(&measured.release),
            "lock_histogram": steps.collect::<Vec<_>>(),
        })
    }
}

impl Step {
    fn row(self, most: u64) -> Vec<String> {
        let Self { to, count, .. } = self;
        // Rounded up: a step with few locks among very many still gets a bar.
        let width = usize::try_from((count * WIDTH).div_ceil(most)).unwrap_or_default();
        vec![shown(to), count.to_string(), "█".repeat(width)]
    }
}

fn row(name: &str, times: &Histogram<u64>) -> (Tone, Vec<String>) {
    let percentiles = PERCENTILES.map(|(_, percentile)| times.value_at_percentile(percentile));
    let values = [&[times.min()], &percentiles[..], &[times.max()]].concat();
    (Tone::Plain, [name.to_owned()].into_iter().chain(values.into_iter().map(shown)).collect())
}

/// The fields are `null` if nothing was measured.
fn summary(times: &Histogram<u64>) -> Value {
    let of = |value: u64| (!times.is_empty()).then(|| micros(value));
    let at = |percentile| of(times.value_at_percentile(percentile));
    json!({
        "min": of(times.min()),
        "p50": at(50.0),
        "p90": at(90.0),
        "p99": at(99.0),
        "p999": at(99.9),
        "max": of(times.max()),
    })
}

/// Steps from the shortest time to the longest.
fn steps(times: &Histogram<u64>) -> Vec<Step> {
    if times.is_empty() {
        return Vec::new();
    }
    // The longest thousandth is one step: a few very long times do not make the others too coarse.
    let (shortest, most, longest) =
        (times.min().max(1), times.value_at_percentile(99.9), times.max());
    let secs = |nanos| Duration::from_nanos(nanos).as_secs_f64();
    let ratio = (secs(most) / secs(shortest)).max(1.0);
    let bound = |step: i32| {
        let bound = secs(shortest) * ratio.powf(f64::from(step) / f64::from(STEPS));
        nanos(Duration::try_from_secs_f64(bound).unwrap_or(Duration::MAX))
    };
    let mut bounds: Vec<u64> = (1..STEPS).map(bound).chain([most, longest]).collect();
    bounds.dedup();
    let mut from = 0;
    let mut counted = 0;
    let mut steps = Vec::new();
    for to in bounds {
        let up_to = if to == longest { times.len() } else { times.count_between(0, to) };
        steps.push(Step { from, to, count: up_to - counted });
        (from, counted) = (to, up_to);
    }
    steps
}

fn shown(nanos: u64) -> String {
    Short(Duration::from_nanos(nanos)).to_string()
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Rounded.
fn micros(nanos: u64) -> u64 {
    nanos.saturating_add(500) / 1_000
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(values: impl IntoIterator<Item = u64>) -> Histogram<u64> {
        let mut times = Histogram::new(3).unwrap();
        values.into_iter().for_each(|value| times.record(value).unwrap());
        times
    }

    #[test]
    fn each_time_is_in_one_step() {
        for values in [vec![5], vec![7; 100], (1..5_000).map(|time| time * 1_000).collect()] {
            let count = values.len() as u64;
            let steps = steps(&times(values));
            assert_eq!(steps.iter().map(|step| step.count).sum::<u64>(), count, "{steps:?}");
            assert!(steps.len() <= 13 && steps.is_sorted_by(|one, next| one.to == next.from));
        }
        assert_eq!(steps(&times([])), []);
    }

    #[test]
    fn one_long_time_does_not_hide_how_the_others_differ() {
        let values = (0..10_000).map(|time| 100_000 + time * 10).chain([5_000_000_000]);
        let steps = steps(&times(values));
        assert_eq!(steps.len(), 13, "{steps:?}");
        let [.., before, last] = &steps[..] else { panic!("{steps:?}") };
        assert!(before.to < 201_000 && last.count <= 11, "{steps:?}");
    }
}
