//! What a user of a cluster must be allowed to do.

use quorate::{Cluster as Voters, LockKind, Preference, Quorate};

use crate::cluster::scene::{builder, renew};
use quorate_support::{Cluster, Settings, are_before_7, eventually_async, read_file};
use quorate_tests::{
    rights,
    scene::{MS, are_empty, connect, key},
    standing::until_waiting,
};

/// Channels with slots, which Redis has since 7.0.
fn is_of_channels(right: &str) -> bool {
    ["+ssubscribe", "+sunsubscribe", "+spublish"].contains(&right)
}

/// What the page on deployments asks for.
fn rights() -> String {
    let page = read_file("docs/deployment.md");
    let (_, cluster) = page.split_once("## Rights in a cluster").expect("it has them");
    let cluster = cluster.split_once("```text\n").and_then(|(_, block)| block.split_once("```"));
    let cluster = cluster.expect("it has them").0.split_whitespace();
    // As the page says.
    let cluster = cluster.filter(|right| !are_before_7() || !is_of_channels(right));
    rights::documented().into_iter().chain(cluster).collect::<Vec<_>>().join(" ")
}

fn cluster(rights: &str) -> (Cluster, Vec<String>) {
    let user = format!("locker on >secret {rights}");
    let cluster = Cluster::start_as(3, 0, &Settings::new().users(&[&user]));
    let urls = cluster.nodes().iter().map(|node| node.url_as("locker", "secret")).collect();
    (cluster, urls)
}

// Once more, and briefly, what other tests claim of each kind of lock on single servers.
#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_lock_works_with_the_documented_rights_also_while_a_slot_moves() {
    let (cluster, urls) = cluster(&rights());
    for voters in [1, 3] {
        let [ours, theirs] = [(); 2].map(|()| connect(builder(&urls, voters)));
        let (ours, theirs) = (ours.await, theirs.await);
        // Re-entry, and a waiter that is called.
        let guard = ours.mutex("a").lock().await.unwrap();
        let again = guard.reenter().await.unwrap();
        let waiter = tokio::spawn(theirs.mutex("a").lock());
        until_waiting(&ours, LockKind::Mutex, "a", 1).await;
        if voters == 1 {
            let slot = cluster.slot_of(&key("a"));
            cluster.migrate(slot, (cluster.primary_of(slot) + 1) % 3).await;
            renew(&guard).await;
        }
        again.release().await.unwrap();
        assert!(theirs.mutex("a").try_lock().await.unwrap().is_none());
        guard.release().await.unwrap();
        waiter.await.unwrap().unwrap().release().await.unwrap();
        // In order.
        let first = ours.fair_mutex("b").lock().await.unwrap();
        assert!(theirs.fair_mutex("b").lock_within(MS(1000)).await.unwrap().is_none());
        let second = tokio::spawn(theirs.fair_mutex("b").lock());
        until_waiting(&ours, LockKind::Mutex, "b", 1).await;
        first.release().await.unwrap();
        second.await.unwrap().unwrap().release().await.unwrap();
        // Readers together, a writer alone.
        let lock = ours.rw_lock("c").preference(Preference::Fair);
        let readers = (lock.read().await.unwrap(), theirs.rw_lock("c").read().await.unwrap());
        assert!(theirs.rw_lock("c").write_within(MS(1000)).await.unwrap().is_none());
        drop(readers);
        let writer = theirs.rw_lock("c").write().await.unwrap();
        assert!(ours.rw_lock("c").try_read().await.unwrap().is_none());
        let read = writer.downgrade().await.unwrap();
        read.release().await.unwrap();
        // So many at once, in order.
        let permits = ours.semaphore("e", 2).acquire_many(2).await.unwrap();
        assert!(theirs.semaphore("e", 2).try_acquire().await.unwrap().is_none());
        let next = tokio::spawn(theirs.semaphore("e", 2).acquire());
        until_waiting(&ours, LockKind::Semaphore, "e", 1).await;
        permits.release().await.unwrap();
        next.await.unwrap().unwrap().release().await.unwrap();
        eventually_async("nothing is left", async || are_empty(cluster.nodes())).await;
        // By force.
        let guard = ours.mutex("d").lock().await.unwrap();
        theirs.admin().end(LockKind::Mutex, "d", guard.hold()).await.unwrap();
        guard.lost().await;
        drop(guard);
        ours.close().await;
        theirs.close().await;
    }
}

#[tokio::test]
async fn without_the_right_to_see_the_slots_the_error_names_it() {
    let (cluster, urls) = cluster(&rights().replace("+cluster|nodes", ""));
    let error =
        Quorate::builder().cluster(Voters::new(&urls)).connect_timeout(MS(5_000)).connect().await;
    let error = error.unwrap_err();
    assert!(error.is_not_connected() && error.to_string().contains("NOPERM"), "{error}");
    // Servers older than 7.0 do not name the part of it.
    let right = if are_before_7() { "'cluster'" } else { "'cluster|nodes'" };
    assert!(error.to_string().contains(right), "{error}");
    let all = "+cluster|nodes";
    for node in cluster.nodes() {
        node.command(&["ACL", "SETUSER", "locker", all]).unwrap();
    }
    eventually_async("it connects", async || {
        Quorate::builder().cluster(Voters::new(&urls)).connect().await.is_ok()
    })
    .await;
}
