//! The series that a client writes to, made once: a name with labels costs an allocation and a hash
//! each time it is made.
//!
//! They are keys and no handles: a recorder that is installed later is written to from then on.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use metrics::{Key, Level, Metadata};

use super::metric::{self, Label, NamedLocks};

static METADATA: Metadata<'static> = Metadata::new("quorate", Level::INFO, Some("quorate"));

/// A metric with all its labels.
#[derive(Debug)]
pub(crate) struct Series(Key);

impl Series {
    /// That of a metric without labels.
    #[cfg(feature = "tls")]
    const fn alone(name: &'static str) -> Self {
        Self(Key::from_static_name(name))
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
struct Labelled(Vec<metrics::Label>);

impl Labelled {
    fn series(&self, name: &'static str) -> Series {
        Series(Key::from_parts(name, self.0.clone()))
    }

    fn family(&self, name: &'static str, label: Label) -> Family {
        let series = |value| {
            let mut labels = self.0.clone();
            labels.push(metrics::Label::from_static_parts(label.name, value));
            (value, Series(Key::from_parts(name, labels)))
        };
        Family(label.values.iter().copied().map(series).collect())
    }
}

/// Those of the locks of one kind, or of one of them that is named.
#[derive(Debug)]
pub(crate) struct LockSeries {
    labels: LockLabels,
    pub(crate) acquire_seconds: Family,
    pub(crate) wait_seconds: Series,
    pub(crate) grant_attempts: Series,
    pub(crate) grant_validity: Series,
    pub(crate) renewal_validity: Series,
    pub(crate) attempts: Family,
    pub(crate) renewals: Family,
    pub(crate) hold_seconds: Series,
    pub(crate) lost: Family,
    pub(crate) held: Series,
    pub(crate) waiting: Series,
    pub(crate) wakeups: Family,
    pub(crate) token_repairs: Family,
    pub(crate) handovers: Series,
}

/// What the series of locks are labelled with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LockLabels {
    kind: &'static str,
    lock: Option<Arc<str>>,
}

impl LockLabels {
    fn labelled(&self) -> Labelled {
        let kind = metrics::Label::from_static_parts(metric::KIND.name, self.kind);
        Labelled([kind].into_iter().chain(of_lock(self.lock.as_ref())).collect())
    }

    fn oldest_hold(&self) -> Series {
        self.labelled().series(metric::OLDEST_HOLD_SECONDS)
    }
}

/// A label of the locks that are named, and nothing for the others.
fn of_lock(lock: Option<&Arc<str>>) -> Option<metrics::Label> {
    lock.map(|lock| metrics::Label::new(metric::LOCK.name, Arc::clone(lock)))
}

impl LockSeries {
    fn new(kind: &'static str, lock: Option<&Arc<str>>) -> Self {
        let labels = LockLabels { kind, lock: lock.cloned() };
        let of = labels.labelled();
        Self {
            labels,
            acquire_seconds: of.family(metric::ACQUIRE_SECONDS, metric::ACQUIRED),
            wait_seconds: of.series(metric::WAIT_SECONDS),
            grant_attempts: of.series(metric::GRANT_ATTEMPTS),
            grant_validity: of.series(metric::GRANT_VALIDITY),
            renewal_validity: of.series(metric::RENEWAL_VALIDITY),
            attempts: of.family(metric::ATTEMPTS, metric::ATTEMPTED),
            renewals: of.family(metric::RENEWALS, metric::RENEWED),
            hold_seconds: of.series(metric::HOLD_SECONDS),
            lost: of.family(metric::LOST, metric::LOSS),
            held: of.series(metric::HELD),
            waiting: of.series(metric::WAITING),
            wakeups: of.family(metric::WAKEUPS, metric::WAKEUP),
            token_repairs: of.family(metric::TOKEN_REPAIRS, metric::REPAIRED),
            handovers: of.series(metric::HANDOVERS),
        }
    }

    /// Its counters begin, and a gauge that only says something now and then.
    fn begin(&self) {
        let Self { attempts, renewals, lost, wakeups, token_repairs, .. } = self;
        for family in [attempts, renewals, lost, wakeups, token_repairs] {
            family.begin();
        }
        self.handovers.count(0);
        // Another client of the process may have told it more.
        self.labels.oldest_hold().change(0.0);
    }
}

/// The ages of the oldest holds of each client of the process, by its number.
static AGES: Mutex<BTreeMap<LockLabels, BTreeMap<u64, Duration>>> = Mutex::new(BTreeMap::new());

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

    /// The age of each hold that the client has.
    pub(crate) fn tell<'a>(&self, holds: impl Iterator<Item = (&'a LockSeries, Duration)>) {
        let mut oldest = BTreeMap::<&LockLabels, Duration>::new();
        for (series, age) in holds {
            let of_kind = oldest.entry(&series.labels).or_default();
            *of_kind = age.max(*of_kind);
        }
        let mut all = AGES.lock().unwrap_or_else(PoisonError::into_inner);
        for labels in oldest.keys() {
            if !all.contains_key(labels) {
                all.insert((*labels).clone(), BTreeMap::new());
            }
        }
        for (labels, clients) in &mut *all {
            let age = oldest.get(labels);
            let before = match age {
                Some(age) => clients.insert(self.client, *age),
                None => clients.remove(&self.client),
            };
            if age.or(before.as_ref()).is_some() {
                let oldest = clients.values().max().copied().unwrap_or_default();
                labels.oldest_hold().set(oldest.as_secs_f64());
            }
        }
    }
}

impl Drop for OldestHolds {
    fn drop(&mut self) {
        // A recorder that panics may be what ends it.
        if !std::thread::panicking() {
            self.tell(std::iter::empty());
        }
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
        made.get_or_init(|| {
            let series = LockSeries::new(kind, named.map(|(_, name)| name));
            if named.is_none() {
                series.begin();
            }
            Box::new(series)
        })
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
        let observed = of.family(metric::OBSERVED, metric::WATCHED);
        if name.is_none() {
            observed.begin();
        }
        let observers = of.series(metric::OBSERVERS);
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

/// Those of a voter.
#[derive(Debug)]
pub(crate) struct VoterSeries {
    pub(crate) voter_seconds: Series,
    pub(crate) queue_seconds: Series,
    pub(crate) verdicts: Family,
    pub(crate) unacknowledged: Series,
    pub(crate) leaked_votes: Series,
    pub(crate) clients: Series,
    pub(crate) connections: Series,
    pub(crate) quarantined: Series,
    pub(crate) quarantines: Family,
    pub(crate) refusing: Series,
    pub(crate) out_of_step: Series,
    pub(crate) clock_ahead: Series,
    pub(crate) memory: Series,
}

impl VoterSeries {
    pub(crate) fn new(voter: &Arc<str>) -> Self {
        let of = Labelled(vec![metrics::Label::new(metric::VOTER.name, Arc::clone(voter))]);
        Self {
            voter_seconds: of.series(metric::VOTER_SECONDS),
            queue_seconds: of.series(metric::QUEUE_SECONDS),
            verdicts: of.family(metric::VERDICTS, metric::VERDICT),
            unacknowledged: of.series(metric::UNACKNOWLEDGED),
            leaked_votes: of.series(metric::LEAKED_VOTES),
            clients: of.series(metric::CLIENTS),
            connections: of.series(metric::CONNECTIONS),
            quarantined: of.series(metric::QUARANTINED),
            quarantines: of.family(metric::QUARANTINES, metric::SUSPICION),
            refusing: of.series(metric::REFUSING),
            out_of_step: of.series(metric::OUT_OF_STEP),
            clock_ahead: of.series(metric::CLOCK_AHEAD),
            memory: of.series(metric::MEMORY),
        }
    }

    /// Its counters begin, and there is one client more.
    pub(crate) fn begin(&self) {
        let Self { verdicts, quarantines, unacknowledged, leaked_votes, .. } = self;
        verdicts.begin();
        quarantines.begin();
        unacknowledged.count(0);
        leaked_votes.count(0);
        for gauge in [&self.connections, &self.quarantined, &self.refusing, &self.out_of_step] {
            gauge.change(0.0);
        }
        self.clients.change(1.0);
    }
}
