//! Clients that come after a promotion, or ask nothing while there is one.

use quorate::{Builder, Quorate, RestartGuard};

use crate::replicas::scene::{Voter, promote};
use quorate_support::{RedisServer, Reply, eventually_async};
use quorate_tests::{
    scene::{MS, are_empty, connect, votes_for},
    standing::{kept_out, make_old, refused, until_noticed},
};

/// A primary with a replica, and two servers without.
fn new_servers() -> (Voter, [RedisServer; 2]) {
    (Voter::start(1), [(); 2].map(|()| RedisServer::start()))
}

/// Likewise, none of which counts as just started.
fn servers() -> (Voter, [RedisServer; 2]) {
    let servers = new_servers();
    let (Voter { primary, .. }, others) = &servers;
    make_old(others.iter().chain([primary]));
    servers
}

fn voters(first: &RedisServer, others: &[RedisServer]) -> Builder {
    let others = others.iter().map(RedisServer::url);
    let builder = Quorate::builder().voter(first.url()).voters(others);
    builder.longest_lease(MS(30_000)).voter_deadline(MS(2_000))
}

// As where a name points to another server from some moment on. The third has never had the vote.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vote_that_a_promotion_lost_is_not_given_to_a_client_that_comes_after_it() {
    let (Voter { mut primary, replicas }, others) = servers();
    let holder = connect(voters(&primary, &others)).await;
    primary.cut_off_replicas();
    let lock = holder.mutex("a").lease_fixed(MS(30_000));
    let guard = lock.lock().await.expect("all are up");
    eventually_async("all have voted", async || guard.votes() == 3).await;
    assert_eq!(others[1].command(&["DEL", "quorate:{a}"]), Ok(Reply::Int(1)));
    primary.kill();
    promote(&replicas[0]);
    assert!(!votes_for(&replicas[0], "a", guard.hold().as_str()), "the vote is lost");
    // The second one finds the mark of the first.
    for _ in 0..2 {
        let late = connect(voters(&replicas[0], &others)).await;
        refused(&late, 0).await;
    }
    assert!(guard.is_held(), "the machine was too busy to show anything");
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whose_rights_are_too_few_for_a_mark_trusts_a_promoted_server_and_locks() {
    let (Voter { replicas, .. }, others) = new_servers();
    let (first, user) = (&replicas[0], ["on", ">pw", "~quorate:{[^%]*", "&*", "+@all"]);
    promote(first);
    let words = [&["ACL", "SETUSER", "poor"][..], &user].concat();
    first.command(&words).expect("the user is set");
    let builder = Quorate::builder().voter(first.url_as("poor", "pw"));
    let client = connect(builder.voters(others.iter().map(RedisServer::url))).await;
    assert_eq!(kept_out(&client, 0).await, None);
    let guard = client.mutex("a").lock().await.expect("all are up");
    eventually_async("all have voted", async || guard.votes() == 3).await;
    guard.release().await.expect("all are up");
    eventually_async("nothing is left", async || are_empty([first])).await;
}
