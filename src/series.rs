//! The series that a client writes to, made once: a name with labels costs an allocation and a hash
//! each time it is made.
//!
//! They are keys and no handles: a recorder that is installed later is written to from then on.

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
    /// That of a metric without labels.
    #[cfg(feature = "tls")]
    const fn alone(name: &'static str) -> Self {
        Self(Key::from_static_name(name))
    }

    fn by(labels: &Labelled, name: &'static str) -> Self {
        Self(Key::from_parts(name, labels.0.clone()))
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

/// From when the certificate is valid that clients of the process show to servers.
#[cfg(feature = "tls")]
pub(crate) static CERTIFICATE_START: Series = Series::alone(metric::CERTIFICATE_START);
/// Until when it is.
#[cfg(feature = "tls")]
pub(crate) static CERTIFICATE_END: Series = Series::alone(metric::CERTIFICATE_END);

/// The series of a metric that has one more label: one series for each of its values.
#[derive(Debug)]
pub(crate) struct Family(Vec<(&'static str, Series)>);

impl Family {
    fn by(labels: &Labelled, name: &'static str, label: Label) -> Self {
        let series = |value| {
            let mut labels = labels.clone();
            labels.0.push(metrics::Label::from_static_parts(label.name, value));
            (value, Series::by(&labels, name))
        };
        Self(label.values.iter().copied().map(series).collect())
    }

    fn begin(&self) {
        self.0.iter().for_each(|(_, series)| series.count(0));
    }

    /// The one where the label has this value, of those that the metric is listed with.
    pub(crate) fn of(&self, value: &str) -> &Series {
        let series = self.0.iter().find(|(of, _)| *of == value);
        &series.expect("each value of a label is listed").1
    }
}

/// What all series of a lock, or of a voter, are labelled with.
#[derive(Clone)]
struct Labelled(Vec<metrics::Label>);

/// A label of the locks that are named, and nothing for the others.
fn of_lock(lock: Option<&Arc<str>>) -> Option<metrics::Label> {
    lock.map(|lock| metrics::Label::new(metric::LOCK.name, Arc::clone(lock)))
}

/// Makes a set of series with the same labels: a field for each metric, with the label by which one
/// is a family.
macro_rules! series {
    ($(#[$about:meta])* $name:ident; $($field:ident: $type:ident = $($of:ident),+;)*) => {
        $(#[$about])*
        #[derive(Debug)]
        pub(crate) struct $name {
            $(pub(crate) $field: $type,)*
        }

        impl $name {
            fn labelled(labels: &Labelled) -> Self {
                Self { $($field: $type::by(labels, $(metric::$of),+),)* }
            }
        }
    };
}

series! {
    /// Those of the locks of one kind, or of one of them that is named.
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
    /// Its counters begin, and a gauge that only says something now and then.
    fn begin(&self) {
        let Self { attempts, renewals, lost, wakeups, token_repairs, .. } = self;
        for family in [attempts, renewals, lost, wakeups, token_repairs] {
            family.begin();
        }
        self.handovers.count(0);
        // Another client of the process may have told it more.
        self.oldest_hold.change(0.0);
    }
}

/// The ages of the oldest holds of each client of the process, by its number.
static AGES: PerProcess<BTreeMap<Series, BTreeMap<u64, Duration>>> = PerProcess::new();

/// Tells how old a client's oldest holds are. Clients of one process share a gauge: it shows the
/// oldest of all of them. From when this is dropped on, the client has none.
#[derive(Debug)]
pub(crate) struct OldestHolds {
    client: u64,
}

impl OldestHolds {
    pub(crate) fn new() -> Self {
        static CLIENTS: AtomicU64 = AtomicU64::new(0);
        Self { client: CLIENTS.fetch_add(1, Ordering::Relaxed) }
    }

    /// The age of each hold that the client has. A recorder that panics ends nothing else.
    pub(crate) fn tell<'a>(&self, holds: impl Iterator<Item = (&'a LockSeries, Duration)>) {
        let _ = catch_unwind(AssertUnwindSafe(|| self.set(holds)));
    }

    fn set<'a>(&self, holds: impl Iterator<Item = (&'a LockSeries, Duration)>) {
        let mut ages = BTreeMap::<Series, Duration>::new();
        for (series, age) in holds {
            let of_kind = ages.entry(series.oldest_hold.clone()).or_default();
            *of_kind = age.max(*of_kind);
        }
        for series in self.replace(&ages) {
            // No mutex is held while a recorder is told, so another client may tell it meanwhile:
            // whoever is the last tells the latest.
            let mut told = None;
            loop {
                let age = oldest(&series);
                if told.replace(age) == Some(age) {
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
        self.tell(std::iter::empty());
    }
}

/// Those of a client's locks, each made when it is first asked for.
#[derive(Debug)]
pub(crate) struct AllLockSeries {
    named: NamedLocks,
    /// For each kind those of the locks without a name, and then of each named one.
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
            let labels = Labelled([kind].into_iter().chain(lock).collect());
            Box::new(LockSeries::labelled(&labels))
        });
        // A recorder may take its time: nobody waits for what it is told.
        if begins {
            series.begin();
        }
        series
    }
}

/// Those of one observer of an election, who is counted for as long as this is there.
#[derive(Debug)]
pub(crate) struct ObserverSeries {
    observers: Series,
    observed: Family,
}

impl ObserverSeries {
    /// There is one observer more.
    pub(crate) fn begin(named: &NamedLocks, lock: &str) -> Self {
        let name = named.of(lock).map(|(_, name)| name);
        let of = Labelled(of_lock(name).into_iter().collect());
        let observed = Family::by(&of, metric::OBSERVED, metric::WATCHED);
        if name.is_none() {
            observed.begin();
        }
        let observers = Series::by(&of, metric::OBSERVERS);
        observers.change(1.0);
        Self { observers, observed }
    }

    /// Counts one thing that it was told: `leader`, `no_leader` or `unknown`.
    pub(crate) fn tell(&self, outcome: &str) {
        self.observed.of(outcome).count(1);
    }
}

impl Drop for ObserverSeries {
    fn drop(&mut self) {
        self.observers.change(-1.0);
    }
}

series! {
    /// Those of a voter.
    VoterSeries;
    voter_seconds: Series = VOTER_SECONDS;
    queue_seconds: Series = QUEUE_SECONDS;
    verdicts: Family = VERDICTS, VERDICT;
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
        Self::labelled(&Labelled(vec![voter]))
    }

    /// Its counters begin, and there is one client more.
    pub(crate) fn begin(&self) {
        let Self { verdicts, quarantines, unacknowledged, leaked_votes, .. } = self;
        verdicts.begin();
        quarantines.begin();
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
