//! A writer among many readers that come and go.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use fred::types::Value;
use quorate::{Preference, Quorate, RwLock};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::median;
use quorate_benches::{
    common::{clients, close},
    floor::{self, CALLS, Nodes, RW_ACQUIRE, RW_RELEASE, Script},
    report::{Length, Report},
};
use quorate_support::RedisServer;

/// The most that a writer may need, as a multiple of the floor.
const LIMIT: f64 = 1.5;
/// After which something must have gone wrong where they do.
const PATIENCE: Duration = Duration::from_secs(30);
const DEADLINE: Duration = Duration::from_secs(1);

/// How often a writer tries to enter.
#[derive(Clone, Copy)]
pub(crate) struct Tries {
    count: usize,
    /// After which a writer gives up that readers do not let pass; `None` where they do.
    limit: Option<Duration>,
}

impl Tries {
    pub(crate) fn of(preference: Preference, length: Length, rounds: usize) -> Self {
        if preference != Preference::Readers {
            return Self { count: rounds, limit: None };
        }
        // More tries past readers that nobody makes wait would show the same.
        let limit = Duration::from_millis(length.pick(3000, 200));
        Self { count: rounds.min(length.pick(3, 1)), limit: Some(limit) }
    }
}

/// How long a writer needs to enter.
///
/// The floor is what no lock can spare it: whoever read when it asked must end, and its request
/// and the news that they have ended take a round trip each. The first is what the readers
/// themselves say afterwards, the second is taken by hand just before, with the same scripts and
/// among the same readers. Reads that were granted on the way of its request are not in the floor.
pub(crate) async fn among(
    report: &mut Report,
    servers: &[RedisServer],
    size: usize,
    preference: Preference,
    tries: Tries,
) {
    let name = format!("{preference:?}").to_lowercase();
    let lock = |client: &Quorate| client.rw_lock(format!("bench:{name}")).preference(preference);
    let readers = clients(servers, size, |builder| builder).await;
    let locks: Vec<RwLock> = readers.iter().map(lock).collect();
    let crowd = Crowd::gather(&locks, size);
    let raw = Raw::connect(servers).await;
    let writing = clients(servers, 1, |builder| builder).await;
    let writer = lock(&writing[0]);
    let (mut times, mut floors, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..tries.count {
        crowd.come_and_go().await;
        let trips = raw.round_trips().await;
        if let Some((took, remaining)) = crowd.write(&writer, tries.limit).await {
            let floor = (remaining + trips).as_secs_f64();
            times.push(took.as_secs_f64() * 1e3);
            floors.push(floor * 1e3);
            ratios.push(took.as_secs_f64() / floor);
        }
    }
    crowd.dismiss().await;
    raw.nodes.close().await;
    close(writing).await;
    close(readers).await;
    let entered = format!("{} of {}", times.len(), tries.count);
    print!("    {:30} {entered:>10}", format!("preference: {name}"));
    let who = match preference {
        Preference::Writers => "readers let writers pass",
        Preference::Readers => "writers let readers pass",
        Preference::Fair => "all come in the order of asking",
    };
    if times.is_empty() {
        println!(" {:>9}", "never");
        report.row([who.to_owned(), entered, "never".to_owned(), String::new()]);
        return;
    }
    let ratio = median(ratios);
    println!(" {:9.1} {:9.1} {ratio:10.2}", median(times), median(floors));
    let [cell, limit] = if tries.limit.is_none() {
        let bar = format!("writer_among_{size}_{name}");
        [report.bar(&bar, ratio, LIMIT), format!("{LIMIT:.2}")]
    } else {
        [format!("{ratio:.2}"), String::new()]
    };
    report.row([who.to_owned(), entered, cell, limit]);
}

/// Readers that hold some 20 ms, and ask again as soon as they have released.
struct Crowd {
    tasks: JoinSet<()>,
    size: usize,
    seen: Arc<Seen>,
}

/// What the readers say of their reads.
#[derive(Default)]
struct Seen {
    ended: AtomicU64,
    writer: Mutex<Writer>,
}

/// A writer that waits, and the last end of those reads that were there when it asked.
#[derive(Default)]
struct Writer {
    asked: Option<Instant>,
    last: Option<Instant>,
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures in real time")]
impl Crowd {
    fn gather(locks: &[RwLock], size: usize) -> Self {
        let (mut tasks, seen) = (JoinSet::new(), Arc::<Seen>::default());
        for reader in 0..size {
            tasks.spawn(read(locks[reader % locks.len()].clone(), reader, Arc::clone(&seen)));
        }
        Self { tasks, size, seen }
    }

    /// Returns when all readers have come and gone several times since: by then they are no longer
    /// in step, as the last writer left them.
    async fn come_and_go(&self) {
        let ended = || self.seen.ended.load(Ordering::Relaxed);
        let enough = ended() + 5 * self.size as u64;
        let come = async {
            while ended() < enough {
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(PATIENCE, come).await.expect("they read");
    }

    /// How long a writer took to enter, and how long those still had that read when it asked.
    async fn write(&self, lock: &RwLock, limit: Option<Duration>) -> Option<(Duration, Duration)> {
        let asked = Instant::now();
        *self.seen.writer() = Writer { asked: Some(asked), last: None };
        let entered = lock.write_within(limit.unwrap_or(PATIENCE)).await;
        let took = asked.elapsed();
        let Writer { last, .. } = std::mem::take(&mut *self.seen.writer());
        let Some(guard) = entered.expect("a majority answers") else {
            assert!(limit.is_some(), "readers must let a writer pass");
            return None;
        };
        guard.release().await.expect("a majority confirms");
        Some((took, last.map_or(Duration::ZERO, |last| last - asked)))
    }

    async fn dismiss(mut self) {
        self.tasks.shutdown().await;
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures in real time")]
async fn read(lock: RwLock, reader: usize, seen: Arc<Seen>) {
    for read in 0.. {
        let guard = lock.read().await.expect("a majority answers");
        let since = Instant::now();
        // Not all alike, so that they do not go in step.
        let ms = 15 + (7 * reader + 13 * read) % 11;
        sleep(Duration::from_millis(ms as u64)).await;
        seen.ended(since, Instant::now());
        guard.release().await.expect("a majority confirms");
    }
}

impl Seen {
    fn ended(&self, since: Instant, now: Instant) {
        self.ended.fetch_add(1, Ordering::Relaxed);
        let mut writer = self.writer();
        if writer.asked.is_some_and(|asked| since <= asked) {
            writer.last = writer.last.max(Some(now));
        }
    }

    fn writer(&self) -> std::sync::MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Requests by hand, for a lock that nobody else wants.
struct Raw {
    nodes: Nodes,
    acquire: Script<6, 9>,
    release: Script<5, 4>,
}

impl Raw {
    async fn connect(servers: &[RedisServer]) -> Self {
        let nodes = Nodes::connect(servers, DEADLINE).await;
        let acquire = nodes.load(&RW_ACQUIRE).await;
        let release = nodes.load(&RW_RELEASE).await;
        Self { nodes, acquire, release }
    }

    /// How long two requests take, one after the other: a write, and its release.
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures in real time")]
    async fn round_trips(&self) -> Duration {
        let parts = ["writer", "readers", "queue", "alive", "writers", "fence"];
        let keys = parts.map(|part| Value::from(format!("quorate:{{bench:flat}}:rw:{part}")));
        // As long as ours: the uuid of a client, and a number.
        let hold = Value::from("67e55044-10b1-426f-9247-bb680e5fe0c8:1");
        let [calls, lease, keep, wait, _, floor, ticket] = floor::asking(hold.clone());
        let leaving = [CALLS.into(), hold.clone(), "0".into(), "".into()];
        let (mode, turn) = ("write".into(), "next".into());
        let asking = [calls, mode, turn, lease, keep, wait, hold, floor, ticket];
        let without_fence = keys.first_chunk().expect("there are six");
        let started = Instant::now();
        self.nodes.majority(&self.acquire, &keys, &asking).await;
        self.nodes.majority(&self.release, without_fence, &leaving).await;
        started.elapsed()
    }
}
