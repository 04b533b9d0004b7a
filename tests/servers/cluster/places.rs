//! Where the keys of locks are, and which voters may be together.

use std::collections::BTreeSet;

use quorate::{Cluster as Voters, Quorate, SharedPrimaries};

use crate::cluster::scene::{LEASE, builder};
use quorate_support::{Cluster, RedisServer, eventually_async};
use quorate_tests::scene::{MS, are_empty, connect, patient};

fn keys(cluster: &Cluster) -> BTreeSet<(usize, String)> {
    let nodes = cluster.nodes().iter().enumerate();
    nodes.flat_map(|(node, server)| server.keys().into_iter().map(move |key| (node, key))).collect()
}

#[tokio::test]
async fn one_voter_has_a_lock_in_one_slot_and_locks_are_spread_over_the_cluster() {
    let cluster = Cluster::start(3, 0);
    let quorum = connect(patient(Quorate::builder().cluster(Voters::new(cluster.urls())))).await;
    let names: Vec<String> = (0..12).map(|number| format!("lock {number}")).collect();
    let mut guards = Vec::new();
    for name in &names {
        guards.push(quorum.mutex(name).lock().await.unwrap());
    }
    let on: BTreeSet<usize> = keys(&cluster).iter().map(|(node, _)| *node).collect();
    assert_eq!(on.len(), 3, "they are spread");
    for name in &names {
        let key = format!("quorate:{{{name}}}");
        let at = cluster.primary_of(cluster.slot_of(&key));
        for key in [key.clone(), format!("{key}:fence")] {
            assert!(keys(&cluster).contains(&(at, key.clone())), "{key} is at {at}");
        }
        assert!(quorum.mutex(name).try_lock().await.unwrap().is_none(), "{name} is held");
    }
    for guard in guards {
        guard.release().await.unwrap();
    }
    eventually_async("nothing is left but what remembers tokens", async || {
        are_empty(cluster.nodes())
    })
    .await;
}

#[tokio::test]
async fn three_voters_have_a_lock_in_three_slots_on_three_servers_and_a_majority_decides() {
    let cluster = Cluster::start(3, 0);
    let quorum = connect(builder(&cluster.urls()[..1], 3)).await;
    let guard = quorum.mutex("invoice:42").lock().await.unwrap();
    // The table of `docs/protocol.md`.
    for (node, key) in ["5r4", "7MC", "61k"].into_iter().enumerate() {
        let key = format!("quorate:{{invoice:42#{key}}}");
        eventually_async("every voter has the lock", async || {
            keys(&cluster).contains(&(node, key.clone()))
        })
        .await;
    }
    eventually_async("all have given their votes", async || guard.votes() == 3).await;
    cluster.nodes()[1].stop();
    assert!(quorum.mutex("invoice:42").try_lock().await.unwrap().is_none(), "it is held");
    guard.release().await.unwrap();
    let guard = quorum.mutex("invoice:42").lock().await.expect("two of three");
    cluster.nodes()[1].resume();
    guard.release().await.unwrap();
    eventually_async("nothing is left", async || are_empty(cluster.nodes())).await;
}

// Each voter has what its clients believe of the voters in a slot of its own.
#[tokio::test]
async fn a_client_of_a_cluster_that_believes_otherwise_does_not_connect() {
    let cluster = Cluster::start(3, 0);
    let _first = connect(builder(&cluster.urls(), 3)).await;
    eventually_async("all three voters know it", async || {
        keys(&cluster).iter().filter(|(_, key)| key.starts_with("quorate:{%roster#")).count() == 3
    })
    .await;
    let other = builder(&cluster.urls(), 3).longest_lease(2 * LEASE).connect().await;
    let error = other.expect_err("the others have another longest lease");
    assert!(error.is_out_of_step(), "{error}");
}

#[tokio::test]
async fn voters_that_share_a_primary_are_refused_unless_that_is_allowed() {
    let cluster = Cluster::start(2, 0);
    let error = builder(&cluster.urls(), 3).connect().await.unwrap_err();
    assert!(error.is_invalid(), "{error}");
    let says = |part: &str| assert!(error.to_string().contains(part), "{error}");
    says("cluster-0@127.0.0.1:");
    says("are the same server, which has one vote");
    let voters = Voters::new(cluster.urls()).voters(3).shared_primaries(SharedPrimaries::Allow);
    let quorum = connect(patient(Quorate::builder().cluster(voters))).await;
    let guard = quorum.mutex("a").lock().await.unwrap();
    eventually_async("all three vote", async || guard.votes() == 3).await;
    guard.release().await.unwrap();
    let error = quorum.redisson().mutex("a").try_lock().await.unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("Redisson"), "{error}");
}

#[tokio::test]
async fn more_servers_than_voters_never_have_two_parts_of_a_lock() {
    let cluster = Cluster::start(4, 0);
    let quorum = connect(builder(&cluster.urls(), 3)).await;
    for number in 0..24 {
        let name = format!("lock {number}");
        let guard = quorum.mutex(&name).lock().await.unwrap();
        eventually_async("all three vote", async || guard.votes() == 3).await;
        let begins = format!("quorate:{{{name}#");
        let record = |key: &String| key.starts_with(&begins) && key.ends_with('}');
        let at: Vec<usize> = keys(&cluster)
            .into_iter()
            .filter(|(_, key)| record(key))
            .map(|(node, _)| node)
            .collect();
        let distinct: BTreeSet<_> = at.iter().collect();
        assert_eq!((at.len(), distinct.len()), (3, 3), "{name}: {at:?}");
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn what_makes_no_voters_of_a_cluster_is_refused_with_the_reason() {
    let server = RedisServer::start();
    let patience = MS(3000);
    let single = Quorate::builder().cluster(Voters::new([server.url()])).connect_timeout(patience);
    let error = single.connect().await.unwrap_err();
    assert!(
        error.is_not_connected() && error.to_string().contains("cluster support disabled"),
        "{error}"
    );
    let database = Voters::new(["redis://127.0.0.1:7000/1"]);
    let error = Quorate::builder().cluster(database).connect().await.unwrap_err();
    let told = "127.0.0.1:7000/1 is no server of a cluster";
    assert!(error.is_invalid() && error.to_string().contains(told), "{error}");
}
