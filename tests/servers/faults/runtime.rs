//! Runtimes that end before the client does, or before its guards.

use std::{thread, time::Duration};

use quorate::{LockKind, MutexGuard};
use quorate_support::eventually_async;
use quorate_tests::{
    scene::{MS, are_empty, builder, connect, leased, servers},
    standing::until_waiting,
};
use tokio::{runtime::Runtime, time::timeout};

const LEASE: Duration = Duration::from_secs(8);

/// What a runtime that ends with its thread has made.
fn elsewhere<T: Send>(make: impl AsyncFnOnce() -> T + Send) -> T {
    let made = thread::scope(|scope| {
        let made = scope.spawn(|| Runtime::new().expect("a runtime").block_on(make()));
        made.join()
    });
    made.expect("it is made")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_that_was_taken_in_a_runtime_that_has_ended_is_renewed() {
    let servers = servers(3);
    let client = connect(leased(builder(&servers), LEASE)).await;
    let mutex = client.mutex("a");
    let guard = elsewhere(async || mutex.lock().await.expect("all are up"));
    tokio::time::sleep(2 * LEASE).await;
    assert!(guard.is_held());
    guard.release().await.expect("a majority confirms");
    eventually_async("no key is left", async || are_empty(&servers)).await;
}

// Long before the lease ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_the_clients_runtime_is_told_at_once() {
    let servers = servers(3);
    let (client, guard, fixed): (_, MutexGuard, MutexGuard) = elsewhere(async || {
        let client = connect(builder(&servers)).await;
        let guard = client.mutex("a").lock().await.expect("all are up");
        let fixed = client.mutex("b").lease_fixed(MS(30_000)).lock().await.expect("all are up");
        (client, guard, fixed)
    });
    let error = timeout(MS(10_000), guard.lost()).await.expect("it is told at once");
    assert!(error.is_lost() && error.to_string().contains("runtime"), "{error}");
    assert!(!guard.is_held());
    assert!(fixed.is_held(), "nobody need renew it");
    let mutex = client.mutex("c");
    let error = mutex.try_lock().await.expect_err("nobody asks the voters any more");
    assert!(error.is_closed() && error.to_string().contains("runtime"), "{error}");
    // Nobody waits for voters that cannot answer.
    let waited = timeout(MS(5_000), mutex.lock()).await.expect("it is told at once");
    assert!(waited.expect_err("there is nobody to ask").is_closed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_waits_is_told_when_the_clients_runtime_ends() {
    let servers = servers(3);
    let holder = connect(builder(&servers)).await;
    let held = holder.fair_mutex("a").lock().await.expect("all are up");
    let (theirs, settings) = (Runtime::new().expect("a runtime"), builder(&servers));
    let client = theirs.spawn(connect(settings)).await.expect("no panic");
    let mut observer = client.election("e").observe();
    assert!(observer.next().await.is_some(), "nobody leads");
    let waits = tokio::spawn(client.fair_mutex("a").lock());
    until_waiting(&holder, LockKind::Mutex, "a", 1).await;
    theirs.shutdown_background();
    let waited = timeout(MS(5_000), waits).await.expect("it is told at once").expect("no panic");
    assert!(waited.expect_err("there is nobody to ask").is_closed());
    assert!(timeout(MS(5_000), observer.next()).await.expect("it is told at once").is_none());
    held.release().await.expect("all are up");
}
