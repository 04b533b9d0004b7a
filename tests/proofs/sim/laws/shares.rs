//! A client that hands a mutex on from task to task leaves other clients their share of it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use crate::sim::prelude::*;

const TASKS: usize = 3;
const WORK: Duration = MS;
const TIME: Duration = Duration::from_secs(3);

/// Two clients whose tasks always want the lock: each gets a third of it at least.
pub(crate) async fn measure(calm: &Calm<'_>) {
    // One in some is enough. In those with 3 in place of 7 the voters are changed, and nothing is
    // measured.
    if calm.world.plan.seed % 16 != 7 {
        return;
    }
    let is_over = Arc::new(AtomicBool::new(false));
    let shares = [&calm.holder, &calm.waiter].map(|client| {
        let share = Arc::new(AtomicUsize::new(0));
        for _ in 0..TASKS {
            tokio::spawn(work(client.clone(), Arc::clone(&is_over), Arc::clone(&share)));
        }
        share
    });
    sleep(TIME).await;
    let shares = shares.map(|share| share.load(Relaxed));
    is_over.store(true, Relaxed);
    sleep(Duration::from_secs(1)).await;
    let (all, least) = (shares.iter().sum::<usize>(), shares.into_iter().min().unwrap_or(0));
    if 3 * least < all {
        let what = format!("of two clients that want a lock all the time they had it {shares:?}");
        calm.world.breach(Law::FairOrder, None, what);
    }
}

async fn work(client: Quorate, is_over: Arc<AtomicBool>, share: Arc<AtomicUsize>) {
    while !is_over.load(Relaxed) {
        let Ok(guard) = client.mutex("shares").lock().await else { return };
        sleep(WORK).await;
        share.fetch_add(1, Relaxed);
        drop(guard);
    }
}
