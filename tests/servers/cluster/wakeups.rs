//! How waiters hear of releases: by channels that have slots, where there are such.

use std::time::Duration;

use quorate::{MutexGuard, Quorate};
use tokio::task::JoinHandle;

use crate::cluster::scene::builder;
use quorate_support::{Cluster, RedisServer, Reply, are_before_7, eventually_async};
use quorate_tests::scene::{connect, key, subscribers, timed};

/// So long that nobody is helped by it.
const POLL: Duration = Duration::from_mins(1);
/// Within it a waiter that was called has the lock, on any machine.
const CALLED: Duration = Duration::from_secs(10);

/// How many listen on a server to the channel of this mutex that has a slot.
pub(crate) fn listeners(server: &RedisServer, name: &str) -> i64 {
    // On servers older than 7.0 it has none, and is listened to all the same.
    subscribers(server, if are_before_7() { "NUMSUB" } else { "SHARDNUMSUB" }, name)
}

async fn client(cluster: &Cluster) -> Quorate {
    connect(builder(&cluster.urls(), 1).poll_interval(POLL)).await
}

fn waiter(client: &Quorate) -> JoinHandle<MutexGuard> {
    let mutex = client.mutex("a");
    tokio::spawn(async move { mutex.lock().await.expect("it is given") })
}

// By the server that has the slot, and the others hear nothing; where the user may not use channels
// with slots, by those of all servers.
#[tokio::test]
async fn a_waiter_is_called_by_the_channel_of_the_slot_and_without_the_right_by_the_others() {
    for may_use in [true, false] {
        let cluster = Cluster::start(3, 0);
        for node in cluster.nodes().iter().filter(|_| !may_use) {
            // Where there are none, nobody may use them.
            let denied = node.command(&["ACL", "SETUSER", "default", "-ssubscribe", "-spublish"]);
            assert_eq!(denied.is_err(), are_before_7(), "{denied:?}");
        }
        let (ours, theirs) = (client(&cluster).await, client(&cluster).await);
        let at = &cluster[cluster.primary_of(cluster.slot_of(&key("a")))];
        let listeners =
            || if may_use { listeners(at, "a") } else { subscribers(at, "NUMSUB", "a") };
        let guard = ours.mutex("a").lock().await.unwrap();
        let waiting = waiter(&theirs);
        eventually_async("the waiter listens there", async || listeners() == 1).await;
        guard.release().await.unwrap();
        let (took, given) = timed(waiting).await;
        assert!(took < CALLED, "{took:?}");
        given.unwrap().release().await.unwrap();
        let by_slot = may_use && !are_before_7();
        let told_all = cluster.nodes().iter().any(|node| node.calls("publish") > 0);
        assert_eq!((at.calls("spublish") > 0, told_all), (by_slot, !by_slot));
        eventually_async("nobody listens any more", async || listeners() == 0).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiter_waits_where_the_slot_has_gone() {
    let cluster = Cluster::start(3, 0);
    let ours = client(&cluster).await;
    let theirs = connect(builder(&cluster.urls(), 1)).await;
    let slot = cluster.slot_of(&key("a"));
    let guard = ours.mutex("a").lock().await.unwrap();
    let waiting = waiter(&theirs);
    let home = cluster.primary_of(slot);
    eventually_async("it listens", async || listeners(&cluster[home], "a") == 1).await;
    let to = (home + 1) % 3;
    cluster.migrate(slot, to).await;
    // Its connection to the channel ended with that, so it has asked again, in vain.
    let queue = format!("{}:queue", key("a"));
    eventually_async("it waits in the queue there", async || {
        cluster[to].command(&["ZCARD", &queue]) == Ok(Reply::Int(1))
    })
    .await;
    guard.release().await.unwrap();
    let (took, given) = timed(waiting).await;
    assert!(took < CALLED, "{took:?}");
    given.unwrap().release().await.unwrap();
}
