//! Clients that come after a failover, and what tells them of it.

use quorate::SharedPrimaries;
use quorate_tests::{
    prelude::*,
    standing::{refused, until_noticed},
};

use crate::cluster::scene::{builder, renew};

/// Longer than a failover takes, and what is tried after it.
const LONG: Duration = Duration::from_secs(30);

/// Three primaries, each with a replica, none of which counts as just started.
async fn cluster() -> Cluster {
    cluster_with(&[]).await
}

async fn cluster_with(flags: &[&str]) -> Cluster {
    let cluster = Cluster::start_with(3, 1, flags);
    // Where fingerprints are is a client's choice.
    let first = connect(builder(&cluster.urls(), 3).only_looks(true)).await;
    drop(first.mutex("a").inspect().await.expect("all are up"));
    drop(first.close().await);
    make_old([0, 8_000, 16_000].map(|slot| &cluster[cluster.primary_of(slot)]));
    cluster
}

fn slot(cluster: &Cluster, name: &str) -> u16 {
    cluster.slot_of(&key(name))
}

async fn fail_over(cluster: &Cluster, slot: u16) {
    cluster.failover(cluster.replicas_of(cluster.primary_of(slot))[0]).await;
}

/// The server of a slot dies, and its replica takes over without what was written last.
async fn lose<T>(cluster: &mut Cluster, slot: u16, write: impl AsyncFnOnce() -> T) -> T {
    let at = cluster.primary_of(slot);
    cluster[at].cut_off_replicas();
    let written = write().await;
    cluster[at].kill();
    cluster.wait_for_failover(slot, at).await;
    written
}

/// A client for which a voter is kept out for long.
fn patient(urls: &[String], voters: u16) -> Builder {
    let builder = Quorate::builder().cluster(Voters::new(urls).voters(voters));
    builder.longest_lease(LONG).voter_deadline(MS(2_000))
}

// With one voter, and with a bare majority of three.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vote_that_a_failover_lost_is_not_given_to_a_client_that_comes_after_it() {
    // The table of `docs/protocol.md`.
    for (voters, first, last) in [(1, "a", None), (3, "a#4xU", Some("a#0oO"))] {
        let mut cluster = cluster().await;
        let (urls, slot) = (cluster.urls(), slot(&cluster, first));
        let holder = connect(patient(&urls, voters)).await;
        let guard = lose(&mut cluster, slot, async || {
            let guard = holder.mutex("a").lease_fixed(LONG).lock().await.expect("it is free");
            until!("all have voted", guard.votes() == usize::from(voters));
            guard
        })
        .await;
        let new = cluster.primary_of(slot);
        assert!(!cluster[new].keys().contains(&key(first)), "the vote is lost");
        if let Some(last) = last.map(key) {
            // As where it had never reached the third.
            let at = cluster.primary_of(cluster.slot_of(&last));
            assert_eq!(cluster[at].command(&["DEL", &last]), Ok(Reply::Int(1)));
        }
        // The second one finds the fingerprint of the first.
        for _ in 0..2 {
            let late = connect(patient(&urls, voters)).await;
            let error = refused(&late, 0).await;
            if voters == 1 {
                let error = error.expect("the voter does not know of a holder");
                let told = "started or was promoted after the others";
                assert!(error.is_no_quorum() && error.to_string().contains(told), "{error}");
            }
        }
        assert!(guard.is_held(), "the machine was too busy to show anything");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_a_longest_lease_after_the_first_finds_a_promoted_server_trusted() {
    let cluster = cluster_with(&["--cluster-node-timeout", "6000"]).await;
    let slot = slot(&cluster, "a");
    fail_over(&cluster, slot).await;
    // So long that a busy machine sees it, and short enough to be waited for.
    let lease = MS(10_000);
    // The former primary may have served a client for as long that it was cut off with.
    let out = lease + MS(6_000);
    let client = async || connect(leased(builder(&cluster.urls(), 1), lease)).await;
    let (first, second) = (client().await, client().await);
    for client in [&first, &second] {
        let quarantine = kept_out(client, 0).await.expect("it is kept out");
        assert!(quarantine.why == Quarantine::Young && quarantine.left <= out, "{quarantine}");
        assert!(quarantine.left > lease, "the machine was too busy: {quarantine}");
        assert!(client.mutex("a").try_lock().await.is_err());
    }
    let trust = async || {
        for client in [&first, &second] {
            if kept_out(client, 0).await.is_some() {
                return false;
            }
        }
        true
    };
    eventually_async("both trust it again", trust).await;
    let third = client().await;
    assert_eq!(kept_out(&third, 0).await, None);
    let guard = third.mutex("a").try_lock().await.expect("it is trusted").expect("it is free");
    for client in [&first, &second] {
        assert!(client.mutex("a").try_lock().await.expect("it is trusted").is_none(), "it is held");
    }
    guard.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_every_primary_was_promoted_before_it_the_first_client_can_lock_at_once() {
    let cluster = cluster().await;
    for slot in [0, 8_000, 16_000] {
        fail_over(&cluster, slot).await;
    }
    for voters in [1, 3, 1] {
        let client = connect(patient(&cluster.urls(), voters)).await;
        for name in ["a", "b", "c", "d", "e", "f"] {
            let guard = client.mutex(name).try_lock().await.expect("all answer").expect("free");
            guard.release().await.unwrap();
        }
    }
}

// No map that the client asks for need show it: the same server has the same slots.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_and_another_one_back_are_noticed_by_who_asks_nothing() {
    let cluster = cluster().await;
    let quorum = connect(builder(&cluster.urls(), 1)).await;
    let slot = slot(&cluster, "a");
    quorum.mutex("a").lock().await.unwrap().release().await.unwrap();
    let (started, at) = (now(), cluster.primary_of(slot));
    fail_over(&cluster, slot).await;
    fail_over(&cluster, slot).await;
    println!("there and back in {:?}", since(started));
    assert_eq!(cluster.primary_of(slot), at);
    let kill = ["CLIENT", "KILL", "TYPE", "normal"];
    cluster[at].command(&kill).expect("the connections are cut");
    until_noticed(&quorum, 0).await;
}

/// The fingerprints on a server, and for how long each is kept.
fn fingerprints(cluster: &Cluster, node: usize) -> Vec<(String, i64)> {
    let fingerprints = cluster[node].keys().into_iter().filter(|key| key.contains("%voter"));
    let left = |fingerprint: String| match cluster[node].command(&["PTTL", &fingerprint]) {
        Ok(Reply::Int(left)) => (fingerprint, left),
        other => panic!("no time: {other:?}"),
    };
    fingerprints.map(left).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_server_has_one_mark_in_a_slot_of_its_own() {
    let cluster = cluster().await;
    fail_over(&cluster, 8_000).await;
    let clients = [1, 3, 1, 5].map(|voters| {
        let voters = Voters::new(cluster.urls()).voters(voters);
        let voters = voters.shared_primaries(SharedPrimaries::Allow);
        connect(Quorate::builder().cluster(voters).voter_deadline(MS(2_000)))
    });
    for client in clients {
        let client = client.await;
        // Whatever the others do, who asks for its vote has met it.
        drop(client.mutex("a").inspect().await.unwrap());
    }
    for primary in [0, 8_000, 16_000].map(|slot| cluster.primary_of(slot)) {
        let [(fingerprint, left)] = &fingerprints(&cluster, primary)[..] else {
            panic!("not one fingerprint: {:?}", fingerprints(&cluster, primary))
        };
        assert_eq!(cluster.primary_of(cluster.slot_of(fingerprint)), primary);
        let month = 30 * 24 * 3_600_000;
        assert!((month - 60_000..=month).contains(left), "{left} ms");
    }
}

// Its next fingerprint is in another slot.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_mark_has_moved_away_is_marked_anew_and_votes_on() {
    let cluster = cluster().await;
    fail_over(&cluster, 8_000).await;
    let promoted = cluster.primary_of(8_000);
    let client = async || connect(builder(&cluster.urls(), 3)).await;
    let (first, held) = (client().await, "a");
    let guard = first.mutex(held).lock().await.expect("two of three");
    let fingerprint = fingerprints(&cluster, promoted).pop().expect("it has one").0;
    cluster.migrate(cluster.slot_of(&fingerprint), cluster.primary_of(0)).await;
    let second = client().await;
    assert!(second.mutex(held).try_lock().await.expect("two of three").is_none(), "it is held");
    let new = fingerprints(&cluster, promoted).pop().expect("it has another one").0;
    assert_ne!(new, fingerprint);
    renew(&guard).await;
    guard.release().await.unwrap();
    // The one that it had before tells nobody anything.
    let other = cluster.primary_of(0);
    assert_eq!(fingerprints(&cluster, other).len(), 2, "until its time has come");
}
