//! Slots that move, replicas that take over, and voters that are changed.

use futures::executor::block_on;
use quorate::{Side, VoterSet};
use quorate_support::{Certificates, ClientCertificates, succeeds_async};
use quorate_tests::{load::Load, prelude::*};

use crate::cluster::scene::{LEASE, NODE_TIMEOUT, builder, renew};

// Slots that move while locks in them are held and asked for.

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
    until!("two votes are left", {
        renew(&guard).await;
        guard.votes() == 2
    });
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

// Replicas that take the place of their primaries.

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
    until!("the new primary is met", {
        let error = mutex.try_lock().await;
        error.as_ref().err().is_some_and(|error| error.to_string().contains("in quarantine"))
    });
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
    until!("it votes for the hold again", {
        renew(&guard).await;
        guard.votes() == 3
    });
    let seen = quorum.mutex("a").inspect().await.unwrap();
    assert!(seen.voters[1].quarantine.is_some(), "{seen:?}");
    assert!(seen.voters[0].quarantine.is_none() && seen.voters[2].quarantine.is_none());
    guard.release().await.unwrap();
}

// Voters of several kinds, replicas that acknowledge, and connections that nobody reads along.

#[tokio::test(flavor = "multi_thread")]
async fn a_server_a_primary_under_sentinel_and_a_cluster_decide_together() {
    let (mut server, cluster) = (RedisServer::start(), Cluster::start(3, 1));
    let watched = Sentinels::start();
    let address = format!(
        "redis-sentinel://{}/{}",
        watched.sentinel_addresses().join(","),
        watched.service()
    );
    let builder = Quorate::builder()
        .voter(server.url())
        .voter(address)
        .cluster(Voters::new(cluster.urls()))
        .lease(LEASE)
        .longest_lease(LEASE);
    let (ours, theirs) = (connect(builder.clone()).await, connect(builder).await);
    let guard = ours.mutex("a").lock().await.unwrap();
    until!("all three vote", guard.votes() == 3);
    // Each is away in turn, and comes back to the hold.
    let comes_back = async || {
        assert!(theirs.mutex("a").try_lock().await.map_or(true, |given| given.is_none()));
        until!("all three vote again", {
            // Where two are on their way back nobody confirms it: the hold is there all the same.
            drop(guard.reenter().await);
            assert!(guard.is_held());
            guard.votes() == 3
        });
    };
    let slot = cluster.slot_of("quorate:{a}");
    cluster.failover(cluster.replicas_of(cluster.primary_of(slot))[0]).await;
    comes_back().await;
    watched.failover().await;
    comes_back().await;
    server.restart_empty();
    comes_back().await;
    guard.release().await.unwrap();
    // When the quarantines have ended.
    until_given(&theirs, "a").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vote_of_a_cluster_counts_once_its_replica_has_it() {
    let mut cluster = Cluster::start(3, 1);
    let builder = Quorate::builder().cluster(Voters::new(cluster.urls()).voters(3)).replica_acks(1);
    let quorum = connect(patient(builder.quorum_timeout(MS(500)))).await;
    quorum.mutex("a").lock().await.unwrap().release().await.unwrap();
    for replica in [3, 4] {
        cluster[replica].kill();
    }
    let error = quorum.mutex("a").lock().await.unwrap_err();
    let told = "0 of 1 replicas acknowledged";
    assert!(error.is_no_quorum() && error.to_string().matches(told).count() == 2, "{error}");
    cluster[3].restart();
    until_given(&quorum, "a").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_reached_by_tls_with_all_its_servers() {
    let certificates = Certificates::new();
    let settings = Settings::new().tls(&certificates, ClientCertificates::NotAsked);
    let cluster = Cluster::start_as(3, 0, &settings);
    let tls = quorate::Tls::new().ca_pem(&certificates.authority);
    for voters in [1, 3] {
        let voters = Voters::new(&cluster.urls()[..1]).voters(voters);
        let quorum = connect(patient(Quorate::builder().cluster(voters).tls(tls.clone()))).await;
        for name in ["a", "b", "c", "d"] {
            let guard = quorum.mutex(name).lock().await.unwrap();
            assert!(quorum.mutex(name).try_lock().await.unwrap().is_none());
            guard.release().await.unwrap();
        }
    }
}

// A cluster whose locks have three voters, then five; and one that takes the place of servers.

fn changing() -> Builder {
    leased(Quorate::builder(), LEASE)
}

/// Whether the clients exclude each other, whichever comes first.
async fn exclude_each_other(one: &Quorate, other: &Quorate) {
    for name in ["a", "b", "c"] {
        for (first, second) in [(one, other), (other, one)] {
            let held = first.mutex(name).lock().await.unwrap();
            assert!(second.mutex(name).try_lock().await.unwrap().is_none());
            assert!(second.fair_mutex(name).try_lock().await.unwrap().is_none());
            let token = held.token();
            held.release().await.unwrap();
            let held = second.fair_mutex(name).lock().await.unwrap();
            assert!(held.token() > token, "{:?} after {token:?}", held.token());
            held.release().await.unwrap();
            let read = first.rw_lock(name).read().await.unwrap();
            assert!(second.rw_lock(name).try_write().await.unwrap().is_none());
            read.release().await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_voters_of_a_cluster_go_from_three_to_five() {
    let cluster = Cluster::start(5, 0);
    let voters = |count| Voters::new(cluster.urls()).voters(count);
    let with = |count| changing().cluster(voters(count));
    let old = connect(with(3).voter_configuration(1)).await;
    let both = connect(with(5).replacing(voters(3)).voter_configuration(2)).await;
    exclude_each_other(&old, &both).await;
    let status = both.status().await;
    let sides: Vec<_> = status.voters.iter().map(|voter| voter.side).collect();
    // Their keys differ, so no voter is in both sets, though they are on the same servers.
    let (new, replaced) = (Some(Side::New), Some(Side::Old));
    assert_eq!(sides, [new, new, new, new, new, replaced, replaced, replaced]);
    assert!(status.has_quorum(), "{status}");
    drop(old.close().await);
    let new = connect(with(5).only_looks(true)).await;
    exclude_each_other(&both, &new).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_make_place_for_a_cluster() {
    let (cluster, servers) = (Cluster::start(3, 0), RedisServer::start_many(&Settings::new(), 3));
    let voters = Voters::new(cluster.urls()).voters(3);
    let urls: Vec<_> = servers.iter().map(RedisServer::url).collect();
    let old = connect(changing().voters(&urls).voter_configuration(1)).await;
    let replaced = VoterSet::from(urls.as_slice());
    let both = changing().cluster(voters.clone()).replacing(replaced).voter_configuration(2);
    let both = connect(both).await;
    exclude_each_other(&old, &both).await;
    drop(old.close().await);
    let new = connect(changing().cluster(voters).only_looks(true)).await;
    exclude_each_other(&both, &new).await;
}

#[tokio::test]
async fn the_same_votes_of_a_cluster_are_the_same_voters_whichever_of_its_servers_are_named() {
    let cluster = Cluster::start(3, 0);
    let urls = cluster.urls();
    let new = Voters::new(&urls[..2]).voters(3);
    let replaced = Voters::new(&urls[1..]).voters(3);
    let client = connect(changing().cluster(new).replacing(replaced)).await;
    let status = client.status().await;
    assert!(status.voters.iter().all(|voter| voter.side == Some(Side::Both)), "{status}");
    client.mutex("a").lock().await.unwrap().release().await.unwrap();
}

/// Its map is kept where the client lives, and not on the runtime of whoever connects, which may
/// be none.
#[test]
fn a_cluster_is_connected_to_from_a_thread_without_a_runtime() {
    let cluster = Cluster::start(3, 0);
    let client = Quorate::builder().cluster(Voters::new(cluster.urls()).voters(3));
    let client = block_on(client.connect()).expect("all nodes answer");
    let guard = block_on(client.mutex("a").lock()).expect("it is free");
    block_on(guard.release()).expect("it is confirmed");
    block_on(client.close()).expect("all confirm");
}
