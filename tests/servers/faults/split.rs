//! Four voters can be divided two and two.

use quorate::metric;

use quorate_support::{RedisServer, eventually_async};
use quorate_tests::{
    recorded::{added, record},
    scene::{MS, are_empty, builder, connect, key, servers, timed},
};

/// Gives two votes to one stranger and two to another.
fn plant_split(servers: &[RedisServer], lease_ms: &str) {
    for (server, stranger) in servers.iter().zip(["x:1", "x:1", "y:1", "y:1"]) {
        server.command(&["HSET", &key("a"), stranger, "1"]).expect("it is planted");
        server.command(&["PEXPIRE", &key("a"), lease_ms]).expect("it expires");
    }
}

#[tokio::test]
async fn an_even_split_is_told_as_one_and_outlasted() {
    let (snapshotter, _recording) = record();
    let splits = || added(&snapshotter, metric::ATTEMPTS, Some("split"));
    let servers = servers(4);
    let quorum = connect(builder(&servers)).await;
    let mutex = quorum.mutex("a");

    plant_split(&servers, "20000");
    let (took, tried) = timed(mutex.try_lock()).await;
    assert!(tried.expect("all four answer").is_none());
    assert!(took < MS(2000), "a try took {took:?}");
    assert_eq!(splits(), 1);

    let (took, tried) = timed(mutex.lock_within(MS(300))).await;
    assert!(tried.expect("all four answer").is_none());
    assert!(took >= MS(300) && took < MS(3000), "waiting for 300 ms took {took:?}");

    plant_split(&servers, "600");
    let (took, locked) = timed(mutex.lock()).await;
    let guard = locked.expect("all four answer");
    assert!(took < MS(10_000), "it took {took:?}");
    guard.release().await.expect("all four confirm");
    eventually_async("no key is left", async || are_empty(&servers)).await;
}
