//! The series of metrics to which a client writes.

// Made once: a name with labels costs an allocation and a hash each time. They are keys, not the
// recorder's handles, so that a recorder that is installed later gets all that follows.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use metrics::{Key, Level, Metadata};

use super::{
    metric::{self, Label, NamedLocks},
    sync::PerProcess,
};

static METADATA: Metadata<'static> = Metadata::new("quorate", Level::INFO, Some("quorate"));

/// A metric with all its labels.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Series(Key);

impl Series {
    #[cfg(feature = "tls")]
    const fn without_labels(name: &'static str) -> Self {
        Self(Key::from_static_name(name))
    }

    fn by(labels: &[metrics::Label], name: &'static str) -> Self {
        Self(Key::from_parts(name, labels.to_vec()))
    }

    pub(crate) fn count(&self, more: u64) {
        metrics::with_recorder(|to| to.register_counter(&self.0, &METADATA).increment(more));
    }

    pub(crate) fn change(&self, by: f64) {
        metrics::with_recorder(|to| to.register_gauge(&self.0, &METADATA).increment(by));
    }

    pub(crate) fn set(&self, value: f64) {
        metrics::with_recorder(|to| to.register_gauge(&self.0, &METADATA).set(value));
    }

    pub(crate) fn record(&self, value: f64) {
        metrics::with_recorder(|to| to.register_histogram(&self.0, &METADATA).record(value));
    }
}

#[cfg(feature = "tls")]
pub(crate) static CERTIFICATE_START: Series = Series::without_labels(metric::CERTIFICATE_START);
#[cfg(feature = "tls")]
pub(crate) static CERTIFICATE_END: Series = Series::without_labels(metric::CERTIFICATE_END);

/// The series of a metric with one more label: one series for each value of it.
#[derive(Debug)]
pub(crate) struct Family(Vec<(&'static str, Series)>);

impl Family {
    fn by(labels: &[metrics::Label], name: &'static str, label: Label) -> Self {
        let series = |value| {
            let own = metrics::Label::from_static_parts(label.name, value);
            (value, Series::by(&[labels, &[own]].concat(), name))
        };
        Self(label.values.iter().copied().map(series).collect())
    }

    /// Writes zero to each series: for Prometheus, an increase from nothing is none.
    fn begin(&self) {
        self.0.iter().for_each(|(_, series)| series.count(0));
    }

    /// The series for a value that the metric is listed with.
    pub(crate) fn of(&self, value: &str) -> &Series {
        let series = self.0.iter().find(|(of, _)| *of == value);
        &series.expect("each value of a label is listed").1
    }
}

/// The label of a named lock; none for other locks.
fn of_lock(lock: Option<&Arc<str>>) -> Option<metrics::Label> {
    lock.map(|lock| metrics::Label::new(metric::LOCK.name, Arc::clone(lock)))
}

/// Makes a set of series with the same labels: a field for each metric. A [`Family`] also names the
/// label of which it has all values.
macro_rules! series {
    ($(#[$about:meta])* $name:ident; $($field:ident: $type:ident = $($of:ident),+;)*) => {
        $(#[$about])*
        #[derive(Debug)]
        pub(crate) struct $name {
            $(pub(crate) $field: $type,)*
        }

        impl $name {
            fn labelled(labels: &[metrics::Label]) -> Self {
                Self { $($field: $type::by(labels, $(metric::$of),+),)* }
            }
        }
    };
}

series! {
    /// The series of all unnamed locks of one kind, or of one named entry.
    LockSeries;
    acquire_seconds: Family = ACQUIRE_SECONDS, ACQUIRED;
    wait_seconds: Series = WAIT_SECONDS;
    grant_attempts: Series = GRANT_ATTEMPTS;
    grant_validity: Series = GRANT_VALIDITY;
    renewal_validity: Series = RENEWAL_VALIDITY;
    attempts: Family = ATTEMPTS, ATTEMPTED;
    renewals: Family = RENEWALS, RENEWED;
    hold_seconds: Series = HOLD_SECONDS;
    oldest_hold: Series = OLDEST_HOLD_SECONDS;
    lost: Family = LOST, LOSS;
    held: Series = HELD;
    waiting: Series = WAITING;
    wakeups: Family = WAKEUPS, WAKEUP;
    token_repairs: Family = TOKEN_REPAIRS, REPAIRED;
    handovers: Series = HANDOVERS;
}

impl LockSeries {
    /// Begins the counters, and the gauge that is written only now and then.
    fn begin(&self) {
        let Self { attempts, renewals, lost, wakeups, token_repairs, .. } = self;
        for family in [attempts, renewals, lost, wakeups, token_repairs] {
            family.begin();
        }
        self.handovers.count(0);
        // Not set to zero: another client of the process may have written an age.
        self.oldest_hold.change(0.0);
    }
}

/// For each series the age of the oldest hold of each client of the process, by its number.
static AGES: PerProcess<BTreeMap<Series, BTreeMap<u64, Duration>>> = PerProcess::new();

/// Writes the ages of a client's oldest holds. A client whose value is dropped has none.
// The clients of a process share the gauge, which shows the oldest of all their holds. If each set
// it by itself, it would show the client that came last.
#[derive(Debug)]
pub(crate) struct OldestHolds {
    client: u64,
}

impl OldestHolds {
    pub(crate) fn new() -> Self {
        static CLIENTS: AtomicU64 = AtomicU64::new(0);
        Self { client: CLIENTS.fetch_add(1, Ordering::Relaxed) }
    }

    /// Writes the ages. `holds`: all holds of the client.
    pub(crate) fn record<'a>(&self, holds: impl Iterator<Item = (&'a LockSeries, Duration)>) {
        // A recorder that panics must not end the keeper: every hold would be lost at its grant.
        let _ = catch_unwind(AssertUnwindSafe(|| self.set(holds)));
    }

    fn set<'a>(&self, holds: impl Iterator<Item = (&'a LockSeries, Duration)>) {
        let mut ages = BTreeMap::<Series, Duration>::new();
        for (series, age) in holds {
            let of_kind = ages.entry(series.oldest_hold.clone()).or_default();
            *of_kind = age.max(*of_kind);
        }
        for series in self.replace(&ages) {
            // No mutex is held while the recorder is called. Another client may write meanwhile, so
            // this writes until nothing has changed: the last writer writes the latest age.
            let mut written = None;
            loop {
                let age = oldest(&series);
                if written.replace(age) == Some(age) {
                    break;
                }
                series.set(age.as_secs_f64());
            }
        }
    }

    /// Keeps the client's ages in place of those that it had. Returns the series of both.
    fn replace(&self, ages: &BTreeMap<Series, Duration>) -> Vec<Series> {
        let mut all = AGES.lock();
        let mut changed: Vec<Series> = ages.keys().cloned().collect();
        for (series, clients) in &mut *all {
            if clients.remove(&self.client).is_some() && !ages.contains_key(series) {
                changed.push(series.clone());
            }
        }
        for (series, age) in ages {
            all.entry(series.clone()).or_default().insert(self.client, *age);
        }
        changed
    }
}

/// The age of the oldest hold of all clients.
fn oldest(series: &Series) -> Duration {
    let all = AGES.lock();
    all.get(series).and_then(|clients| clients.values().max().copied()).unwrap_or_default()
}

impl Drop for OldestHolds {
    fn drop(&mut self) {
        self.record(std::iter::empty());
    }
}

/// The series of a client's locks, each set made when it is first used.
#[derive(Debug)]
pub(crate) struct AllLockSeries {
    named: NamedLocks,
    /// For each kind the set of the unnamed locks, and then that of each named entry.
    made: Vec<OnceLock<Box<LockSeries>>>,
}

impl AllLockSeries {
    pub(crate) fn new(named: NamedLocks) -> Self {
        let kinds = metric::KIND.values.len();
        let made = (0..kinds * (1 + named.len())).map(|_| OnceLock::new()).collect();
        Self { named, made }
    }

    pub(crate) fn of(&self, kind: &'static str, lock: &str) -> &LockSeries {
        let kinds = metric::KIND.values;
        let number = kinds.iter().position(|one| *one == kind).expect("each kind is listed");
        let named = self.named.of(lock);
        let place = named.map_or(0, |(place, _)| 1 + place);
        let made = &self.made[number * (1 + self.named.len()) + place];
        let mut begins = false;
        let series = made.get_or_init(|| {
            begins = named.is_none();
            let kind = metrics::Label::from_static_parts(metric::KIND.name, kind);
            let lock = of_lock(named.map(|(_, name)| name));
            let labels: Vec<_> = [kind].into_iter().chain(lock).collect();
            Box::new(LockSeries::labelled(&labels))
        });
        // Outside of `get_or_init`: others would wait there for a slow recorder.
        if begins {
            series.begin();
        }
        series
    }
}

/// The series of one observer of an election. The gauge includes it until this is dropped.
#[derive(Debug)]
pub(crate) struct ObserverSeries {
    observers: Series,
    observed: Family,
}

impl ObserverSeries {
    /// Counts one observer more.
    pub(crate) fn begin(named: &NamedLocks, lock: &str) -> Self {
        let name = named.of(lock).map(|(_, name)| name);
        let labels: Vec<_> = of_lock(name).into_iter().collect();
        let observed = Family::by(&labels, metric::OBSERVED, metric::WATCHED);
        if name.is_none() {
            observed.begin();
        }
        let observers = Series::by(&labels, metric::OBSERVERS);
        observers.change(1.0);
        Self { observers, observed }
    }

    /// Counts one answer to the observer: `leader`, `no_leader` or `unknown`.
    pub(crate) fn count(&self, outcome: &str) {
        self.observed.of(outcome).count(1);
    }
}

impl Drop for ObserverSeries {
    fn drop(&mut self) {
        self.observers.change(-1.0);
    }
}

series! {
    /// The series of a voter.
    VoterSeries;
    voter_seconds: Series = VOTER_SECONDS;
    queue_seconds: Series = QUEUE_SECONDS;
    verdicts: Family = VERDICTS, VERDICT;
    refusals: Family = REFUSALS, REFUSED;
    unacknowledged: Series = UNACKNOWLEDGED;
    leaked_votes: Series = LEAKED_VOTES;
    clients: Series = CLIENTS;
    connections: Series = CONNECTIONS;
    quarantined: Series = QUARANTINED;
    quarantines: Family = QUARANTINES, SUSPICION;
    refusing: Series = REFUSING;
    configuration_mismatch: Series = CONFIGURATION_MISMATCH;
    clock_ahead: Series = CLOCK_AHEAD;
    memory: Series = MEMORY;
}

impl VoterSeries {
    pub(crate) fn new(voter: &Arc<str>) -> Self {
        let voter = metrics::Label::new(metric::VOTER.name, Arc::clone(voter));
        Self::labelled(&[voter])
    }

    /// Begins the counters and gauges, and counts one client more.
    pub(crate) fn begin(&self) {
        let Self { verdicts, refusals, quarantines, unacknowledged, leaked_votes, .. } = self;
        for family in [verdicts, refusals, quarantines] {
            family.begin();
        }
        unacknowledged.count(0);
        leaked_votes.count(0);
        for gauge in
            [&self.connections, &self.quarantined, &self.refusing, &self.configuration_mismatch]
        {
            gauge.change(0.0);
        }
        self.clients.change(1.0);
    }
}
