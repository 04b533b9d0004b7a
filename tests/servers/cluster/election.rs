//! Elections in a cluster: each voter is a part of it, and the news come by channels with slots.

use std::time::Duration;

use quorate::{LockKind, Observed, Observer};
use tokio::time::timeout;

use crate::cluster::scene::{LEASE, builder};
use quorate_support::{Cluster, are_before_7, eventually_async, succeeds_async};
use quorate_tests::{
    scene::{connect, timed},
    standing::until_waiting,
};

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
        eventually_async("all three vote for it again", async || {
            // Where a voter is on its way back nobody may confirm it: the lead is there all the same.
            drop(leadership.proclaim(&value).await);
            assert!(leadership.is_held());
            leadership.votes() == 3
        })
        .await;
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
