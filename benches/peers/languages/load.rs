//! What tasks do with the locks of this library, and how long it takes: the programs in other
//! languages do the same with theirs.

#![expect(clippy::disallowed_methods, reason = "a benchmark measures in real time")]

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use quorate::{Error, MutexGuard, Quorate};
use quorate_peers::{program::Answer, usage::processor_time};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

/// Until all who wait have asked.
const LEAD_IN: Duration = Duration::from_millis(300);
/// So long that who asks again finds it taken, and has to wait as the others do.
const HELD: Duration = Duration::from_millis(2);

/// Plain or fair.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Plain,
    Fair,
}

impl Kind {
    async fn lock(self, client: &Quorate, name: &str) -> Result<MutexGuard, Error> {
        match self {
            Self::Plain => client.mutex(name).lock().await,
            Self::Fair => client.fair_mutex(name).lock().await,
        }
    }
}

/// Times that were measured, and failures.
#[derive(Debug, Default)]
struct Tally(Mutex<(Vec<Duration>, u32)>);

impl Tally {
    fn time(&self, took: Duration) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0.push(took);
    }

    fn fail(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1 += 1;
    }

    fn answer(&self, elapsed: Duration, processor: Duration) -> Answer {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        answer(all.0.clone(), all.1, elapsed, processor)
    }
}

fn answer(mut times: Vec<Duration>, failed: u32, elapsed: Duration, processor: Duration) -> Answer {
    times.sort_unstable();
    let permille = |at: usize| times.get(times.len() * at / 1000).copied().unwrap_or_default();
    let count = u32::try_from(times.len()).expect("there are not that many");
    let [p50, p99, p999] = [500, 990, 999].map(permille);
    Answer { count, failed, elapsed, p50, p99, p999, processor, memory: 0 }
}

/// Each task takes and gives back a lock of its own, again and again.
pub(crate) async fn cycles(client: &Quorate, name: &str, tasks: usize, within: Duration) -> Answer {
    let over = Arc::new(AtomicBool::new(false));
    let mut running = JoinSet::new();
    let (used, started) = (processor_time(), Instant::now());
    for task in 0..tasks {
        let (client, over) = (client.clone(), Arc::clone(&over));
        let name = format!("{name}:{task}");
        running.spawn(async move {
            let (mut times, mut failed) = (Vec::new(), 0);
            while !over.load(SeqCst) {
                let started = Instant::now();
                match lock_and_release(&client, &name).await {
                    Ok(()) => times.push(started.elapsed()),
                    Err(_) => failed += 1,
                }
            }
            (times, failed)
        });
    }
    sleep(within).await;
    over.store(true, SeqCst);
    let (mut times, mut failed) = (Vec::new(), 0);
    while let Some(done) = running.join_next().await {
        let (took, lost) = done.expect("no panic");
        times.extend(took);
        failed += lost;
    }
    answer(times, failed, started.elapsed(), processor_time().saturating_sub(used))
}

async fn lock_and_release(client: &Quorate, name: &str) -> Result<(), Error> {
    client.mutex(name).lock().await?.release().await
}

/// What those who want one lock share.
#[derive(Debug)]
struct Shared {
    began: Instant,
    /// When the last release began, in nanoseconds; 0 once the next one has the lock.
    released: AtomicU64,
    grants: AtomicU64,
    is_held: AtomicBool,
    is_measuring: AtomicBool,
    tally: Tally,
}

impl Shared {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            released: AtomicU64::new(0),
            grants: AtomicU64::new(0),
            is_held: AtomicBool::new(false),
            is_measuring: AtomicBool::new(false),
            tally: Tally::default(),
        }
    }

    fn nanos(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).expect("it does not take centuries")
    }

    /// Has the lock once, and waits until another has it.
    async fn take_turn(&self, kind: Kind, client: &Quorate, name: &str) -> Result<(), Error> {
        let guard = kind.lock(client, name).await?;
        let (now, released) = (self.nanos(), self.released.swap(0, SeqCst));
        let grant = self.grants.fetch_add(1, SeqCst) + 1;
        if self.is_held.swap(true, SeqCst) {
            self.tally.fail();
        }
        if released != 0 && self.is_measuring.load(SeqCst) {
            self.tally.time(Duration::from_nanos(now - released));
        }
        sleep(HELD).await;
        self.is_held.store(false, SeqCst);
        self.released.store(self.nanos(), SeqCst);
        guard.release().await?;
        while self.grants.load(SeqCst) == grant {
            sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }
}

/// All want one lock, again and again.
pub(crate) async fn handoff(
    kind: Kind,
    clients: &[Quorate],
    name: &str,
    waiters: usize,
    within: Duration,
) -> Answer {
    let shared = Arc::new(Shared::new());
    let mut running = JoinSet::new();
    for waiter in 0..waiters {
        let (client, shared) = (clients[waiter % clients.len()].clone(), Arc::clone(&shared));
        let name = name.to_owned();
        running.spawn(async move {
            loop {
                if shared.take_turn(kind, &client, &name).await.is_err() {
                    shared.tally.fail();
                }
            }
        });
    }
    sleep(LEAD_IN).await;
    let (used, started) = (processor_time(), Instant::now());
    shared.is_measuring.store(true, SeqCst);
    sleep(within).await;
    shared.is_measuring.store(false, SeqCst);
    let answer = shared.tally.answer(started.elapsed(), processor_time().saturating_sub(used));
    running.shutdown().await;
    answer
}

/// All want one lock once, at the same moment.
pub(crate) async fn crowd(
    kind: Kind,
    clients: &[Quorate],
    name: &str,
    waiters: usize,
    limit: Duration,
) -> Answer {
    let tally = Arc::new(Tally::default());
    let mut running = JoinSet::new();
    let (used, began) = (processor_time(), Instant::now());
    for waiter in 0..waiters {
        let (client, tally) = (clients[waiter % clients.len()].clone(), Arc::clone(&tally));
        let name = name.to_owned();
        running.spawn(async move {
            let locked = kind.lock(&client, &name).await;
            let took = began.elapsed();
            let released = match locked {
                Ok(guard) => guard.release().await,
                Err(error) => Err(error),
            };
            released.map_or_else(|_| tally.fail(), |()| tally.time(took));
        });
    }
    // What is not done by then is seen in the count.
    let _ = timeout(limit, async { while running.join_next().await.is_some() {} }).await;
    let elapsed = began.elapsed();
    running.shutdown().await;
    tally.answer(elapsed, processor_time().saturating_sub(used))
}
