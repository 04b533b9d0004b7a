//! Clients that lock and release all the time, and a check of what they were given.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use futures::future::join_all;
use quorate::{Builder, Error, MutexGuard, Quorate};
use tokio::task::JoinHandle;

use crate::{
    failures::Failures,
    history::{History, overlap},
    resource::Resource,
    scene::{MS, connect},
    until,
};

/// For so long a task waits for its turn.
const PATIENCE: Duration = Duration::from_secs(3);

/// Locks that are taken in turns.
#[derive(Debug)]
pub struct Load {
    clients: Vec<Quorate>,
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    over: AtomicBool,
    failures: Failures,
    locks: Vec<Contested>,
}

/// What was seen of one lock.
#[derive(Debug, Default)]
struct Contested {
    history: History,
    resource: Resource,
    /// Tokens that did not grow.
    wrong: Mutex<Vec<String>>,
    grants: AtomicU64,
}

impl Load {
    /// So many clients, each with a task for each of so many locks.
    pub async fn start(clients: usize, builder: impl Fn() -> Builder, locks: usize) -> Self {
        let locks = (0..locks).map(|_| Contested::default()).collect::<Vec<_>>();
        let shared = Arc::new(Shared { locks, ..Shared::default() });
        let clients = join_all((0..clients).map(|_| connect(builder()))).await;
        let start = |client: &Quorate, lock| {
            let (client, shared) = (client.clone(), Arc::clone(&shared));
            tokio::spawn(async move { work(&client, lock, &shared).await })
        };
        let workers = clients
            .iter()
            .flat_map(|client| (0..shared.locks.len()).map(move |lock| (client, lock)));
        let workers = workers.map(|(client, lock)| start(client, lock)).collect();
        Self { clients, shared, workers }
    }

    /// Waits until each lock was given so many more times.
    pub async fn goes_on(&self, times: u64) {
        let grants = || self.shared.locks.iter().map(|lock| lock.grants.load(SeqCst));
        let before: Vec<_> = grants().collect();
        until!(
            "every lock is given again",
            grants().zip(&before).all(|(now, then)| now >= then + times)
        );
    }

    /// Ends it; panics where two had a lock at the same moment, a token did not grow, or a lock was
    /// held less often than so many times.
    pub async fn judge(self, least: usize) {
        self.shared.over.store(true, SeqCst);
        for ended in join_all(self.workers).await {
            ended.expect("a worker meets no error but those of failures");
        }
        for client in self.clients {
            drop(client.close().await);
        }
        let shared = Arc::into_inner(self.shared).expect("all workers have ended");
        println!("{}", shared.failures);
        for (number, lock) in shared.locks.into_iter().enumerate() {
            let wrong = lock.wrong.into_inner().unwrap_or_else(PoisonError::into_inner);
            assert_eq!(wrong, [""; 0], "lock {number}");
            let spans = lock.history.into_spans();
            println!("lock {number}: {} holds", spans.len());
            assert!(spans.len() >= least, "lock {number}: only {} holds", spans.len());
            if let Some((one, other)) = overlap(spans) {
                panic!("two holders of lock {number} at the same moment: {one:?} and {other:?}");
            }
        }
    }
}

async fn work(client: &Quorate, lock: usize, shared: &Shared) {
    let name = format!("load:{lock}");
    for round in 0_u64.. {
        if shared.over.load(SeqCst) {
            return;
        }
        let given = match round % 3 {
            0 => client.fair_mutex(&name).lock_within(PATIENCE).await,
            _ => client.mutex(&name).lock_within(PATIENCE).await,
        };
        let ended = match given {
            Ok(Some(guard)) => hold(&shared.locks[lock], guard).await,
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        shared.failures.note(ended);
    }
}

async fn hold(contested: &Contested, guard: MutexGuard) -> Result<(), Error> {
    contested.grants.fetch_add(1, SeqCst);
    let token = guard.token();
    if let Some(before) = contested.resource.show(token, || guard.is_held()) {
        let wrong = format!("{token} of {} after {before}", guard.hold());
        contested.wrong.lock().unwrap_or_else(PoisonError::into_inner).push(wrong);
    }
    contested.history.trust(&guard, MS(3)).await;
    guard.release().await
}
