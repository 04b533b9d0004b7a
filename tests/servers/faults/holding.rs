//! A lock is held while voters die.

use quorate_support::{RedisServer, eventually_async};
use quorate_tests::scene::{
    MS, are_empty, builder, builder_through, connect, leased, now, proxies, servers, timed,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_death_of_a_majority_is_told_at_the_deadline_and_not_later() {
    let mut servers = servers(3);
    // The longest lease is how long servers that restart empty are kept out of the new acquire.
    let quorum = connect(leased(builder(&servers), MS(8000))).await;
    let guard = quorum.mutex("a").lock().await.expect("all are up");
    servers[1..].iter_mut().for_each(RedisServer::kill);
    // A renewal that was under way has ended by now: nothing moves the deadline any more.
    tokio::time::sleep(MS(200)).await;
    // The time is read last, so this lies at the deadline or a little after it.
    let left = guard.remaining();
    let deadline = now() + left;
    assert!(!left.is_zero(), "lost too early");
    tokio::time::sleep(left.saturating_sub(MS(1000))).await;
    // Asked often, by the clock alone: without an await no task can help.
    let mut asked = now();
    assert!(guard.is_held(), "lost too early");
    while guard.is_held() {
        assert!(asked < deadline, "held at {asked:?}, after {deadline:?}");
        asked = now();
    }
    let ended = now();
    assert!(ended + MS(50) >= deadline, "ended at {ended:?}, not {deadline:?}");
    let (took, error) = timed(tokio::time::timeout(MS(1000), guard.lost())).await;
    assert!(error.expect("the loss is told").is_lost(), "after {took:?}");
    assert!(!guard.is_held() && guard.remaining().is_zero());
    let error = guard.release().await.expect_err("there is nothing to release");
    assert!(error.is_lost(), "{error}");

    servers[1..].iter_mut().for_each(RedisServer::restart);
    let mutex = quorum.mutex("a");
    let mut guard = None;
    eventually_async("a new acquire works", async || {
        guard = mutex.try_lock().await.ok().flatten();
        guard.is_some()
    })
    .await;
    let guard = guard.expect("it was acquired");
    tokio::time::sleep(MS(10_000)).await;
    assert!(guard.is_held(), "it is not renewed");
    guard.release().await.expect("all confirm");
    eventually_async("no key is left", async || are_empty(&servers)).await;
}

// As a failover of a proxy or a restart does: the server is there, and the connection is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_waits_for_a_new_connection() {
    let servers = servers(1);
    let ways = proxies(&servers).await;
    let quorum = connect(builder_through(&ways)).await;
    let guard = quorum.mutex("a").lock().await.expect("it is up");
    ways[0].refuse().await;
    let back = async {
        tokio::time::sleep(MS(200)).await;
        ways[0].accept();
    };
    let (released, ()) = tokio::join!(guard.release(), back);
    released.expect("the server confirms it");
    assert!(are_empty(&servers));
}
