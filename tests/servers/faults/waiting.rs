//! Waiters are never lost with a connection.

use std::time::Duration;

use tokio::time::timeout;

use quorate_support::{Proxy, eventually_async};
use quorate_tests::scene::{
    DURABLE, MS, builder, builder_through, called, connect, now, proxies, servers, servers_with,
    since, until_queued,
};

/// Asking again because of time alone is out of reach of these tests.
const MINUTE: Duration = Duration::from_mins(1);

/// The release falls into the time in which the waiter hears nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_whose_connections_are_all_cut_recovers_and_enters() {
    let servers = servers(3);
    let proxies = proxies(&servers).await;
    let holder = connect(builder(&servers)).await;
    let waiter = connect(builder_through(&proxies).poll_interval(MINUTE)).await;
    let guard = holder.mutex("a").lock().await.expect("it is free");
    let waiting = tokio::spawn(waiter.mutex("a").lock());
    until_queued(&servers, 1).await;

    for proxy in &proxies {
        proxy.refuse().await;
        proxy.cut().await;
    }
    guard.release().await.expect("a majority confirms");
    proxies.iter().for_each(Proxy::accept);
    let started = now();
    let entered = timeout(MS(5000), waiting).await;
    let took = since(started);
    let guard = entered.expect("the waiter enters").expect("no panic").expect("all are up");
    assert!(guard.is_held(), "after {took:?}");
    guard.release().await.expect("a majority confirms");
}

/// With their data, so that the lock stays held meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn voters_that_come_back_are_listened_to_again() {
    let mut servers = servers_with(3, &DURABLE);
    let holder = connect(builder(&servers)).await;
    let waiter = connect(builder(&servers).poll_interval(MINUTE)).await;
    let guard = holder.mutex("a").lock().await.expect("it is free");
    let waiting = tokio::spawn(waiter.mutex("a").lock());
    until_queued(&servers, 1).await;
    for server in &mut servers {
        server.restart();
        let heard = async || called(server) == 2;
        eventually_async("both clients listen again", heard).await;
    }
    assert!(!waiting.is_finished(), "the lock is held");
    // The holder has to have its connections again, too.
    let inspected = async || match holder.mutex("a").inspect().await {
        Ok(inspection) => inspection.voters.iter().all(|view| view.state.is_ok()),
        Err(_) => false,
    };
    eventually_async("the holder reaches all voters again", inspected).await;
    guard.release().await.expect("all confirm");
    let entered = timeout(MS(5000), waiting).await.expect("the waiter is woken");
    let guard = entered.expect("no panic").expect("all are up");
    guard.release().await.expect("all confirm");
}
