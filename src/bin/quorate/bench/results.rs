//! What was measured, for people and for programs.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use super::load::{Load, Measured};
use crate::frame::{Frame, Short, Tone, counted};

/// The shape of what `--json` writes. A later one may have further fields under the same number.
const VERSION: u32 = 1;

/// How long the longest bar is.
const WIDTH: u64 = 40;
/// Into how many steps the times are divided, each as many times as long as the one before.
const STEPS: i32 = 12;

const PERCENTILES: [(&str, f64); 4] =
    [("50%", 50.0), ("90%", 90.0), ("99%", 99.0), ("99.9%", 99.9)];

#[derive(Debug)]
pub(super) struct Results {
    pub(super) load: Load,
    pub(super) took: Duration,
    /// To each voter, before the load; none where it did not answer.
    pub(super) round_trips: Vec<Option<Duration>>,
    pub(super) measured: Measured,
}

/// How many times were longer than one bound, and no longer than another.
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

    pub(super) fn frame(&self) -> Frame {
        let Self { load, took, round_trips, measured } = self;
        let mut frame = Frame::default();
        let parts = [(round_trips.len(), "voter"), (load.tasks, "task"), (load.locks, "lock")];
        frame.line(Tone::Plain, parts.map(|(count, what)| counted(count, what)).join(", "));
        let trips: Vec<String> = round_trips
            .iter()
            .map(|trip| trip.map_or_else(|| "no answer".to_owned(), |trip| Short(trip).to_string()))
            .collect();
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

    pub(super) fn json(&self) -> Value {
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
        // Nobody that there is has no bar.
        let width = usize::try_from((count * WIDTH).div_ceil(most)).unwrap_or_default();
        vec![shown(to), count.to_string(), "█".repeat(width)]
    }
}

fn row(name: &str, times: &Histogram<u64>) -> (Tone, Vec<String>) {
    let percentiles = PERCENTILES.map(|(_, percentile)| times.value_at_percentile(percentile));
    let values = [&[times.min()], &percentiles[..], &[times.max()]].concat();
    (Tone::Plain, [name.to_owned()].into_iter().chain(values.into_iter().map(shown)).collect())
}

/// Fields that are `null` where nothing was measured.
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

/// Steps from the shortest time to the longest. A few very long times do not make the others too
/// coarse: what is longer than 99.9 % is in the last step.
fn steps(times: &Histogram<u64>) -> Vec<Step> {
    if times.is_empty() {
        return Vec::new();
    }
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
