//! Every metric: name, type, unit, help, labels and buckets.
//!
//! Recorded by the [`metrics`] facade, by these names. **Tell the recorder the
//! [`buckets`] of the histograms.** The Prometheus exporter writes a histogram without buckets as a
//! summary, and says nothing: the dashboard and the alerts that come with this crate then stay
//! empty. `examples/web/service.rs` has this as it runs:
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
//! [`ALL`] has everything else that there is to know about each metric.

use std::sync::Arc;

/// Time to the answer of `lock`, `try_lock`, `lock_within` and their like.
pub const ACQUIRE_SECONDS: &str = "quorate_acquire_seconds";
/// The part of it that passed before the attempt that won began.
pub const WAIT_SECONDS: &str = "quorate_wait_seconds";
/// Attempts that a grant took.
pub const GRANT_ATTEMPTS: &str = "quorate_grant_attempts";
/// What was left of the validity when a lock was given.
pub const GRANT_VALIDITY: &str = "quorate_grant_validity_ratio";
/// What was left of the validity when a majority had renewed.
pub const RENEWAL_VALIDITY: &str = "quorate_renewal_validity_ratio";
/// Attempts to gather a majority.
pub const ATTEMPTS: &str = "quorate_attempts_total";
/// Answers to acquires and renewals.
pub const VERDICTS: &str = "quorate_verdicts_total";
/// Grants that too few replicas acknowledged in time.
pub const UNACKNOWLEDGED: &str = "quorate_unacknowledged_total";
/// Time to a voter's answer.
pub const VOTER_SECONDS: &str = "quorate_voter_seconds";
/// How long the oldest request of a call waited in the client before it left.
pub const QUEUE_SECONDS: &str = "quorate_queue_seconds";
/// Rounds of renewal.
pub const RENEWALS: &str = "quorate_renewals_total";
/// Time from the start of an acquisition to the end of its hold.
pub const HOLD_SECONDS: &str = "quorate_hold_seconds";
/// Age of the oldest hold.
pub const OLDEST_HOLD_SECONDS: &str = "quorate_oldest_hold_seconds";
/// Holds that ended without being released.
pub const LOST: &str = "quorate_lost_total";
/// Locks held now.
pub const HELD: &str = "quorate_held";
/// Callers waiting for a lock now.
pub const WAITING: &str = "quorate_waiting";
/// Why waiters asked again.
pub const WAKEUPS: &str = "quorate_wakeups_total";
/// Releases and undos that were given up.
pub const LEAKED_VOTES: &str = "quorate_leaked_votes_total";
/// Clients that use a voter.
pub const CLIENTS: &str = "quorate_clients";
/// Connections for scripts that stand now.
pub const CONNECTIONS: &str = "quorate_connections";
/// Clients for which a voter is in quarantine now.
pub const QUARANTINED: &str = "quorate_quarantined";
/// Quarantines begun.
pub const QUARANTINES: &str = "quorate_quarantines_total";
/// By how much a voter's clock was ahead of the client's wall clock.
pub const CLOCK_AHEAD: &str = "quorate_clock_ahead_seconds";
/// Clients for which a voter takes no new votes now.
pub const REFUSING: &str = "quorate_refusing";
/// Clients that disagree with others about who the voters are.
pub const OUT_OF_STEP: &str = "quorate_out_of_step";
/// How much of its memory a voter uses.
pub const MEMORY: &str = "quorate_memory_ratio";
/// From when the client's own certificate is valid, in seconds since 1970.
pub const CERTIFICATE_START: &str = "quorate_certificate_start_seconds";
/// Until when it is.
pub const CERTIFICATE_END: &str = "quorate_certificate_end_seconds";
/// Tokens that a majority had to be told.
pub const TOKEN_REPAIRS: &str = "quorate_token_repairs_total";
/// Holds that a task of a client gave to the next one in its line.
pub const HANDOVERS: &str = "quorate_handovers_total";
/// Observers of elections now.
pub const OBSERVERS: &str = "quorate_observers";
/// What observers of elections were told.
pub const OBSERVED: &str = "quorate_observed_total";

/// One metric.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Metric {
    /// What it is called.
    pub name: &'static str,
    /// How it is counted.
    pub kind: MetricKind,
    /// What it is counted in. Ratios are from 0 to 1.
    pub unit: MetricUnit,
    /// One line about it.
    pub help: &'static str,
    /// What tells its series apart.
    pub labels: &'static [Label],
    /// The upper bounds of a histogram's buckets; empty for anything else.
    pub buckets: &'static [f64],
}

/// What a metric is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetricUnit {
    /// Things, or a share of all of them.
    Count,
    /// Seconds, with parts of them.
    Seconds,
}

impl MetricUnit {
    /// By Prometheus' habit the name ends with the unit.
    const fn of(name: &str) -> Self {
        if let [.., b'_', b's', b'e', b'c', b'o', b'n', b'd', b's'] = name.as_bytes() {
            return Self::Seconds;
        }
        Self::Count
    }
}

/// How a metric is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetricKind {
    /// Only grows. Each begins at zero, so that the first event is seen as an increase. Those with
    /// the label `kind` begin when a client first asks for a lock of that kind, [`OBSERVED`] with
    /// the first observer, and all others when a client connects. Those of
    /// [named](crate::Builder::named_metrics) locks begin with their first event.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts values by buckets.
    Histogram,
}

/// A label, and the values that it may have.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Label {
    /// What it is called.
    pub name: &'static str,
    /// All that there are. Empty: the addresses of the voters, or the locks that were
    /// [named](crate::Builder::named_metrics).
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
/// Finer where it is getting close.
const RATIOS: &[f64] = &[0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0];

const fn label(name: &'static str, values: &'static [&'static str]) -> Label {
    Label { name, values }
}

pub(super) const LOCK: Label = label("lock", &[]);
pub(super) const KIND: Label =
    label("kind", &["mutex", "fair_mutex", "read", "write", "semaphore", "election"]);
pub(super) const VOTER: Label = label("voter", &[]);
pub(super) const ACQUIRED: Label =
    label("outcome", &["granted", "held", "no_quorum", "cancelled", "error"]);
pub(super) const ATTEMPTED: Label = label("outcome", &["won", "held", "split", "no_quorum"]);
pub(super) const VERDICT: Label = label("verdict", &["granted", "refused", "unknown"]);
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
        "out_of_step",
    ],
);
pub(super) const WAKEUP: Label = label("cause", &["called", "missed", "timer"]);
pub(super) const SUSPICION: Label =
    label("reason", &["restarted", "young", "emptied", "clock_moved", "clock_apart"]);
pub(super) const WATCHED: Label = label("outcome", &["leader", "no_leader", "unknown"]);
pub(super) const REPAIRED: Label = label("outcome", &["stored", "failed"]);

const fn metric(
    kind: MetricKind,
    name: &'static str,
    labels: &'static [Label],
    help: &'static str,
) -> Metric {
    Metric { name, kind, unit: MetricUnit::of(name), help, labels, buckets: &[] }
}

const fn counter(name: &'static str, labels: &'static [Label], help: &'static str) -> Metric {
    metric(MetricKind::Counter, name, labels, help)
}

const fn gauge(name: &'static str, labels: &'static [Label], help: &'static str) -> Metric {
    metric(MetricKind::Gauge, name, labels, help)
}

const fn histogram(
    name: &'static str,
    buckets: &'static [f64],
    labels: &'static [Label],
    help: &'static str,
) -> Metric {
    Metric { buckets, ..metric(MetricKind::Histogram, name, labels, help) }
}

/// All there are.
pub const ALL: &[Metric] = &[
    histogram(
        ACQUIRE_SECONDS,
        TIMES,
        &[KIND, LOCK, ACQUIRED],
        "time to an acquire's answer, waiting included",
    ),
    histogram(
        WAIT_SECONDS,
        TIMES,
        &[KIND, LOCK],
        "time from the call to the start of the attempt that won the lock",
    ),
    histogram(
        GRANT_ATTEMPTS,
        COUNTS,
        &[KIND, LOCK],
        "attempts to gather a majority until the lock was won",
    ),
    histogram(
        GRANT_VALIDITY,
        RATIOS,
        &[KIND, LOCK],
        "share of the validity that was left when the lock was given",
    ),
    histogram(
        RENEWAL_VALIDITY,
        RATIOS,
        &[KIND, LOCK],
        "share of the validity that was left when a majority had renewed",
    ),
    counter(ATTEMPTS, &[KIND, LOCK, ATTEMPTED], "attempts to gather a majority"),
    counter(VERDICTS, &[VOTER, VERDICT], "answers of voters to acquires and renewals"),
    counter(UNACKNOWLEDGED, &[VOTER], "grants that too few replicas acknowledged in time"),
    histogram(VOTER_SECONDS, TIMES, &[VOTER], "time to a voter's answer"),
    histogram(
        QUEUE_SECONDS,
        TIMES,
        &[VOTER],
        "time that the oldest request of a call waited in the client before it left",
    ),
    counter(RENEWALS, &[KIND, LOCK, RENEWED], "rounds of renewal"),
    histogram(
        HOLD_SECONDS,
        HOLDS,
        &[KIND, LOCK],
        "time from the start of an acquisition to its hold's end",
    ),
    gauge(
        OLDEST_HOLD_SECONDS,
        &[KIND, LOCK],
        "age of the oldest hold of the process that is held, told every 5 s",
    ),
    counter(LOST, &[KIND, LOCK, LOSS], "holds that ended without being released"),
    gauge(HELD, &[KIND, LOCK], "locks held now"),
    gauge(WAITING, &[KIND, LOCK], "callers waiting for a lock now"),
    counter(WAKEUPS, &[KIND, LOCK, WAKEUP], "times that waiters asked again"),
    counter(LEAKED_VOTES, &[VOTER], "releases and undos that the voter never confirmed"),
    gauge(CLIENTS, &[VOTER], "clients of the process that use the voter and are not closed"),
    gauge(CONNECTIONS, &[VOTER], "connections to the voter's servers that stand now"),
    gauge(QUARANTINED, &[VOTER], "clients for which the voter is in quarantine now"),
    counter(QUARANTINES, &[VOTER, SUSPICION], "quarantines begun"),
    gauge(CLOCK_AHEAD, &[VOTER], "voter's clock ahead of the client's"),
    gauge(REFUSING, &[VOTER], "clients for which the voter answers but takes no new votes now"),
    gauge(OUT_OF_STEP, &[VOTER], "clients that disagree with others of the voter about the voters"),
    gauge(MEMORY, &[VOTER], "share of its maxmemory that the voter uses, if it has one"),
    gauge(
        CERTIFICATE_START,
        &[],
        "time from which the client's own certificate is valid, since 1970",
    ),
    gauge(
        CERTIFICATE_END,
        &[],
        "time until which the client's own certificate is valid, since 1970",
    ),
    counter(TOKEN_REPAIRS, &[KIND, LOCK, REPAIRED], "tokens that a majority had to be told"),
    counter(HANDOVERS, &[KIND, LOCK], "locks that went from task to task of one client"),
    gauge(OBSERVERS, &[LOCK], "observers of elections now"),
    counter(OBSERVED, &[LOCK, WATCHED], "what observers of elections were told"),
];

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

/// Tells the installed recorder every unit and help text.
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

/// The locks that metrics may name: the names themselves, and with a `*` at the end beginnings.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamedLocks(Vec<Arc<str>>);

impl NamedLocks {
    pub(crate) fn new<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> Self {
        Self(names.into_iter().map(|name| name.as_ref().into()).collect())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// What a lock is called in metrics, and which of the names that is.
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
