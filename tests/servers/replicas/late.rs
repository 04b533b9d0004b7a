//! Clients that come after a promotion, or ask nothing while there is one.

use quorate::{Builder, Quorate, RestartGuard};

use crate::replicas::scene::{Voter, promote};
use quorate_support::RedisServer;
use quorate_tests::{
    scene::{MS, connect},
    standing::{kept_out, make_old, until_noticed},
};

/// A primary with a replica, and two servers without, none of which counts as just started.
fn servers() -> (Voter, [RedisServer; 2]) {
    let servers = (Voter::start(1), [(); 2].map(|()| RedisServer::start()));
    let (Voter { primary, .. }, others) = &servers;
    make_old(others.iter().chain([primary]));
    servers
}

fn voters(first: &RedisServer, others: &[RedisServer]) -> Builder {
    let others = others.iter().map(RedisServer::url);
    let builder = Quorate::builder().voter(first.url()).voters(others);
    builder.longest_lease(MS(30_000)).voter_deadline(MS(2_000))
}

// The connections stand all the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_voter_that_was_a_replica_for_a_moment_is_noticed_by_who_asks_nothing() {
    let (Voter { primary, .. }, others) = servers();
    let client = connect(voters(&primary, &others)).await;
    client.mutex("a").lock().await.unwrap().release().await.unwrap();
    let port = others[0].port().to_string();
    primary.command(&["REPLICAOF", "127.0.0.1", &port]).expect("it becomes a replica");
    promote(&primary);
    assert_eq!(kept_out(&client, 0).await, None, "nobody has told it yet");
    until_noticed(&client, 0).await;
}

// Nobody else is there by whose age it could be told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promoted_server_that_is_alone_is_kept_out_where_the_guard_is_strict() {
    let (Voter { replicas, .. }, _) = servers();
    promote(&replicas[0]);
    let alone = || Quorate::builder().voter(replicas[0].url());
    let strict = connect(alone().restart_guard(RestartGuard::Strict)).await;
    let error = strict.mutex("a").try_lock().await.expect_err("it may have forgotten");
    assert!(error.to_string().contains("was promoted after the others"), "{error}");
    let relative = connect(alone()).await;
    assert!(relative.mutex("a").try_lock().await.expect("it is up").is_some());
}
