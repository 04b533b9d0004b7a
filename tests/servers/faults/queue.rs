//! The queue of a mutex that is not fair.

use std::time::Duration;

use quorate::Builder;
use tokio::runtime;

use quorate_support::{RedisServer, Reply, eventually_async};
use quorate_tests::scene::{
    MS, are_empty, builder, called, connect, now, servers, since, until_queued,
};

/// As long as a dead waiter would hold up those behind it.
const WAITER_DEADLINE: Duration = Duration::from_secs(20);

/// A client that asks often, so that it enters the queue soon.
fn hasty(servers: &[RedisServer]) -> Builder {
    builder(servers).poll_interval(MS(20)).waiter_deadline(WAITER_DEADLINE)
}

// The place of one that died would block those behind it until the waiter deadline. But nobody
// hears its call, and so the next one is called.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiters_that_died_in_the_queue_hold_up_nobody() {
    let servers = servers(3);
    let holder = connect(builder(&servers)).await;
    let guard = holder.mutex("a").lock().await.expect("nobody else is there");
    let doomed = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let doomed = doomed.expect("a runtime");
    for place in 1..=2 {
        let client = doomed.spawn(connect(hasty(&servers))).await.expect("it connects");
        doomed.spawn(async move { client.mutex("a").lock().await });
        until_queued(&servers, place).await;
    }
    let counts = servers[0].command(&["PTTL", "quorate:{a}:queue"]);
    assert!(
        matches!(counts, Ok(Reply::Int(1_500..))),
        "as set, and not as in a cluster: {counts:?}"
    );
    let client = connect(hasty(&servers)).await;
    let mutex = client.mutex("a");
    let waiter = tokio::spawn(async move { mutex.lock().await });
    until_queued(&servers, 3).await;
    // As a process that is killed: nothing is said, and its connections are closed.
    doomed.shutdown_background();
    eventually_async("one still listens, beside the holder", async || {
        servers.iter().all(|server| called(server) == 2)
    })
    .await;
    until_queued(&servers, 3).await;
    let released = now();
    guard.release().await.expect("all confirm");
    let guard = waiter.await.expect("it does not panic").expect("the voters are well");
    let waited = since(released);
    assert!(waited < WAITER_DEADLINE / 2, "{waited:?}");
    guard.release().await.expect("all confirm");
    client.close().await;
    holder.close().await;
    eventually_async("no place is left", async || are_empty(&servers)).await;
}
