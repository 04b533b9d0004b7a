//! How those who wait and watch hear of changes in a cluster.

use quorate::Observer;
use quorate_support::{are_before_7, succeeds_async};
use quorate_tests::{prelude::*, scene::subscribers};

use crate::cluster::scene::{LEASE, builder};

// Elections in a cluster: each voter is a part of it, and the news come by channels with slots.

/// So long that nobody is helped by it.
const POLL: Duration = Duration::from_mins(1);
/// Within it an observer that was told has asked, on any machine.
const TOLD: Duration = Duration::from_secs(10);

async fn until_led(observer: &mut Observer, value: &str) {
    let led = async {
        loop {
            match observer.next().await.expect("the client is open") {
                Observed::Leader(leader) if leader.text() == Some(value) => return,
                _ => {}
            }
        }
    };
    timeout(4 * LEASE, led).await.expect("it is told");
}

#[tokio::test(flavor = "multi_thread")]
async fn candidates_lead_one_after_the_other_and_observers_are_told_by_channels_with_slots() {
    let cluster = Cluster::start(3, 0);
    let client = async |voters| connect(builder(&cluster.urls(), voters).poll_interval(POLL)).await;
    let (ada, ben, follows) = (client(3).await, client(3).await, client(3).await);
    let mut observer = follows.election("a").observe();
    assert!(matches!(observer.next().await, Some(Observed::NoLeader)));
    let leadership = ada.election("a").campaign("ada:1").await.unwrap();
    until_led(&mut observer, "ada:1").await;
    leadership.proclaim("ada:2").await.unwrap();
    until_led(&mut observer, "ada:2").await;
    let waits = tokio::spawn(ben.election("a").campaign("ben:1"));
    until_waiting(&ada, LockKind::Election, "a", 1).await;
    leadership.resign().await.unwrap();
    let (took, ()) = timed(until_led(&mut observer, "ben:1")).await;
    assert!(took < TOLD, "{took:?}");
    let leadership = waits.await.unwrap().unwrap();
    assert_eq!(cluster[0].calls("spublish") > 0, !are_before_7());
    assert_eq!(follows.election("a").leader().await.unwrap().unwrap().hold(), leadership.hold());
    leadership.resign().await.unwrap();
}

// The primary of each voter in turn: the lead goes on, and the observer knows it.
#[tokio::test(flavor = "multi_thread")]
async fn a_lead_outlives_a_failover_of_each_voter_and_observers_go_on() {
    let cluster = Cluster::start(3, 1);
    let (leads, follows) =
        (connect(builder(&cluster.urls(), 3)).await, connect(builder(&cluster.urls(), 3)).await);
    let mut observer = follows.election("a").observe();
    let leadership = leads.election("a").campaign("ada:1").await.unwrap();
    until_led(&mut observer, "ada:1").await;
    for slot in [3_546, 9_007, 14_469] {
        cluster.failover(cluster.replicas_of(cluster.primary_of(slot))[0]).await;
        let value = format!("ada:{slot}");
        until!("all three vote for it again", {
            // Where a voter is on its way back nobody may confirm it: the lead is there all the same.
            drop(leadership.proclaim(&value).await);
            assert!(leadership.is_held());
            leadership.votes() == 3
        });
        until_led(&mut observer, &value).await;
    }
    let token = leadership.token();
    leadership.resign().await.unwrap();
    let election = follows.election("a");
    let campaign = async || election.campaign("ben:1").await.map_err(|error| error.to_string());
    let again = succeeds_async("the quarantines end", campaign).await;
    assert!(again.token() > token);
    until_led(&mut observer, "ben:1").await;
    again.resign().await.unwrap();
}

// How those who wait hear of changes in a cluster: by channels that have slots, where there are
// such.

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
        until!("the observer listens there", listeners() == 1);
        let leadership = ours.election("a").campaign("x").await.unwrap();
        let (took, told) = timed(observer.next()).await;
        assert!(took < CALLED && told.is_some(), "{took:?}");
        leadership.resign().await.unwrap();
        let told_all = cluster.nodes().iter().any(|node| node.calls("publish") > 0);
        assert_eq!((at.calls("spublish") > 0, told_all), (by_slot, !by_slot));
        drop(observer);
        until!("nobody listens any more", listeners() == 0);
    }
}

/// It has lost its `nodes.conf`, and joins by another id at the same address.
#[tokio::test(flavor = "multi_thread")]
async fn an_observer_is_called_by_a_server_that_has_joined_anew() {
    let cluster = Cluster::start(1, 0);
    let (theirs, at) = (client(&cluster).await, &cluster[0]);
    let listeners = || subscribers(at, if are_before_7() { "NUMSUB" } else { "SHARDNUMSUB" }, "a");
    let mut observer = theirs.election("a").observe();
    observer.next().await.expect("it says that nobody leads");
    until!("the observer listens there", listeners() == 1);
    at.command(&["FLUSHALL"]).unwrap();
    at.command(&["CLUSTER", "RESET", "HARD"]).unwrap();
    // Whoever asks hears that the cluster is another one.
    let asks = async || drop(theirs.election("a").leader().await);
    until!("it has nobody there who listens", {
        asks().await;
        at.command(&["CLIENT", "LIST", "TYPE", "pubsub"]).unwrap().text().is_empty()
    });
    let all: Vec<String> = (0..16_384).map(|slot| slot.to_string()).collect();
    let slots = all.iter().map(String::as_str);
    let add: Vec<_> = ["CLUSTER", "ADDSLOTS"].into_iter().chain(slots).collect();
    at.command(&add).unwrap();
    until!("the observer listens there again", {
        asks().await;
        listeners() == 1
    });
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
        until!(
            "it waits in the queue",
            cluster[node].command(&["ZCARD", &queue]) == Ok(Reply::Int(1))
        );
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
