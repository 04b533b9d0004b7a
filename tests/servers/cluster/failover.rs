//! Replicas that take the place of their primaries.

use quorate::Quarantine;
use tokio::time::timeout;

use crate::cluster::scene::{LEASE, NODE_TIMEOUT, builder, renew};
use quorate_support::{Cluster, eventually_async};
use quorate_tests::{
    load::Load,
    scene::{MS, connect},
    standing::until_given,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn primaries_fail_over_under_load_and_no_lock_is_given_twice() {
    let mut cluster = Cluster::start(3, 1);
    let urls = cluster.urls();
    let load = Load::start(2, || builder(&urls, 3), 3).await;
    load.goes_on(1).await;
    // By command.
    let replica = cluster.replicas_of(0)[0];
    cluster.failover(replica).await;
    load.goes_on(1).await;
    // By a crash, and another one when the first has healed.
    for slot in [8_000, 14_000] {
        let dead = cluster.primary_of(slot);
        cluster[dead].kill();
        load.goes_on(1).await;
        cluster.wait_for_failover(slot, dead).await;
        cluster[dead].restart();
        cluster.settled().await;
        load.goes_on(1).await;
    }
    load.judge(1).await;
}

// The new primary tells of itself before it has heard what became of the old one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_is_seen_as_one_by_who_asks_all_the_time() {
    let cluster = Cluster::start(3, 1);
    let quorum = connect(builder(&cluster.urls(), 1)).await;
    let slot = cluster.slot_of("quorate:{b}");
    for _ in 0..3 {
        let replica = cluster.replicas_of(cluster.primary_of(slot))[0];
        let mutex = quorum.mutex("b");
        let seen = async {
            loop {
                match mutex.try_lock().await {
                    Ok(Some(guard)) => drop(guard.release().await),
                    Err(error) if error.to_string().contains("in quarantine") => return,
                    // Or its own hold, the release of which met with the failover.
                    Ok(None) | Err(_) => {}
                }
            }
        };
        tokio::join!(timeout(LEASE * 10, seen), cluster.failover(replica)).0.expect("it is seen");
        until_given(&quorum, "b").await;
    }
}

// A replica may know less than its primary did.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_failover_a_shard_is_in_quarantine_and_the_others_are_not() {
    let cluster = Cluster::start(3, 1);
    let quorum = connect(builder(&cluster.urls(), 1)).await;
    let names = ["b", "c", "d", "e", "f", "g"];
    let slot = |name: &str| cluster.slot_of(&format!("quorate:{{{name}}}"));
    let at = cluster.primary_of(slot(names[0]));
    for name in names {
        quorum.mutex(name).lock().await.unwrap().release().await.unwrap();
    }
    let (here, elsewhere): (Vec<&str>, Vec<&str>) =
        names.into_iter().partition(|name| cluster.primary_of(slot(name)) == at);
    assert!(!elsewhere.is_empty());
    cluster.failover(cluster.replicas_of(at)[0]).await;
    let mutex = quorum.mutex(here[0]);
    eventually_async("the new primary is met", async || {
        let error = mutex.try_lock().await;
        error.as_ref().err().is_some_and(|error| error.to_string().contains("in quarantine"))
    })
    .await;
    let seen = mutex.inspect().await.unwrap();
    let quarantine = seen.voters[0].quarantine.expect("it is in quarantine");
    let out = LEASE + NODE_TIMEOUT;
    assert!(quarantine.why == Quarantine::Restarted && quarantine.left <= out, "{quarantine:?}");
    for name in elsewhere {
        quorum.mutex(name).lock().await.unwrap().release().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_restarts_empty_is_in_quarantine_for_new_holds_and_fills_up_by_renewals() {
    let mut cluster = Cluster::start(3, 0);
    // Renewed often, and kept out for so long that a busy machine sees it.
    let quorum = connect(builder(&cluster.urls(), 3).longest_lease(MS(60_000))).await;
    let guard = quorum.mutex("a").lock().await.unwrap();
    let at = cluster.primary_of(9_007);
    cluster[at].restart_empty();
    cluster.settled().await;
    eventually_async("it votes for the hold again", async || {
        renew(&guard).await;
        guard.votes() == 3
    })
    .await;
    let seen = quorum.mutex("a").inspect().await.unwrap();
    assert!(seen.voters[1].quarantine.is_some(), "{seen:?}");
    assert!(seen.voters[0].quarantine.is_none() && seen.voters[2].quarantine.is_none());
    guard.release().await.unwrap();
}
