//! What the tests of the queue share.

use std::sync::{Arc, Mutex};

use quorate::{LockKind, MutexGuard, Quorate};
use tokio::task::JoinSet;

use quorate_tests::{
    fixture::Fixture,
    kind::{Client, Lock},
    standing,
};

/// Waits until so many stand in the queue of `a` on a majority.
pub(crate) async fn until_waiting(client: &Quorate, count: usize) {
    standing::until_waiting(client, LockKind::Mutex, "a", count).await;
}

/// Waiters that came one after the other, and who has entered.
pub(crate) struct Waiters {
    observer: Client,
    tasks: JoinSet<()>,
    entered: Arc<Mutex<Vec<usize>>>,
}

impl Waiters {
    pub(crate) async fn of(on: &Fixture) -> Self {
        let observer = on.client().await;
        Self { observer, tasks: JoinSet::new(), entered: Arc::default() }
    }

    /// One more, behind those that stand there; `ends` is what it does when it has entered.
    pub(crate) async fn come<F: Future<Output = ()> + Send>(
        &mut self,
        lock: Lock,
        ends: impl FnOnce(MutexGuard) -> F + Send + 'static,
    ) {
        let (number, entered) = (self.tasks.len(), Arc::clone(&self.entered));
        self.tasks.spawn(async move {
            let guard = lock.lock().await.expect("a majority answers");
            entered.lock().unwrap().push(number);
            ends(guard).await;
        });
        until_waiting(&self.observer, number + 1).await;
    }

    /// Waits for all, and checks that they entered in the order of coming.
    pub(crate) async fn must_enter_in_order(self) {
        let count = self.tasks.len();
        assert_eq!(self.enter().await, (0..count).collect::<Vec<_>>());
    }

    /// Waits for all; in which order they entered.
    pub(crate) async fn enter(self) -> Vec<usize> {
        self.tasks.join_all().await;
        self.entered.lock().unwrap().clone()
    }
}

/// What most do when they have entered. Servers on a busy machine may not confirm it in time: then
/// it goes on by itself.
pub(crate) async fn release(guard: MutexGuard) {
    if let Err(error) = guard.release().await {
        assert!(error.is_unconfirmed(), "{error}");
    }
}
