//! A cluster that serves nobody, as one of its primaries is away.

use std::time::Duration;

use crate::cluster::scene::builder;
use quorate_support::{Cluster, eventually, eventually_async};
use quorate_tests::scene::{accepted, connect, key, now};

/// So often a client may connect to one server in three seconds: for scripts, to listen, and to see
/// the map.
const AT_MOST: usize = 60;

// Redis's default is `yes`. The voters of a lock are on three primaries, and two of them live.
#[tokio::test(flavor = "multi_thread")]
async fn one_dead_primary_takes_all_voters_only_of_a_cluster_that_needs_all_slots() {
    for (setting, state, gives_locks) in [("yes", "fail", false), ("no", "ok", true)] {
        let flags = ["--cluster-require-full-coverage", setting];
        let mut cluster = Cluster::start_with(3, 0, &flags);
        let client = connect(builder(&cluster.urls(), 3)).await;
        let mutex = client.mutex("a");
        mutex.lock().await.unwrap().release().await.unwrap();
        cluster[2].kill();
        eventually_async("the others know that it is dead", async || {
            let is_dead = |node: usize| {
                let state_is = cluster[node].info(&["CLUSTER", "INFO"], "cluster_state");
                let members = cluster.members(node).expect("it lives");
                let dead = members.iter().any(|member| member.is("fail"));
                dead && state_is.is_ok_and(|told| told == state)
            };
            is_dead(0) && is_dead(1)
        })
        .await;
        let outcome = mutex.try_lock().await;
        match outcome {
            Ok(Some(guard)) if gives_locks => guard.release().await.expect("two confirm it"),
            Err(error) if !gives_locks => {
                let why = error.to_string();
                assert!(error.is_no_quorum() && why.contains("CLUSTERDOWN"), "{why}");
            }
            other => panic!("{setting}: {other:?}"),
        }
    }
}

// What the clients of a voter believe of the voters is on one of its servers, which the others must
// not need: with it they would all be gone.
#[tokio::test(flavor = "multi_thread")]
async fn the_death_of_the_server_with_a_voters_roster_takes_no_vote_of_the_others() {
    let flags = ["--cluster-require-full-coverage", "no"];
    let mut cluster = Cluster::start_with(6, 0, &flags);
    let first = connect(builder(&cluster.urls(), 3)).await;
    let keeps_roster =
        |node: &usize| cluster[*node].keys().iter().any(|key| key.starts_with("quorate:{%roster"));
    eventually("a roster is kept", || (0..6).filter(keeps_roster).count() > 0);
    let dead = (0..6).find(keeps_roster).expect("some server has one");
    let mut elsewhere = None;
    for name in (0..).map(|number| format!("lock {number}")) {
        let guard = first.mutex(&name).lock().await.unwrap();
        eventually_async("all vote", async || guard.votes() == 3).await;
        let key = format!("quorate:{{{name}#");
        let is_there = cluster[dead].keys().iter().any(|one| one.starts_with(&key));
        guard.release().await.unwrap();
        if !is_there {
            elsewhere = Some(name);
            break;
        }
    }
    let name = elsewhere.expect("some lock has no vote there");
    cluster[dead].kill();
    let others: Vec<usize> = (0..6).filter(|node| *node != dead).collect();
    eventually_async("the others know that it is dead", async || {
        others.iter().all(|node| cluster.members(*node).unwrap().iter().any(|one| one.is("fail")))
    })
    .await;
    // It has never reached that server.
    let urls: Vec<String> = others.iter().map(|node| cluster[*node].url()).collect();
    let client = connect(builder(&urls, 3)).await;
    for client in [&first, &client] {
        let guard = client.mutex(&name).lock().await.unwrap();
        eventually_async("all three vote", async || guard.votes() == 3).await;
        guard.release().await.unwrap();
    }
}

// Each CLUSTERDOWN ends its connection, and whoever locks all the time brings the next one.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_is_down_is_not_connected_to_as_often_as_it_is_asked() {
    let mut cluster = Cluster::start_with(3, 0, &["--cluster-require-full-coverage", "yes"]);
    let client = connect(builder(&cluster.urls(), 1)).await;
    let names = (0..).map(|number| format!("lock {number}"));
    let on_first = |name: &String| cluster.primary_of(cluster.slot_of(&key(name))) == 0;
    let name = names.into_iter().find(on_first).expect("some lock is there");
    client.mutex(&name).lock().await.unwrap().release().await.unwrap();
    cluster[2].kill();
    eventually_async("the others say that the cluster is down", async || {
        cluster[0].info(&["CLUSTER", "INFO"], "cluster_state").is_ok_and(|state| state == "fail")
    })
    .await;
    let (before, end) = (accepted(&cluster[0]), now() + Duration::from_secs(3));
    while now() < end {
        let error = client.mutex(&name).try_lock().await.expect_err("nobody serves it");
        assert!(error.is_no_quorum(), "{error}");
    }
    let made = accepted(&cluster[0]) - before;
    assert!(made <= AT_MOST, "{made}");
}
