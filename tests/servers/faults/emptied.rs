//! Servers whose data are deleted while they run.

use quorate::{Quarantine, Quorate};
use quorate_support::{Proxy, RedisServer, eventually_async};
use quorate_tests::{
    scene::{MS, builder, connect, patient, servers, servers_with, timed},
    standing::{kept_out, make_old, refused},
};

// Ada holds by the first two and has never reached the third. Ben has met all three as they were,
// and asks before he looks at them again. Cleo comes then: by what they say of themselves all three
// have run for the same time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_was_flushed_helps_nobody_to_a_lock() {
    let servers = servers(3);
    drop(connect(builder(&servers)).await);
    make_old(&servers);
    let third = Proxy::start(servers[2].port()).await;
    third.refuse().await;
    let urls = [servers[0].url(), servers[1].url(), third.url()];
    let ada = connect(patient(Quorate::builder().voters(urls))).await;
    let guard = ada.mutex("a").lease_fixed(MS(30_000)).lock().await.expect("two are up");
    let ben = connect(builder(&servers)).await;
    eventually_async("all count", async || ben.status().await.counting() == 3).await;
    servers[1].command(&["FLUSHALL"]).expect("it can be flushed");
    let tried = ben.mutex("a").try_lock().await;
    assert!(!matches!(tried, Ok(Some(_))), "a second holder");
    let why = kept_out(&ben, 1).await.map(|kept| kept.why);
    assert_eq!(why, Some(Quarantine::Emptied));
    let cleo = connect(builder(&servers)).await;
    refused(&cleo, 1).await;
    assert!(guard.is_held(), "the machine was too busy to show anything");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_may_delete_votes_are_refused_unless_that_is_accepted() {
    let evicts = ["--maxmemory", "20mb", "--maxmemory-policy", "volatile-ttl"];
    let servers = servers_with(3, &evicts);
    // Only an operator can change that: nobody waits for it.
    let patient = builder(&servers).connect_timeout(MS(60_000)).connect();
    let (took, refused) = timed(patient).await;
    let error = refused.expect_err("they evict");
    assert!(error.is_not_connected() && took < MS(30_000), "after {took:?}: {error}");
    let told = "it deletes keys, and so votes, when its memory is full (maxmemory-policy \
        volatile-ttl with maxmemory 20971520)";
    assert!(error.to_string().contains(told), "{error}");

    let client = connect(builder(&servers).allow_eviction(true)).await;
    let guard = client.mutex("held").lock().await.expect("all are up");
    // Another tenant fills one of them; what ends first goes first, as votes do.
    let value = "a".repeat(100_000);
    for at in 0..400 {
        let other = format!("other:{at}");
        servers[0].command(&["SET", &other, &value, "EX", "3600"]).expect("there is room again");
    }
    let evicted = servers[0].info(&["INFO", "stats"], "evicted_keys").expect("it tells");
    assert_ne!(evicted, "0");
    eventually_async("it is kept out", async || {
        kept_out(&client, 0).await.is_some_and(|kept| kept.why == Quarantine::Emptied)
    })
    .await;
    assert!(guard.is_held(), "the others have its votes");
}

/// A server that deletes nothing any more, or that does.
fn set_policy(server: &RedisServer, policy: &str) {
    server.command(&["CONFIG", "SET", "maxmemory-policy", policy]).expect("it can be set");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_was_set_right_is_a_voter_without_a_restart_of_the_client() {
    let servers = servers_with(3, &["--maxmemory", "20mb"]);
    set_policy(&servers[2], "allkeys-lru");
    let client = connect(builder(&servers)).await;
    let status = client.status().await;
    let why = status.voters[2].connection.clone().expect_err("it evicts");
    assert!(why.to_string().contains("allkeys-lru"), "{why}");
    set_policy(&servers[2], "noeviction");
    eventually_async("all count", async || client.status().await.counting() == 3).await;
}
