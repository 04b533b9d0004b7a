//! Clusters that a client has to find; where keys are; what a user must be allowed to do.

use std::io;

use quorate::{Credentials, SharedPrimaries};
use quorate_support::are_before_7;
use quorate_tests::{
    prelude::*,
    rights,
    scene::{accepted, watched},
};
use tokio::task::spawn_blocking;

use crate::cluster::scene::{LEASE, builder, renew};

// Clusters that a client has to find first.

// The map is asked for every ten seconds where nothing is in doubt.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_is_made_while_a_client_connects_is_found() {
    let cluster = Cluster::start_blank(3);
    let builder = patient(Quorate::builder().cluster(Voters::new(cluster.urls()).voters(3)));
    let connecting = tokio::spawn(connect(builder.connect_timeout(MS(8_000))));
    until!(
        "one has told that it knows of nobody",
        cluster.nodes().iter().any(|node| node.calls("cluster|nodes") > 0)
    );
    cluster.form();
    let client = connecting.await.expect("it connects");
    until_given(&client, "a").await;
}

// As one that has lost its file about the cluster.
#[tokio::test(flavor = "multi_thread")]
async fn servers_that_know_of_no_cluster_are_not_believed_where_others_do() {
    let (blank, cluster) = (Cluster::start_blank(2), Cluster::start(3, 0));
    let urls = [blank.urls(), cluster.urls()[..1].to_vec()].concat();
    let client = connect(patient(Quorate::builder().cluster(Voters::new(urls)))).await;
    client.mutex("a").lock().await.unwrap().release().await.unwrap();
}

// Longer than a server may take to show its map; in real time, as the connections are.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_found_although_credentials_take_their_time() {
    let settings = Settings::new().users(&["slow on >secret +@all ~* &*"]);
    let cluster = Cluster::start_as(3, 0, &settings);
    let vault = |_: &str| async {
        sleep(Duration::from_millis(1_200)).await;
        Ok::<_, io::Error>(Credentials::new("slow", "secret"))
    };
    let builder =
        Quorate::builder().cluster(Voters::new(cluster.urls()).voters(3)).credentials(vault);
    let client = connect(builder.connect_timeout(MS(20_000))).await;
    client.mutex("a").lock().await.unwrap().release().await.unwrap();
}

// A cluster that serves nobody, as one of its primaries is away.

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
        until!("the others know that it is dead", {
            let is_dead = |node: usize| {
                let state_is = cluster[node].info(&["CLUSTER", "INFO"], "cluster_state");
                let members = cluster.members(node).expect("it lives");
                let dead = members.iter().any(|member| member.is("fail"));
                dead && state_is.is_ok_and(|told| told == state)
            };
            is_dead(0) && is_dead(1)
        });
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
async fn the_death_of_the_server_with_a_voters_configuration_takes_no_vote_of_the_others() {
    let flags = ["--cluster-require-full-coverage", "no"];
    let mut cluster = Cluster::start_with(6, 0, &flags);
    let first = connect(builder(&cluster.urls(), 3)).await;
    let keeps_configuration =
        |node: &usize| cluster[*node].keys().iter().any(|key| key.starts_with("quorate:{%roster"));
    eventually("a configuration is kept", || (0..6).filter(keeps_configuration).count() > 0);
    let dead = (0..6).find(keeps_configuration).expect("some server has one");
    let mut elsewhere = None;
    for name in (0..).map(|number| format!("lock {number}")) {
        let guard = first.mutex(&name).lock().await.unwrap();
        until!("all vote", guard.votes() == 3);
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
    until!(
        "the others know that it is dead",
        others.iter().all(|node| cluster.members(*node).unwrap().iter().any(|one| one.is("fail")))
    );
    // It has never reached that server.
    let urls: Vec<String> = others.iter().map(|node| cluster[*node].url()).collect();
    let client = connect(builder(&urls, 3)).await;
    for client in [&first, &client] {
        let guard = client.mutex(&name).lock().await.unwrap();
        until!("all three vote", guard.votes() == 3);
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
    until!(
        "the others say that the cluster is down",
        cluster[0].info(&["CLUSTER", "INFO"], "cluster_state").is_ok_and(|state| state == "fail")
    );
    let (before, end) = (accepted(&cluster[0]), now() + Duration::from_secs(3));
    while now() < end {
        let error = client.mutex(&name).try_lock().await.expect_err("nobody serves it");
        assert!(error.is_no_quorum(), "{error}");
    }
    let made = accepted(&cluster[0]) - before;
    assert!(made <= AT_MOST, "{made}");
}

// What a client of a cluster costs that has nothing to do.

// One of the servers tells it the map, for all voters, on a connection that stands.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_client_of_a_cluster_sends_no_more_but_for_the_map_that_one_server_tells() {
    let cluster = Arc::new(Cluster::start(3, 0));
    let client = connect(builder(&cluster.urls(), 3)).await;
    client.mutex("a").lock().await.expect("they are up").release().await.expect("they confirm");
    let count = cluster.nodes().len();
    let watching = (0..count).map(|node| {
        let cluster = Arc::clone(&cluster);
        spawn_blocking(move || {
            let server = &cluster.nodes()[node];
            let before = server.calls("config|get");
            let mut sent = watched(server, Duration::from_mins(1));
            let settings = server.calls("config|get") - before;
            sent.extend((0..settings).map(|_| "CONFIG".to_owned()));
            sent
        })
    });
    let (mut maps, mut all) = (0, 0);
    for watched in watching.collect::<Vec<_>>() {
        let sent = watched.await.expect("it is up");
        assert!(!sent.iter().any(|sent| sent == "HELLO"), "another connection: {sent:?}");
        let of_map = sent.iter().filter(|sent| *sent == "CLUSTER").count();
        assert!(sent.len() - of_map <= 17, "{sent:?}");
        (maps, all) = (maps + of_map, all + sent.len());
    }
    // Servers older than 7.0 show nobody that they are asked for it.
    assert!((5..=6).contains(&maps) || are_before_7(), "{maps}");
    // 18 in a minute for each of the three voters.
    assert!(all <= 3 * 18, "{all}");
    drop(client.close().await);
}

// Where the keys of locks are, and which voters may be together.

fn keys(cluster: &Cluster) -> BTreeSet<(usize, String)> {
    let nodes = cluster.nodes().iter().enumerate();
    nodes.flat_map(|(node, server)| server.keys().into_iter().map(move |key| (node, key))).collect()
}

#[tokio::test]
async fn one_voter_has_a_lock_in_one_slot_and_locks_are_spread_over_the_cluster() {
    let cluster = Cluster::start(3, 0);
    let quorum = connect(patient(Quorate::builder().cluster(Voters::new(cluster.urls())))).await;
    let names: Vec<String> = (0..12).map(|number| format!("lock {number}")).collect();
    let guards = join_all(names.iter().map(|name| quorum.mutex(name).lock())).await;
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
        guard.unwrap().release().await.unwrap();
    }
    until!("nothing is left but what remembers tokens", are_empty(cluster.nodes()));
}

#[tokio::test]
async fn three_voters_have_a_lock_in_three_slots_on_three_servers_and_a_majority_decides() {
    let cluster = Cluster::start(3, 0);
    let quorum = connect(builder(&cluster.urls()[..1], 3)).await;
    let guard = quorum.mutex("invoice:42").lock().await.unwrap();
    // The table of `docs/protocol.md`.
    for (node, key) in ["5r4", "7MC", "61k"].into_iter().enumerate() {
        let key = format!("quorate:{{invoice:42#{key}}}");
        until!("every voter has the lock", keys(&cluster).contains(&(node, key.clone())));
    }
    until!("all have given their votes", guard.votes() == 3);
    cluster.nodes()[1].stop();
    assert!(quorum.mutex("invoice:42").try_lock().await.unwrap().is_none(), "it is held");
    guard.release().await.unwrap();
    let guard = quorum.mutex("invoice:42").lock().await.expect("two of three");
    cluster.nodes()[1].resume();
    guard.release().await.unwrap();
    until!("nothing is left", are_empty(cluster.nodes()));
}

// Each voter has what its clients believe of the voters in a slot of its own.
#[tokio::test]
async fn a_client_of_a_cluster_that_believes_otherwise_does_not_connect() {
    let cluster = Cluster::start(3, 0);
    let _first = connect(builder(&cluster.urls(), 3)).await;
    until!(
        "all three voters know it",
        keys(&cluster).iter().filter(|(_, key)| key.starts_with("quorate:{%roster#")).count() == 3
    );
    let other = builder(&cluster.urls(), 3).longest_lease(2 * LEASE).connect().await;
    let error = other.expect_err("the others have another longest lease");
    assert!(error.is_configuration_mismatch(), "{error}");
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
    until!("all three vote", guard.votes() == 3);
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
        until!("all three vote", guard.votes() == 3);
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

// What a user of a cluster must be allowed to do.

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
        until!("nothing is left", are_empty(cluster.nodes()));
        // By force.
        let guard = ours.mutex("d").lock().await.unwrap();
        theirs.admin().end(LockKind::Mutex, "d", guard.hold()).await.unwrap();
        guard.lost().await;
        drop(guard);
        drop(ours.close().await);
        drop(theirs.close().await);
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
    until!("it connects", Quorate::builder().cluster(Voters::new(&urls)).connect().await.is_ok());
}
