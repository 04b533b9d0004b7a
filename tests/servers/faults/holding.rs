//! A lock is held while voters die.

use quorate_support::{RedisServer, eventually_async};
use quorate_tests::scene::{
    MS, are_empty, builder, builder_through, connect, leased, now, proxies, servers, servers_with,
    since, timed, votes_for,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_outlives_the_death_of_a_minority_and_is_renewed() {
    let mut servers = servers(5);
    let lease = MS(8000);
    let quorum = connect(leased(builder(&servers), lease)).await;
    let guard = quorum.mutex("a").lock().await.expect("all are up");
    servers[..2].iter_mut().for_each(RedisServer::kill);
    let started = now();
    while since(started) < 2 * lease {
        assert!(guard.is_held(), "lost after {:?}", since(started));
        tokio::time::sleep(MS(20)).await;
    }
    // They come back without their data, and get the vote back with the next renewal.
    servers[..2].iter_mut().for_each(RedisServer::restart);
    let hold = guard.hold().as_str();
    eventually_async("all five have the vote again", async || {
        servers.iter().all(|server| votes_for(server, "a", hold))
    })
    .await;
    assert!(guard.is_held());
    guard.release().await.expect("all confirm");
    eventually_async("no key is left", async || are_empty(&servers)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_death_of_a_majority_is_told_at_the_deadline_and_not_later() {
    let mut servers = servers(3);
    // The longest lease is how long servers that restart empty are kept out of the new acquire.
    let quorum = connect(leased(builder(&servers), MS(8000))).await;
    let guard = quorum.mutex("a").lock().await.expect("all are up");
    servers[1..].iter_mut().for_each(RedisServer::kill);
    // A renewal that was under way has ended by now: nothing moves the deadline any more.
    tokio::time::sleep(MS(200)).await;
    let read = now();
    let deadline = read + guard.remaining();
    assert!(deadline > read, "lost too early");

    let (took, error) = timed(tokio::time::timeout(MS(15_000), guard.lost())).await;
    let told = now();
    assert!(error.expect("the loss is told").is_lost());
    assert!(!guard.is_held());
    assert!(guard.remaining().is_zero());
    assert!(told + MS(50) >= deadline, "told at {told:?}, not {deadline:?}");
    assert!(told < deadline + MS(1000), "told at {told:?}, not {deadline:?}, after {took:?}");
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

/// Asked often and close to the deadline, by the clock alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guard_is_never_held_at_its_deadline_or_later() {
    let mut servers = servers(3);
    let quorum = connect(leased(builder(&servers), MS(5000))).await;
    let guard = quorum.mutex("a").lock().await.expect("all are up");
    servers.iter_mut().for_each(RedisServer::kill);
    tokio::time::sleep(MS(100)).await;
    // The time is read last, so this lies at the deadline or a little after it.
    let left = guard.remaining();
    let deadline = now() + left;
    assert!(!left.is_zero(), "lost too early");
    tokio::time::sleep(left.saturating_sub(MS(1000))).await;
    let mut held = 0;
    // Without an await: no task can help.
    loop {
        let asked = now();
        let is_held = guard.is_held();
        held += u32::from(is_held);
        assert!(!is_held || asked < deadline, "held at {asked:?}, after {deadline:?}");
        if asked > deadline + MS(50) {
            break;
        }
    }
    assert!(held > 0);
    assert!(guard.lost().await.is_lost());
}

/// With its data on disk a server that dies and comes back is as good as one that was cut off.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_majority_that_comes_back_in_time_with_its_data_loses_nothing() {
    let mut servers = servers_with(3, &["--appendonly", "yes", "--appendfsync", "always"]);
    let quorum = connect(leased(builder(&servers), MS(6000))).await;
    let guard = quorum.mutex("a").lock().await.expect("all are up");
    servers[1..].iter_mut().for_each(RedisServer::kill);
    servers[1..].iter_mut().for_each(RedisServer::restart);
    let other = connect(leased(builder(&servers), MS(6000))).await;
    let taken = other.mutex("a").try_lock().await.expect("all are up");
    assert!(taken.is_none(), "it is held");
    tokio::time::sleep(MS(7000)).await;
    assert!(guard.is_held(), "it is not renewed");
    guard.release().await.expect("all confirm");
    eventually_async("no key is left", async || are_empty(&servers)).await;
}
