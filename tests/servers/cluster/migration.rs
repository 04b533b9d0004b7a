//! Slots that move while locks in them are held and asked for.

use tokio::time::sleep;

use crate::cluster::scene::{LEASE, builder, renew};
use quorate_support::{Cluster, RedisServer, eventually_async, succeeds_async};
use quorate_tests::{load::Load, scene::connect};

/// The slot of a mutex by one voter.
fn slot(cluster: &Cluster, name: &str) -> u16 {
    cluster.slot_of(&format!("quorate:{{{name}}}"))
}

/// Another primary than the one that has the slot.
fn other(cluster: &Cluster, slot: u16) -> usize {
    let at = cluster.primary_of(slot);
    cluster.primaries().into_iter().find(|node| *node != at).expect("there are several")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_lock_whose_slot_moves_to_and_fro_stays_held_and_nobody_elses() {
    let cluster = Cluster::start(3, 0);
    let ours = connect(builder(&cluster.urls(), 1)).await;
    let theirs = connect(builder(&cluster.urls(), 1)).await;
    let slot = slot(&cluster, "a");
    let guard = ours.mutex("a").lock().await.unwrap();
    for round in 0..6 {
        let to = other(&cluster, slot);
        cluster.begin_migration(slot, to);
        cluster.move_some_keys(slot, to, 1);
        // Half of its keys are here and half are there.
        let half = theirs.mutex("a").try_lock().await;
        assert!(
            half.as_ref().map_or_else(quorate::Error::is_no_quorum, Option::is_none),
            "{half:?}"
        );
        cluster.move_keys(slot, to);
        cluster.end_migration(slot, to).await;
        assert_eq!(cluster.primary_of(slot), to);
        // A redirect that later requests have overtaken is no answer.
        let tried = async || theirs.mutex("a").try_lock().await.map_err(|error| error.to_string());
        let tried = succeeds_async("the slot is found where it is now", tried).await;
        assert!(tried.is_none(), "round {round}");
        renew(&guard).await;
    }
    // On both sides of a renewal of its own.
    sleep(LEASE).await;
    assert!(guard.is_held());
    let waiter = tokio::spawn(async move { theirs.mutex("a").lock().await });
    guard.release().await.unwrap();
    waiter.await.unwrap().expect("the slot's new server gives it").release().await.unwrap();
}

// A voter whose slot is on its way does not answer for locks with several keys; the others do.
#[tokio::test(flavor = "multi_thread")]
async fn three_voters_go_on_while_the_slot_of_one_stands_open() {
    let cluster = Cluster::start(3, 0);
    let quorum = connect(builder(&cluster.urls(), 3)).await;
    let guard = quorum.mutex("a").lock().await.unwrap();
    let slot = 3546;
    let to = other(&cluster, slot);
    cluster.begin_migration(slot, to);
    cluster.move_some_keys(slot, to, 1);
    sleep(LEASE + LEASE / 2).await;
    assert!(guard.is_held(), "renewed by two of three");
    guard.release().await.unwrap();
    let guard = quorum.mutex("a").lock().await.expect("by two of three");
    cluster.move_keys(slot, to);
    cluster.end_migration(slot, to).await;
    renew(&guard).await;
    // Two of its voters are on one server now, and one of them has no vote: that is told.
    let seen = quorum.mutex("a").inspect().await.unwrap();
    let twin = seen.voters.iter().filter_map(|view| view.state.as_ref().err());
    let twin: Vec<String> = twin.map(ToString::to_string).collect();
    assert!(twin.is_empty(), "looking is not voting: {twin:?}");
    eventually_async("two votes are left", async || {
        renew(&guard).await;
        guard.votes() == 2
    })
    .await;
    guard.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slots_move_under_load_and_nothing_is_lost_or_given_twice() {
    let cluster = Cluster::start(3, 0);
    for voters in [1, 3] {
        let urls = cluster.urls();
        let load = Load::start(2, || builder(&urls, voters), 3).await;
        let slots: Vec<u16> = if voters == 1 {
            (0..3).map(|lock| slot(&cluster, &format!("load:{lock}"))).collect()
        } else {
            cluster.nodes().iter().flat_map(fences).map(|key| cluster.slot_of(&key)).collect()
        };
        assert!(slots.len() >= 3);
        for slot in &slots {
            let home = cluster.primary_of(*slot);
            for _ in 0..2 {
                cluster.migrate(*slot, other(&cluster, *slot)).await;
            }
            if cluster.primary_of(*slot) != home {
                cluster.migrate(*slot, home).await;
            }
        }
        load.goes_on(1).await;
        load.judge(1).await;
    }
}

/// The keys of all locks that were ever held.
fn fences(node: &RedisServer) -> Vec<String> {
    node.keys().into_iter().filter(|key| key.ends_with("fence")).collect()
}
