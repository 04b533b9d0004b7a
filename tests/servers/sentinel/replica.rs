//! Replicas cannot vote: what they have granted would not be known to their primary.

use quorate::Quarantine;

use quorate_support::{RedisServer, eventually_async};
use quorate_tests::scene::{MS, builder, connect, servers};

fn demote(server: &RedisServer, primary: &RedisServer) {
    let port = primary.port().to_string();
    server.command(&["REPLICAOF", "127.0.0.1", &port]).expect("it becomes a replica");
}

fn promote(server: &RedisServer) {
    server.command(&["REPLICAOF", "NO", "ONE"]).expect("it becomes a primary");
}

// The connection stands: nobody ends it, as sentinels would.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_is_made_a_replica_is_left_and_comes_back_as_another() {
    let servers = servers(2);
    let client = connect(builder(&servers[1..]).longest_lease(MS(30_000))).await;
    let mutex = client.mutex("a");
    assert!(mutex.try_lock().await.expect("it is up").is_some());
    demote(&servers[1], &servers[0]);
    eventually_async("it is left", async || {
        let why = mutex.try_lock().await.err().map(|error| error.to_string());
        why.is_some_and(|why| why.contains("unreachable: ") && why.contains("is a replica"))
    })
    .await;
    promote(&servers[1]);
    eventually_async("it is back, and kept out", async || {
        let entered = mutex.try_lock().await;
        assert!(!matches!(entered, Ok(Some(_))), "it may have forgotten");
        let seen = mutex.inspect().await.ok();
        let quarantine = seen.and_then(|seen| seen.voters[0].quarantine);
        quarantine.is_some_and(|quarantined| quarantined.why == Quarantine::Restarted)
    })
    .await;
}
