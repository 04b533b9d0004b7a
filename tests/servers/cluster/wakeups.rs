//! How those who wait hear of changes in a cluster: by channels that have slots, where there are such.

use std::time::Duration;

use quorate::Quorate;

use crate::cluster::scene::{LEASE, builder};
use quorate_support::{Cluster, Reply, are_before_7, eventually_async};
use quorate_tests::scene::{connect, key, subscribers, timed};

/// So long that nobody is helped by it.
const POLL: Duration = Duration::from_mins(1);
/// Within it whoever was called knows, on any machine.
const CALLED: Duration = Duration::from_secs(10);

async fn client(cluster: &Cluster) -> Quorate {
    connect(builder(&cluster.urls(), 1).poll_interval(POLL).waiter_deadline(LEASE)).await
}

// By the server that has the slot, and the others hear nothing; where the user may not use channels
// with slots, by those of all servers.
#[tokio::test]
async fn an_observer_is_called_by_the_channel_of_the_slot_and_without_the_right_by_the_others() {
    for may_use in [true, false] {
        let cluster = Cluster::start(3, 0);
        for node in cluster.nodes().iter().filter(|_| !may_use) {
            // Where there are none, nobody may use them.
            let denied = node.command(&["ACL", "SETUSER", "default", "-ssubscribe", "-spublish"]);
            assert_eq!(denied.is_err(), are_before_7(), "{denied:?}");
        }
        let (ours, theirs) = (client(&cluster).await, client(&cluster).await);
        let at = &cluster[cluster.primary_of(cluster.slot_of(&key("a")))];
        let by_slot = may_use && !are_before_7();
        let listeners = || subscribers(at, if by_slot { "SHARDNUMSUB" } else { "NUMSUB" }, "a");
        let mut observer = theirs.election("a").observe();
        observer.next().await.expect("it says that nobody leads");
        eventually_async("the observer listens there", async || listeners() == 1).await;
        let leadership = ours.election("a").campaign("x").await.unwrap();
        let (took, told) = timed(observer.next()).await;
        assert!(took < CALLED && told.is_some(), "{took:?}");
        leadership.resign().await.unwrap();
        let told_all = cluster.nodes().iter().any(|node| node.calls("publish") > 0);
        assert_eq!((at.calls("spublish") > 0, told_all), (by_slot, !by_slot));
        drop(observer);
        eventually_async("nobody listens any more", async || listeners() == 0).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiter_waits_where_the_slot_has_gone() {
    let cluster = Cluster::start(3, 0);
    let (ours, theirs) = (client(&cluster).await, client(&cluster).await);
    let slot = cluster.slot_of(&key("a"));
    let guard = ours.mutex("a").lock().await.unwrap();
    let waiting = tokio::spawn(theirs.mutex("a").lock());
    let queue = format!("{}:queue", key("a"));
    let waits = async |node: usize| {
        eventually_async("it waits in the queue", async || {
            cluster[node].command(&["ZCARD", &queue]) == Ok(Reply::Int(1))
        })
        .await;
    };
    let home = cluster.primary_of(slot);
    waits(home).await;
    // No server of a cluster sees whether a waiter has died: its place counts for no longer than
    // four times the voter deadline, which is a tenth of the lease.
    let counts = cluster[home].command(&["PTTL", &queue]);
    let Ok(Reply::Int(left)) = counts else { panic!("{counts:?}") };
    assert!(left <= i64::try_from(LEASE.as_millis()).unwrap() * 4 / 10, "{left} ms");
    let to = (home + 1) % 3;
    cluster.migrate(slot, to).await;
    waits(to).await;
    guard.release().await.unwrap();
    let (took, given) = timed(waiting).await;
    assert!(took < CALLED, "{took:?}");
    given.unwrap().expect("it is given").release().await.unwrap();
}
