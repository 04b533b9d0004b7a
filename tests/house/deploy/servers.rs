//! Servers by `redis.conf` are what locks stand on.

use quorate_support::{NODE_PASSWORD, lock_node};
use quorate_tests::prelude::*;

use super::node::{change_often, is_loading};

fn builder(nodes: &[RedisServer]) -> Builder {
    patient(Quorate::builder().voters(nodes.iter().map(|n| n.url_as("quorate", NODE_PASSWORD))))
}

/// Each entry asks all three anew.
async fn all_vote_for(guard: &MutexGuard) {
    until!("it votes for the hold as before", {
        // A node that restarts may make a majority late.
        let Ok(again) = guard.reenter().await else { return false };
        again.release().await.is_ok() && guard.votes() == 3
    });
}

async fn nobody_is_kept_out(quorum: &Quorate) {
    let seen = quorum.mutex("a").inspect().await.unwrap();
    assert!(seen.voters.iter().all(|view| view.quarantine.is_none()), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn locks_stand_on_such_nodes_and_a_restart_forgets_nothing() {
    let mut nodes = RedisServer::start_many(&lock_node(), 3);
    let ways = proxies(&nodes).await;
    let login = format!("redis://quorate:{NODE_PASSWORD}@");
    let urls = ways.iter().map(|way| way.url().replace("redis://", &login));
    let quorum = connect(patient(Quorate::builder().voters(urls))).await;
    let guard = quorum.mutex("a").lock().await.unwrap();
    for (node, way) in nodes.iter_mut().zip(&ways) {
        all_vote_for(&guard).await;
        let vote =
            |node: &RedisServer| node.command(&["HGET", "quorate:{a}", guard.hold().as_str()]);
        // A majority has confirmed that the entry was left; this one may hear of it later.
        let once = || vote(node) == Ok(Reply::Text("1".into()));
        until!("it counts one entry", once());
        // As a holder that is away: no renewal gives back what the node has forgotten.
        way.refuse().await;
        node.kill();
        node.restart();
        // It wants a password, and so seems to be there while it loads.
        eventually("it has loaded its data", || !is_loading(node));
        assert_eq!(vote(node), Ok(Reply::Text("1".into())), "the node has forgotten a vote");
        let token = node.command(&["GET", "quorate:{a}:fence"]);
        assert_eq!(token, Ok(Reply::Text(guard.token().to_string())));
        way.accept();
    }
    all_vote_for(&guard).await;
    nobody_is_kept_out(&quorum).await;
    guard.release().await.unwrap();
    quorum.fair_mutex("b").lock().await.unwrap().release().await.unwrap();
    let write = quorum.rw_lock("c").write().await.unwrap();
    write.downgrade().await.unwrap().release().await.unwrap();
}

// While it loads, a server says of itself that it writes nothing to disk. The server is told to
// take its time for each change, so that it is met then.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_met_while_it_loads_is_known_to_forget_nothing() {
    let mut nodes = RedisServer::start_many(&lock_node().flags(&["--key-load-delay", "200"]), 3);
    change_often(&nodes[0], 10);
    let quorum = connect(builder(&nodes)).await;
    let guard = quorum.mutex("a").lock().await.unwrap();
    nodes[0].restart();
    assert!(is_loading(&nodes[0]), "it was loaded too soon to see it");
    all_vote_for(&guard).await;
    nobody_is_kept_out(&quorum).await;
    guard.release().await.unwrap();
}
