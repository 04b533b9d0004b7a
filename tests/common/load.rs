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
    check::{holds, judge},
    event::{Event, Mode, Share, What, monotonic, nanos},
    failures::Failures,
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
    /// Of each lock.
    grants: Vec<AtomicU64>,
    events: Mutex<Vec<Event>>,
}

impl Load {
    /// So many clients, each with a task for each of so many locks.
    pub async fn start(clients: usize, builder: impl Fn() -> Builder, locks: usize) -> Self {
        let grants = (0..locks).map(|_| AtomicU64::default()).collect();
        let shared = Arc::new(Shared { grants, ..Shared::default() });
        let clients = join_all((0..clients).map(|_| connect(builder()))).await;
        let start = |(number, client): (usize, &Quorate), lock| {
            let (client, shared) = (client.clone(), Arc::clone(&shared));
            let who = format!("{number}.load:{lock}");
            tokio::spawn(async move { work(&client, lock, &who, &shared).await })
        };
        let workers = clients
            .iter()
            .enumerate()
            .flat_map(|client| (0..locks).map(move |lock| (client, lock)));
        let workers = workers.map(|(client, lock)| start(client, lock)).collect();
        Self { clients, shared, workers }
    }

    /// Waits until each lock was given so many more times.
    pub async fn goes_on(&self, times: u64) {
        let grants = || self.shared.grants.iter().map(|grants| grants.load(SeqCst));
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
        let mut events = shared.events.into_inner().unwrap_or_else(PoisonError::into_inner);
        events.sort_by_key(|event| event.at);
        for (law, (_, broken)) in judge(&events).0 {
            assert_eq!(broken, [""; 0], "{law:?}");
        }
        for number in 0..shared.grants.len() {
            let lock = format!("load:{number}");
            let count = holds(&events).iter().filter(|hold| hold.lock == lock).count();
            println!("{lock}: {count} holds");
            assert!(count >= least, "{lock}: only {count} holds");
        }
    }
}

async fn work(client: &Quorate, lock: usize, who: &str, shared: &Shared) {
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
            Ok(Some(guard)) => {
                shared.grants[lock].fetch_add(1, SeqCst);
                shared.hold(guard, who).await
            }
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        shared.failures.note(ended);
    }
}

impl Shared {
    async fn hold(&self, guard: MutexGuard, who: &str) -> Result<(), Error> {
        let mode = Mode::Alone(guard.token().into());
        let locks = vec![Share { lock: guard.name().to_owned(), mode }];
        let (by, hold) = (who.to_owned(), guard.hold().to_string());
        self.note(&guard, who, |left| What::Got { locks, by, hold, left });
        tokio::time::sleep(MS(3)).await;
        self.note(&guard, who, |left| What::Held { left });
        self.note(&guard, who, |_| What::Left {});
        guard.release().await
    }

    /// Notes it if the guard is held, which was so at the time that was read before asking.
    fn note(&self, guard: &MutexGuard, who: &str, what: impl FnOnce(u64) -> What) {
        let (at, left) = (monotonic(), nanos(guard.remaining()));
        let what = if left > 0 { what(left) } else { What::Lost { why: String::new() } };
        let event = Event { at, who: who.to_owned(), what };
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }
}
