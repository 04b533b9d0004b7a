//! A lock that one holds while others wait for it, and what its hand-offs cost.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use quorate::{Error, LockState, LockView, MutexGuard, PermitGuard, Quorate, Semaphore};
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::SETTLE;

/// So many come at once: more would wait for each other's answers.
const BATCH: usize = 20;
/// After which something must have gone wrong.
const PATIENCE: Duration = Duration::from_secs(30);

/// One lock as each of the clients has it.
pub(crate) enum Lock {
    Fair(quorate::Mutex),
    Plain(quorate::Mutex),
    /// Of one permit: so each hand-off lets one in, as with a mutex.
    Permit(Semaphore),
}

/// A guard of one of them.
pub(crate) enum Guard {
    Mutex(MutexGuard),
    Permit(PermitGuard),
}

impl Guard {
    async fn release(self) -> Result<(), Error> {
        match self {
            Self::Mutex(guard) => guard.release().await,
            Self::Permit(guard) => guard.release().await,
        }
    }
}

impl Lock {
    async fn lock(&self) -> Guard {
        let guard = match self {
            Self::Fair(mutex) | Self::Plain(mutex) => mutex.lock().await.map(Guard::Mutex),
            Self::Permit(semaphore) => semaphore.acquire().await.map(Guard::Permit),
        };
        guard.expect("a majority answers")
    }
}

/// Waiters for a lock that is held; as many wait whenever nothing is measured.
pub(crate) struct Crowd {
    locks: Vec<Arc<Lock>>,
    size: usize,
    come: usize,
    waiters: JoinSet<()>,
    chain: Arc<Chain>,
    last: mpsc::UnboundedReceiver<Guard>,
    holder: Option<Guard>,
}

impl Crowd {
    pub(crate) async fn gather(
        clients: &[Quorate],
        size: usize,
        lock: fn(&Quorate) -> Lock,
    ) -> Crowd {
        let (ended, last) = mpsc::unbounded_channel();
        let locks: Vec<_> = clients.iter().map(|client| Arc::new(lock(client))).collect();
        let holder = Some(locks[0].lock().await);
        let chain = Arc::new(Chain { links: Mutex::default(), ended });
        let waiters = JoinSet::new();
        let mut crowd = Self { locks, size, come: 0, waiters, chain, last, holder };
        crowd.refill(size).await;
        crowd
    }

    pub(crate) async fn dismiss(mut self) {
        self.waiters.shutdown().await;
        self.holder.take().expect("it is held").release().await.expect("a majority confirms");
    }

    pub(crate) fn is_fair(&self) -> bool {
        !matches!(*self.locks[0], Lock::Plain(_))
    }

    /// Hands the lock on so often that nobody has to come for it in between.
    pub(crate) fn longest_block(&self) -> usize {
        self.size.min(BATCH)
    }

    /// Hands the lock on from one to the next, each at once. Returns the times from just before a
    /// release until the next one has its guard. Those who were served are gone afterwards.
    pub(crate) async fn hand_on(&mut self, count: usize) -> Vec<Duration> {
        // Every side starts as cold: processors and caches forget.
        sleep(SETTLE).await;
        let holder = self.holder.take().expect("it is held");
        self.chain.start(count);
        self.chain.release(holder).await;
        let last = timeout(PATIENCE, self.last.recv()).await;
        self.holder = last.expect("the chain ends before long");
        sleep(SETTLE).await;
        self.chain.take()
    }

    /// So many come to wait. Returns when all of them do.
    pub(crate) async fn refill(&mut self, count: usize) {
        for number in 0..count {
            let lock = Arc::clone(&self.locks[self.come % self.locks.len()]);
            self.come += 1;
            self.waiters.spawn(wait(lock, Arc::clone(&self.chain)));
            if (number + 1).is_multiple_of(BATCH) {
                sleep(SETTLE).await;
            }
        }
        let lined_up = timeout(PATIENCE, async { while !self.all_wait().await {} }).await;
        lined_up.expect("all stand in the queue before long");
        sleep(SETTLE).await;
    }

    /// Whether every voter has all of them in its queue; the mutex has none. A voter that has not
    /// given the holder its vote has the holder there as well.
    async fn all_wait(&self) -> bool {
        let waiting = |state: &LockState| state.waiting.len() >= self.size;
        let all =
            |seen: &LockView| seen.voters.iter().all(|view| view.state.as_ref().is_ok_and(waiting));
        // A busy machine may be too late for a majority.
        match &*self.locks[0] {
            Lock::Fair(mutex) => mutex.inspect().await.is_ok_and(|seen| all(&seen)),
            Lock::Permit(semaphore) => semaphore.inspect().await.is_ok_and(|seen| all(&seen)),
            Lock::Plain(_) => true,
        }
    }
}

async fn wait(lock: Arc<Lock>, chain: Arc<Chain>) {
    let guard = lock.lock().await;
    if chain.arrived() {
        // The bench may have ended.
        let _ = chain.ended.send(guard);
    } else {
        chain.release(guard).await;
    }
}

/// Hand-offs one after the other.
struct Chain {
    links: Mutex<Links>,
    ended: mpsc::UnboundedSender<Guard>,
}

#[derive(Default)]
struct Links {
    released: Option<Instant>,
    left: usize,
    times: Vec<Duration>,
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures in real time")]
impl Chain {
    fn start(&self, count: usize) {
        self.with(|links| links.left = count);
    }

    async fn release(&self, guard: Guard) {
        self.with(|links| links.released = Some(Instant::now()));
        guard.release().await.expect("a majority confirms");
    }

    /// Whether that was the last hand-off.
    fn arrived(&self) -> bool {
        let now = Instant::now();
        self.with(|links| {
            links.times.push(now - links.released.expect("it was given back"));
            links.left -= 1;
            links.left == 0
        })
    }

    fn take(&self) -> Vec<Duration> {
        self.with(|links| std::mem::take(&mut links.times))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Links) -> T) -> T {
        act(&mut self.links.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
