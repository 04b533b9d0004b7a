//! Clients that take one lock in turn while a failover goes on.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use quorate::{Builder, Error, Quorate};
use tokio::task::JoinHandle;

use crate::{
    history::{History, overlap},
    scene::{MS, connect},
    support::eventually_async,
};

/// Clients at work, each a party of its own.
pub(crate) struct Load {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    history: History,
    over: AtomicBool,
    grants: AtomicU64,
}

impl Load {
    /// So many clients; returns when the first has had the lock.
    pub(crate) async fn start(clients: usize, builder: impl Fn() -> Builder) -> Self {
        let shared = Arc::<Shared>::default();
        let mut workers = Vec::new();
        for _ in 0..clients {
            let quorum = connect(builder()).await;
            workers.push(tokio::spawn(work(quorum, Arc::clone(&shared))));
        }
        let load = Self { shared, workers };
        load.goes_on().await;
        load
    }

    /// Waits until the lock was granted many more times, so that every client had its turn.
    pub(crate) async fn goes_on(&self) {
        let before = self.shared.grants.load(SeqCst);
        eventually_async("locks are granted", async || {
            self.shared.grants.load(SeqCst) >= before + 20
        })
        .await;
    }

    /// Ends the work, and panics where two held the lock at the same moment.
    pub(crate) async fn must_have_been_exclusive(self) {
        self.shared.over.store(true, SeqCst);
        for worker in self.workers {
            worker.await.expect("no error but those of failures");
        }
        let shared = Arc::into_inner(self.shared).expect("nobody else has it");
        let spans = shared.history.into_spans();
        assert!(spans.len() >= 40, "{} holds", spans.len());
        if let Some((one, other)) = overlap(spans) {
            panic!("two holders at the same moment: {one:?} and {other:?}");
        }
    }
}

async fn work(quorum: Quorate, shared: Arc<Shared>) {
    while !shared.over.load(SeqCst) {
        match turn(&quorum, &shared).await {
            Ok(()) => {}
            Err(error) if error.is_lost() || error.is_no_quorum() || error.is_unconfirmed() => {}
            Err(error) => panic!("{error}"),
        }
    }
    quorum.close().await;
}

async fn turn(quorum: &Quorate, shared: &Shared) -> Result<(), Error> {
    let Some(guard) = quorum.mutex("contended").lock_within(Duration::from_secs(1)).await? else {
        return Ok(());
    };
    shared.grants.fetch_add(1, SeqCst);
    shared.history.trust(&guard, MS(2)).await;
    guard.release().await
}
