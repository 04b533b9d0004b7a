//! Renewals that fail for a moment delete nothing.

use std::time::Duration;

use futures::FutureExt;
use quorate::MutexGuard;
use tokio::time::sleep;

use quorate_support::{Proxy, RedisServer, eventually_async};
use quorate_tests::scene::{
    MS, builder, builder_through, calls, connect, forget_calls, key, leased, proxies, rounds,
    servers, votes_for,
};

/// What each renewal runs once, and what is asked of a server on a new connection does not.
const RENEWAL: &str = "hget";

/// Long enough that the time to connect again, on a busy machine, is not what ends it.
const LEASE: Duration = Duration::from_secs(15);

/// No server has deleted the vote, nor seen it expire.
fn expect_all_votes(servers: &[RedisServer], guard: &MutexGuard) {
    assert!(guard.is_held(), "the lock is lost: {:?}", guard.lost().now_or_never());
    for server in servers {
        assert_eq!(calls(server, &["del", "hdel", "unlink"]), 0, "something was deleted");
        assert!(votes_for(server, "a", guard.hold().as_str()), "the vote is gone");
    }
}

/// At one renewal after the other: a burst of trouble, and its end.
async fn each_burst_deletes_no_vote(
    (servers, guard): (&[RedisServer], &MutexGuard),
    trouble: impl AsyncFn(),
    heal: impl Fn(),
) {
    let forget = || servers.iter().for_each(forget_calls);
    forget();
    for _ in 0..rounds(40) {
        trouble().await;
        sleep(MS(10)).await;
        expect_all_votes(servers, guard);
        forget();
        heal();
        eventually_async("the renewal is repeated", async || {
            assert!(guard.is_held(), "the lock is lost: {:?}", guard.lost().now_or_never());
            are_asked(servers)
        })
        .await;
        expect_all_votes(servers, guard);
        forget();
    }
}

fn are_asked(servers: &[RedisServer]) -> bool {
    servers.iter().all(|server| server.calls(RENEWAL) > 0)
}

/// Ten milliseconds without any voter.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_of_broken_connections_at_renewal_deletes_no_vote() {
    let servers = servers(3);
    let proxies = proxies(&servers).await;
    let quorum = connect(leased(builder_through(&proxies), LEASE)).await;
    let guard = quorum.mutex("a").lock().await.expect("all are up");
    // It falls right into a renewal, whose answers are lost.
    let trouble = async || {
        let cuts: Vec<_> = proxies.iter().map(Proxy::cuts).collect();
        for proxy in &proxies {
            proxy.cut_after_request_naming(&key("a"), 1);
        }
        let is_cut = || proxies.iter().zip(&cuts).all(|(proxy, before)| proxy.cuts() > *before);
        eventually_async("a renewal is cut off everywhere", async || is_cut()).await;
        for proxy in &proxies {
            proxy.refuse().await;
            proxy.cut().await;
        }
    };
    let heal = || proxies.iter().for_each(Proxy::accept);
    each_burst_deletes_no_vote((&servers, &guard), trouble, heal).await;
    guard.release().await.expect("all confirm");
}

/// Servers that answer every write with an error of their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_of_errors_from_the_servers_at_renewal_deletes_no_vote() {
    let servers = servers(3);
    let quorum = connect(leased(builder(&servers), LEASE)).await;
    let guard = quorum.mutex("a").lock().await.expect("all are up");
    let replicas = |needed: &str| {
        for server in &servers {
            let set = ["CONFIG", "SET", "min-replicas-to-write", needed];
            server.command(&set).expect("it can be set");
        }
    };
    let trouble = async || {
        replicas("1");
        eventually_async("a renewal is refused", async || are_asked(&servers)).await;
    };
    each_burst_deletes_no_vote((&servers, &guard), trouble, || replicas("0")).await;
    sleep(LEASE).await;
    expect_all_votes(&servers, &guard);
    guard.release().await.expect("all confirm");
}
