//! Every metric: name, type, unit, help, labels and buckets.
//!
//! They are recorded by the [`metrics`] facade, by these names. **Give the recorder the [`buckets`]
//! of the histograms.** Otherwise the Prometheus exporter writes histograms as summaries, without a
//! warning, and the dashboard and the alerts of this crate stay empty. `examples/web/service.rs`
//! has this as it runs:
//!
//! ```text
//! use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
//!
//! let mut prometheus = PrometheusBuilder::new();
//! for (name, buckets) in quorate::metric::buckets() {
//!     prometheus = prometheus.set_buckets_for_metric(Matcher::Full(name.into()), buckets)?;
//! }
//! let page = prometheus.install_recorder()?; // `page.render()` is what Prometheus reads
//! ```
//!
//! [`ALL`] describes each metric.

use std::sync::Arc;

/// One metric.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// Its kind.
    pub kind: MetricKind,
    /// Its unit. Ratios are from 0 to 1.
    pub unit: MetricUnit,
    /// A description in one line.
    pub help: &'static str,
    /// The labels of its series.
    pub labels: &'static [Label],
    /// The upper bounds of a histogram's buckets; empty for other kinds.
    pub buckets: &'static [f64],
}

/// The unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetricUnit {
    /// A number of things, or a share of all of them.
    Count,
    /// Seconds, with fractions.
    Seconds,
}

impl MetricUnit {
    /// The unit of the metric with this name.
    const fn of(name: &str) -> Self {
        // Prometheus' convention: the name ends with the unit. So the table does not repeat it.
        if let [.., b'_', b's', b'e', b'c', b'o', b'n', b'd', b's'] = name.as_bytes() {
            return Self::Seconds;
        }
        Self::Count
    }
}

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetricKind {
    /// Only grows. It begins at zero, so that the first event shows as an increase:
    ///
    /// - with the label `kind`: when a client first asks for a lock of that kind,
    /// - [`OBSERVED`]: with the first observer,
    /// - for a [named](crate::Builder::named_metrics) lock: with its first event,
    /// - otherwise: when a client connects.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Sorts values into buckets.
    Histogram,
}

/// A label, and the values that it may have.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Label {
    /// Its name.
    pub name: &'static str,
    /// All values. Empty if the values are the addresses of the voters, or the
    /// [named](crate::Builder::named_metrics) locks.
    pub values: &'static [&'static str],
}

/// In seconds, from 50 µs to 60 s.
const TIMES: &[f64] = &[
    50e-6, 100e-6, 200e-6, 350e-6, 500e-6, 750e-6, 1e-3, 1.5e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3,
    0.1, 0.2, 0.35, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0,
];
/// In seconds, from 1 ms to a day.
const HOLDS: &[f64] = &[
    1e-3, 5e-3, 10e-3, 50e-3, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3_600.0,
    14_400.0, 86_400.0,
];
const COUNTS: &[f64] = &[1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0, 50.0, 100.0, 1_000.0];
// Finer at the low end: a renewal with a tenth of its validity left is a lock that is nearly lost.
const RATIOS: &[f64] = &[0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0];

const fn label(name: &'static str, values: &'static [&'static str]) -> Label {
    Label { name, values }
}

pub(super) const LOCK: Label = label("lock", &[]);
pub(super) const KIND: Label =
    label("kind", &["mutex", "fair_mutex", "read", "write", "semaphore", "election", "once"]);
pub(super) const VOTER: Label = label("voter", &[]);
pub(super) const ACQUIRED: Label =
    label("outcome", &["granted", "held", "no_quorum", "cancelled", "error"]);
pub(super) const ATTEMPTED: Label = label("outcome", &["won", "held", "split", "no_quorum"]);
pub(super) const VERDICT: Label = label("verdict", &["granted", "refused", "unknown"]);
pub(super) const REFUSED: Label = label("reason", &["held", "behind", "forced", "absent"]);
pub(super) const RENEWED: Label =
    label("outcome", &["renewed", "failed", "superseded", "vanished"]);
pub(super) const LOSS: Label = label(
    "reason",
    &[
        "expired",
        "fixed",
        "too_long",
        "superseded",
        "forced",
        "vanished",
        "abandoned",
        "forsaken",
        "configuration_mismatch",
    ],
);
pub(super) const WAKEUP: Label = label("cause", &["called", "missed", "timer"]);
pub(super) const SUSPICION: Label = label(
    "reason",
    &["restarted", "young", "emptied", "copied", "clock_moved", "clock_apart", "clock_set_back"],
);
pub(super) const WATCHED: Label = label("outcome", &["leader", "no_leader", "unknown"]);
pub(super) const REPAIRED: Label = label("outcome", &["stored", "failed"]);

const COUNTER: Metric = Metric {
    name: "",
    kind: MetricKind::Counter,
    unit: MetricUnit::Count,
    help: "",
    labels: &[],
    buckets: &[],
};
const GAUGE: Metric = Metric { kind: MetricKind::Gauge, ..COUNTER };

const fn histogram(buckets: &'static [f64]) -> Metric {
    Metric { kind: MetricKind::Histogram, buckets, ..COUNTER }
}

/// Makes a constant with the name of each metric, and the list of all metrics.
macro_rules! metrics {
    ($($constant:ident = $name:literal: $kind:expr, [$($label:ident),*], $help:literal;)*) => {
        $(
            #[doc = concat!("`", $name, "`: ", $help, ".")]
            pub const $constant: &str = $name;
        )*

        /// All metrics.
        pub const ALL: &[Metric] = &[$({
            let (unit, labels) = (MetricUnit::of($name), &[$($label),*]);
            Metric { name: $name, unit, help: $help, labels, ..$kind }
        }),*];
    };
}

metrics! {
    ACQUIRE_SECONDS = "quorate_acquire_seconds": histogram(TIMES), [KIND, LOCK, ACQUIRED],
        "time to an acquire's answer, waiting included";
    WAIT_SECONDS = "quorate_wait_seconds": histogram(TIMES), [KIND, LOCK],
        "time from the call to the start of the attempt that won the lock";
    GRANT_ATTEMPTS = "quorate_grant_attempts": histogram(COUNTS), [KIND, LOCK],
        "attempts to gather a majority until the lock was won";
    GRANT_VALIDITY = "quorate_grant_validity_ratio": histogram(RATIOS), [KIND, LOCK],
        "share of the validity that was left when the lock was given";
    RENEWAL_VALIDITY = "quorate_renewal_validity_ratio": histogram(RATIOS), [KIND, LOCK],
        "share of the validity that was left when a majority had renewed";
    ATTEMPTS = "quorate_attempts_total": COUNTER, [KIND, LOCK, ATTEMPTED],
        "attempts to gather a majority";
    VERDICTS = "quorate_verdicts_total": COUNTER, [VOTER, VERDICT],
        "answers of voters to acquires and renewals";
    REFUSALS = "quorate_refusals_total": COUNTER, [VOTER, REFUSED],
        "refusals among these answers, by what stood in the way";
    UNACKNOWLEDGED = "quorate_unacknowledged_total": COUNTER, [VOTER],
        "grants that too few replicas acknowledged in time";
    VOTER_SECONDS = "quorate_voter_seconds": histogram(TIMES), [VOTER],
        "time to a voter's answer";
    QUEUE_SECONDS = "quorate_queue_seconds": histogram(TIMES), [VOTER],
        "time that the oldest request of a call waited in the client before it left";
    RENEWALS = "quorate_renewals_total": COUNTER, [KIND, LOCK, RENEWED],
        "rounds of renewal";
    HOLD_SECONDS = "quorate_hold_seconds": histogram(HOLDS), [KIND, LOCK],
        "time from the start of an acquisition to its hold's end";
    OLDEST_HOLD_SECONDS = "quorate_oldest_hold_seconds": GAUGE, [KIND, LOCK],
        "age of the oldest hold of the process that is held, told every 5 s";
    LOST = "quorate_lost_total": COUNTER, [KIND, LOCK, LOSS],
        "holds that ended without being released";
    HELD = "quorate_held": GAUGE, [KIND, LOCK],
        "locks held now";
    WAITING = "quorate_waiting": GAUGE, [KIND, LOCK],
        "callers waiting for a lock now";
    WAKEUPS = "quorate_wakeups_total": COUNTER, [KIND, LOCK, WAKEUP],
        "times that waiters asked again";
    LEAKED_VOTES = "quorate_leaked_votes_total": COUNTER, [VOTER],
        "releases and undos that the voter never confirmed";
    CLIENTS = "quorate_clients": GAUGE, [VOTER],
        "clients of the process that use the voter and are not closed";
    CONNECTIONS = "quorate_connections": GAUGE, [VOTER],
        "connections to the voter's servers that stand now";
    QUARANTINED = "quorate_quarantined": GAUGE, [VOTER],
        "clients for which the voter is in quarantine now";
    QUARANTINES = "quorate_quarantines_total": COUNTER, [VOTER, SUSPICION],
        "quarantines begun";
    CLOCK_AHEAD = "quorate_clock_ahead_seconds": GAUGE, [VOTER],
        "voter's clock ahead of the client's";
    REFUSING = "quorate_refusing": GAUGE, [VOTER],
        "clients for which the voter answers but takes no new votes now";
    CONFIGURATION_MISMATCH = "quorate_configuration_mismatch": GAUGE, [VOTER],
        "clients that disagree with others of the voter about the voters";
    MEMORY = "quorate_memory_ratio": GAUGE, [VOTER],
        "share of its maxmemory that the voter uses, if it has one";
    CERTIFICATE_START = "quorate_certificate_start_seconds": GAUGE, [],
        "time from which the client's own certificate is valid, since 1970";
    CERTIFICATE_END = "quorate_certificate_end_seconds": GAUGE, [],
        "time until which the client's own certificate is valid, since 1970";
    TOKEN_REPAIRS = "quorate_token_repairs_total": COUNTER, [KIND, LOCK, REPAIRED],
        "tokens that a majority had to be told";
    HANDOVERS = "quorate_handovers_total": COUNTER, [KIND, LOCK],
        "locks that went from task to task of one client";
    OBSERVERS = "quorate_observers": GAUGE, [LOCK],
        "observers of elections now";
    OBSERVED = "quorate_observed_total": COUNTER, [LOCK, WATCHED],
        "what observers of elections were told";
}

/// The name of each histogram, with the upper bounds of its buckets.
///
/// # Examples
///
/// ```
/// let (name, bounds) = quorate::metric::buckets().next().unwrap();
/// assert_eq!(name, quorate::metric::ACQUIRE_SECONDS);
/// assert_eq!((bounds.first(), bounds.last()), (Some(&50e-6), Some(&60.0)));
/// ```
pub fn buckets() -> impl Iterator<Item = (&'static str, &'static [f64])> {
    let histograms = ALL.iter().filter(|metric| !metric.buckets.is_empty());
    histograms.map(|metric| (metric.name, metric.buckets))
}

/// Gives the installed recorder the unit and the help text of each metric.
pub(crate) fn describe() {
    for Metric { name, kind, unit, help, .. } in ALL.iter().copied() {
        let unit = match unit {
            MetricUnit::Count => metrics::Unit::Count,
            MetricUnit::Seconds => metrics::Unit::Seconds,
        };
        match kind {
            MetricKind::Counter => metrics::describe_counter!(name, unit, help),
            MetricKind::Gauge => metrics::describe_gauge!(name, unit, help),
            MetricKind::Histogram => metrics::describe_histogram!(name, unit, help),
        }
    }
}

/// The locks that metrics may name: names, or beginnings of names with a `*` at the end.
// A list, as each name makes a set of series: with all names, a user of the service could make a
// million of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamedLocks(Vec<Arc<str>>);

impl NamedLocks {
    pub(crate) fn new<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> Self {
        Self(names.into_iter().map(|name| name.as_ref().into()).collect())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The first entry that fits a lock, with its number.
    pub(super) fn of(&self, lock: &str) -> Option<(usize, &Arc<str>)> {
        self.0.iter().enumerate().find(|(_, name)| match name.strip_suffix('*') {
            Some(beginning) => lock.starts_with(beginning),
            None => lock == &***name,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_apart_from_50_microseconds_to_60_seconds() {
        assert_eq!((TIMES[0], TIMES.last()), (50e-6, Some(&60.0)));
        for buckets in [TIMES, HOLDS, COUNTS, RATIOS] {
            assert!(buckets.is_sorted_by(|one, next| one < next));
        }
    }

    #[test]
    fn every_histogram_has_buckets_and_nothing_else_has() {
        let histograms = ALL.iter().filter(|metric| metric.kind == MetricKind::Histogram);
        let named = histograms.map(|metric| (metric.name, metric.buckets));
        assert!(buckets().eq(named) && buckets().count() > 5);
    }

    #[test]
    fn a_lock_is_named_by_the_first_entry_that_fits() {
        let named = NamedLocks::new(["invoice:42", "invoice:*", "report"]);
        let names = ["invoice:42", "invoice:43", "report", "reports", "invoice"];
        let seen = names.map(|lock| named.of(lock).map(|(_, name)| &**name));
        assert_eq!(seen, [Some("invoice:42"), Some("invoice:*"), Some("report"), None, None]);
    }
}
