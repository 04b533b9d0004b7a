//! What a user of a cluster must be allowed to do.

use quorate::{Preference, Quorate};

use crate::{
    load::{LEASE, renew},
    scene::{MS, connect, key},
    support::{Cluster, Settings, eventually_async},
};

/// What the README and the page about deployments ask for.
fn rights() -> String {
    let (readme, page) =
        (include_str!("../../README.md"), include_str!("../../docs/deployment.md"));
    let every = readme.split_once("ACL SETUSER quorate on >password").expect("it has them").1;
    let cluster = page.split_once("## Rights in a cluster").expect("it has them").1;
    let cluster = cluster.split_once("```text\n").expect("it has them").1;
    let rights = [every, cluster].map(|text| text.split_once("```").expect("they end").0);
    rights.concat().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn cluster(rights: &str) -> (Cluster, Vec<String>) {
    let user = format!("locker on >secret {rights}");
    let cluster = Cluster::start_as(3, 0, &Settings::new().users(&[&user]));
    let urls = cluster.nodes().iter().map(|node| node.url_as("locker", "secret")).collect();
    (cluster, urls)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_documented_rights_are_enough_also_while_a_slot_moves() {
    let (cluster, urls) = cluster(&rights());
    for voters in [1, 3] {
        let builder = || Quorate::cluster(&urls).voters(voters).builder().lease(LEASE);
        let (ours, theirs) = (connect(builder()).await, connect(builder()).await);
        let guard = ours.mutex("a").lock().await.unwrap();
        let waiter = tokio::spawn({
            let mutex = theirs.mutex("a");
            async move { mutex.lock().await.unwrap().release().await }
        });
        renew(&guard).await;
        if voters == 1 {
            let slot = cluster.slot_of(&key("a"));
            cluster.migrate(slot, (cluster.primary_of(slot) + 1) % 3).await;
            renew(&guard).await;
        }
        guard.release().await.unwrap();
        waiter.await.unwrap().unwrap();
        let first = ours.fair_mutex("b").lock().await.unwrap();
        assert!(theirs.fair_mutex("b").lock_within(MS(50)).await.unwrap().is_none());
        first.release().await.unwrap();
        let lock = ours.rw_lock("c").preference(Preference::Fair);
        let read = lock.read().await.unwrap();
        assert!(theirs.rw_lock("c").write_within(MS(50)).await.unwrap().is_none());
        read.release().await.unwrap();
        theirs.rw_lock("c").write().await.unwrap().downgrade().await.unwrap();
    }
}

#[tokio::test]
async fn without_the_right_to_see_the_slots_the_error_names_it() {
    let (cluster, urls) = cluster(&rights().replace("+cluster|nodes", ""));
    let error = Quorate::cluster(&urls).builder().connect_timeout(MS(1_000)).connect().await;
    let error = error.unwrap_err();
    assert!(error.is_no_quorum() && error.to_string().contains("cluster|nodes"), "{error}");
    let all = "+cluster|nodes";
    for node in cluster.nodes() {
        node.command(&["ACL", "SETUSER", "locker", all]).unwrap();
    }
    eventually_async("it connects", async || Quorate::cluster(&urls).connect().await.is_ok()).await;
}
