//! What is kept after its guard: for as long as was said, also where its lease is longer.

use quorate_tests::prelude::*;

use crate::several::client;

claims!(everywhere:
    whatever_is_kept_for_less_than_its_lease_is_free_then,
    the_place_of_a_hold_that_is_kept_ends_with_it,
);

const KEPT: Duration = secs(7);

/// The others wait in a queue, and look again from time to time.
async fn frees<T>(
    watch: Stopwatch,
    what: &str,
    taken: impl Future<Output = Result<Option<T>, quorate::Error>>,
) {
    let taken = taken.await.expect("a majority answers");
    assert!(taken.is_some(), "{what} is still taken after {:?}", watch.time());
    let took = watch.time();
    assert!(took + ms(50) >= KEPT, "{what} was free after {took:?}");
}

async fn whatever_is_kept_for_less_than_its_lease_is_free_then(on: Fixture) {
    let (quorum, theirs) = (client(&on).await, client(&on).await);
    // Shorter than a lease.
    let limit = secs(20);
    let (watch, lock) = (Stopwatch::start(), quorum.mutex("a"));
    lock.lock().await.unwrap().keep_for(KEPT).await.unwrap();
    frees(watch, "the mutex", theirs.mutex("a").lock_within(limit)).await;
    let watch = Stopwatch::start();
    quorum.fair_mutex("b").lock().await.unwrap().keep_for(KEPT).await.unwrap();
    frees(watch, "the fair mutex", theirs.fair_mutex("b").lock_within(limit)).await;
    let watch = Stopwatch::start();
    quorum.rw_lock("c").write().await.unwrap().keep_for(KEPT).await.unwrap();
    frees(watch, "what was written", theirs.rw_lock("c").read_within(limit)).await;
    let beside = theirs.rw_lock("d").read().await.unwrap();
    let watch = Stopwatch::start();
    quorum.rw_lock("d").read().await.unwrap().keep_for(KEPT).await.unwrap();
    beside.release().await.unwrap();
    frees(watch, "what was read", theirs.rw_lock("d").write_within(limit)).await;
    let semaphore = |client: &quorate::Quorate| client.semaphore("e", 5);
    let others = semaphore(&theirs).acquire_many(2).await.unwrap();
    let watch = Stopwatch::start();
    semaphore(&quorum).acquire_many(3).await.unwrap().keep_for(KEPT).await.unwrap();
    frees(watch, "what had permits", semaphore(&theirs).acquire_many_within(3, limit)).await;
    assert!(others.is_held() && others.remaining() > secs(15), "another's lease is its own");
    others.release().await.unwrap();
    on.until_clean().await;
}

// Whoever waited for the lock has a place in the queue, which bars others as long as it counts.
async fn the_place_of_a_hold_that_is_kept_ends_with_it(on: Fixture) {
    let patient = async || {
        let builder = on.builder().waiter_deadline(secs(25));
        let client = on.connect(builder).await;
        quorate::Quorate::clone(&client)
    };
    let (quorum, theirs, others) = (patient().await, patient().await, patient().await);
    let held = quorum.fair_mutex("a").lock().await.unwrap();
    let read = quorum.rw_lock("b").write().await.unwrap();
    let (mutex, lock) = (theirs.fair_mutex("a"), theirs.rw_lock("b"));
    let waiting = tokio::spawn(async move { (mutex.lock().await, lock.read().await) });
    until_waiting(&others, LockKind::Mutex, "a", 1).await;
    held.release().await.unwrap();
    until_waiting(&others, LockKind::RwLock, "b", 1).await;
    read.release().await.unwrap();
    let (mutex, read) = waiting.await.unwrap();
    let watch = Stopwatch::start();
    mutex.unwrap().keep_for(KEPT).await.unwrap();
    frees(watch, "the fair mutex", others.fair_mutex("a").lock_within(secs(15))).await;
    let watch = Stopwatch::start();
    read.unwrap().keep_for(KEPT).await.unwrap();
    frees(watch, "what was read", others.rw_lock("b").write_within(secs(15))).await;
    on.until_clean().await;
}
