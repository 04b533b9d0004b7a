//! Clients that lock and release all the time, and a checker of what they were given.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use futures::future::join_all;
use quorate::{Builder, MutexGuard, Quorate, Token};
use tokio::task::JoinHandle;

use crate::{
    history::{History, overlap},
    scene::{MS, connect, now},
};

/// Leases as short as the tests are patient.
pub(crate) const LEASE: Duration = Duration::from_secs(3);

/// A client of three voters of the cluster, or of one.
pub(crate) fn builder(urls: &[String], voters: u16) -> Builder {
    Quorate::cluster(urls).voters(voters).builder().lease(LEASE).longest_lease(LEASE)
}

/// Asks for the lease again, now.
pub(crate) async fn renew(guard: &MutexGuard) {
    let again = guard.reenter().await.expect("it is held");
    again.release().await.expect("it is confirmed");
}

/// Locks that are taken in turns.
pub(crate) struct Load {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    over: AtomicBool,
    locks: Vec<Contested>,
    errors: Mutex<Vec<String>>,
}

/// What was seen of one lock.
#[derive(Default)]
struct Contested {
    history: History,
    /// The highest token so far.
    shown: Mutex<Option<Token>>,
    grants: AtomicU64,
}

impl Load {
    /// Two clients with a task for each of so many locks.
    pub(crate) async fn start(urls: &[String], voters: u16, locks: usize) -> Self {
        let locks = (0..locks).map(|_| Contested::default()).collect::<Vec<_>>();
        let shared = Arc::new(Shared { locks, ..Shared::default() });
        let mut workers = Vec::new();
        for _ in 0..2 {
            let client = connect(builder(urls, voters)).await;
            for lock in 0..shared.locks.len() {
                let (client, shared) = (client.clone(), Arc::clone(&shared));
                workers.push(tokio::spawn(async move { work(&client, lock, &shared).await }));
            }
        }
        Self { shared, workers }
    }

    /// How often each lock was given so far.
    pub(crate) fn grants(&self) -> Vec<u64> {
        self.shared.locks.iter().map(|lock| lock.grants.load(SeqCst)).collect()
    }

    /// Whether each lock was given again since.
    pub(crate) fn went_on(&self, since: &[u64]) -> bool {
        self.grants().iter().zip(since).all(|(now, then)| now > then)
    }

    /// Ends it; panics where two had a lock at the same moment, or a token did not grow.
    pub(crate) async fn judge(self) {
        self.shared.over.store(true, SeqCst);
        for ended in join_all(self.workers).await {
            ended.expect("a worker goes on to the end");
        }
        let shared = Arc::into_inner(self.shared).expect("all workers have ended");
        println!("errors on the way: {:?}", shared.errors.into_inner().unwrap());
        for (number, lock) in shared.locks.into_iter().enumerate() {
            let spans = lock.history.into_spans();
            println!("lock {number}: {} holds", spans.len());
            assert!(!spans.is_empty(), "lock {number} was never held");
            if let Some((one, other)) = overlap(spans) {
                panic!("two holders of lock {number} at the same moment: {one:?} and {other:?}");
            }
        }
    }
}

async fn work(client: &Quorate, lock: usize, shared: &Shared) {
    let contested = &shared.locks[lock];
    for round in 0_u64.. {
        if shared.over.load(SeqCst) {
            return;
        }
        let name = format!("load:{lock}");
        let given = match round % 3 {
            0 => client.fair_mutex(&name).lock_within(LEASE).await,
            _ => client.mutex(&name).lock_within(LEASE).await,
        };
        match given {
            Ok(Some(guard)) => hold(contested, guard).await,
            Ok(None) => {}
            Err(error) => shared.errors.lock().unwrap().push(format!("{:?}: {error}", now())),
        }
    }
}

async fn hold(contested: &Contested, guard: MutexGuard) {
    contested.grants.fetch_add(1, SeqCst);
    let token = guard.token().expect("it is fenced");
    {
        let mut shown = contested.shown.lock().unwrap();
        // Asked after the highest is known: it was held when that was shown, or came later.
        if guard.is_held() {
            assert!(Some(token) > *shown, "{token} after {shown:?}");
        }
        *shown = (*shown).max(Some(token));
    }
    contested.history.trust(&guard, MS(3)).await;
    // A lost hold, or a voter that is away, is no matter here.
    drop(guard.release().await);
}
