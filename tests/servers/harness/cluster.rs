//! A real cluster forms, fails over, moves its slots and goes.

use std::thread;

use super::{is_alive, text};
use quorate_support::{Cluster, Member, RedisServer, Reply, are_before_7};

const KEY: &str = "{lock}";
const NODE_KEYS: [&str; 3] = ["{lock}:a", "{lock}:b", "{lock}:c"];

#[test]
fn a_cluster_has_the_slots_that_redis_cli_gives() {
    let cluster = Cluster::start(3, 1);
    assert_eq!(cluster.primaries(), [0, 1, 2]);
    let all = cluster.members(5).expect("it answers");
    assert_eq!(all.len(), 6);
    for (node, (first, last)) in [(0, 5460), (5461, 10922), (10923, 16383)].into_iter().enumerate()
    {
        let member = all.iter().find(|member| member.id() == cluster.id(node)).expect("known");
        assert_eq!(member.slots(), [first..=last]);
        assert_eq!(member.port(), cluster[node].port());
        assert_eq!(cluster.primary_of(first), node);
        assert_eq!(cluster.primary_of(last), node);
        assert_eq!(cluster.replicas_of(node), [node + 3]);
    }
    // The example of the cluster's specification.
    assert_eq!(cluster.slot_of("123456789"), 12739);
    let ports: Vec<_> = cluster.nodes().iter().map(RedisServer::url).collect();
    assert_eq!(cluster.urls(), ports);
}

#[test]
fn two_clusters_start_at_once_and_nothing_of_them_is_left() {
    let (one, other) = thread::scope(|scope| {
        let other = scope.spawn(|| Cluster::start(1, 1));
        (Cluster::start(1, 1), other.join().expect("it starts"))
    });
    assert_eq!(one.members(0).expect("it answers").len(), 2);
    let nodes = || one.nodes().iter().chain(other.nodes());
    let left: Vec<_> = nodes().map(|node| (node.pid(), node.dir().to_owned())).collect();
    other[1].stop();
    drop((one, other));
    for (pid, dir) in left {
        assert!(!is_alive(pid) && !dir.exists(), "{pid} {}", dir.display());
    }
}

#[tokio::test]
async fn failovers_move_a_slot_back_and_forth() {
    let cluster = Cluster::start(3, 1);
    let slot = cluster.slot_of(KEY);
    let old = cluster.primary_of(slot);
    let new = cluster.replicas_of(old)[0];
    cluster[old].command(&["SET", KEY, "v"]).expect("it is the primary");
    // The third must be asked for more than once: who votes for a replica of the same primary again
    // so soon refuses at first.
    for (to, from) in [(new, old), (old, new), (new, old)] {
        cluster.failover(to).await;
        assert_eq!((cluster.primary_of(slot), cluster.replicas_of(to)), (to, vec![from]));
        assert_eq!(cluster[to].command(&["GET", KEY]), Ok(text("v")));
        let moved = cluster[from].command(&["GET", KEY]);
        assert_eq!(moved, Err(format!("MOVED {slot} 127.0.0.1:{}", cluster[to].port())));
    }
}

#[tokio::test]
async fn a_killed_primary_is_replaced_and_comes_back_as_a_replica() {
    let mut cluster = Cluster::start(3, 1);
    let slot = cluster.slot_of(KEY);
    let old = cluster.primary_of(slot);
    let replica = cluster.replicas_of(old)[0];
    cluster[old].commands(&[&["SET", KEY, "v"], &["WAIT", "1", "5000"]]).expect("it answers");
    cluster[old].kill();
    assert_eq!(cluster.serving(slot), None);
    assert_eq!(cluster.wait_for_failover(slot, old).await, replica);
    assert_eq!(cluster[replica].command(&["GET", KEY]), Ok(text("v")));
    cluster[old].restart();
    cluster.settled().await;
    assert_eq!(cluster.replicas_of(replica), [old]);
}

#[tokio::test]
async fn a_stopped_primary_is_replaced_and_learns_it_when_resumed() {
    let cluster = Cluster::start(3, 1);
    let slot = cluster.slot_of(KEY);
    let old = cluster.primary_of(slot);
    cluster[old].stop();
    let new = cluster.wait_for_failover(slot, old).await;
    cluster[old].resume();
    cluster.settled().await;
    assert_eq!((cluster.primary_of(slot), cluster.replicas_of(new)), (new, vec![old]));
}

#[tokio::test]
async fn a_slot_moves_in_steps_that_clients_see() {
    let cluster = Cluster::start(3, 0);
    let slot = cluster.slot_of(KEY);
    let from = cluster.primary_of(slot);
    let to = (from + 1) % 3;
    for key in NODE_KEYS {
        cluster[from].command(&["SET", key, key]).expect("it is the primary");
    }
    let here = format!("127.0.0.1:{}", cluster[to].port());
    let get = |node: usize, key| cluster[node].command(&["GET", key]);

    cluster.begin_migration(slot, to);
    assert_eq!(
        cluster.members(from).expect("it answers").iter().flat_map(Member::moving).count(),
        1
    );
    assert_eq!(get(from, NODE_KEYS[0]), Ok(text(NODE_KEYS[0])));
    assert_eq!(get(from, KEY), Err(format!("ASK {slot} {here}")));

    assert_eq!(cluster.move_some_keys(slot, to, 1), 1);
    let left = cluster.keys_in(from, slot, 9);
    let gone = cluster.keys_in(to, slot, 9).remove(0);
    assert_eq!(left.len(), 2);
    assert_eq!(get(from, &gone), Err(format!("ASK {slot} {here}")));
    let unasked = get(to, &gone).expect_err("it is not there yet");
    assert!(unasked.starts_with(&format!("MOVED {slot} ")), "{unasked}");
    let asked = cluster[to].commands(&[&["ASKING"], &["GET", &gone]]).expect("it answers");
    assert_eq!(asked, [Ok(text("OK")), Ok(text(&gone))]);
    let both = cluster[from].command(&["MGET", &left[0], &gone]).expect_err("they are apart");
    let told = if are_before_7() { "ASK" } else { "TRYAGAIN" };
    assert!(both.starts_with(told), "{both}");

    assert_eq!(cluster.move_keys(slot, to), 2);
    cluster.end_migration(slot, to).await;
    assert_eq!(cluster.primary_of(slot), to);
    for key in NODE_KEYS {
        assert_eq!(get(from, key), Err(format!("MOVED {slot} {here}")));
        assert_eq!(get(to, key), Ok(text(key)));
    }
    cluster.migrate(slot, from).await;
    assert_eq!(get(from, KEY), Ok(Reply::Nil));
    assert_eq!(cluster.keys_in(from, slot, 9).len(), 3);
}

#[tokio::test]
async fn a_migration_can_be_abandoned() {
    let cluster = Cluster::start(3, 0);
    let slot = cluster.slot_of(KEY);
    let from = cluster.primary_of(slot);
    let to = (from + 1) % 3;
    cluster.begin_migration(slot, to);
    cluster.abandon_migration(slot, to);
    assert_eq!(cluster[from].command(&["GET", KEY]), Ok(Reply::Nil));
    cluster.settled().await;
    assert_eq!(cluster.primary_of(slot), from);
}

/// With its data on disk a primary has it after a restart; emptied, it serves the same slots
/// without it, and its replica follows.
#[tokio::test]
async fn a_primary_restarts_with_its_data_or_empty_and_rejoins() {
    let mut cluster =
        Cluster::start_with(3, 1, &["--appendonly", "yes", "--appendfsync", "always"]);
    let slot = cluster.slot_of(KEY);
    let node = cluster.primary_of(slot);
    let replica = cluster.replicas_of(node)[0];
    cluster[node].command(&["SET", KEY, "v"]).expect("it is the primary");
    cluster[node].restart();
    cluster.settled().await;
    assert_eq!(cluster[node].command(&["GET", KEY]), Ok(text("v")));
    cluster[node].restart_empty();
    cluster.settled().await;
    assert_eq!(cluster.primary_of(slot), node);
    assert_eq!(cluster.replicas_of(node), [replica]);
    assert_eq!((cluster[node].keys(), cluster[replica].keys()), (vec![], vec![]));
}
