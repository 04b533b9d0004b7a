//! Servers by `redis.conf` are what locks stand on.

use quorate::{Builder, MutexGuard, Quorate};

use super::files::{Tree, number};
use quorate_support::{NODE_PASSWORD, RedisServer, Reply, eventually, eventually_async, lock_node};
use quorate_tests::scene::{connect, patient, proxies};

fn builder(nodes: &[RedisServer]) -> Builder {
    patient(Quorate::builder().voters(nodes.iter().map(|n| n.url_as("quorate", NODE_PASSWORD))))
}

/// Name and value of each line of a `redis.conf`.
fn directives(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(' ').expect("a name and a value"))
}

/// As `CONFIG GET` says it.
fn as_told(value: &str) -> String {
    let is_size = value.ends_with("mb") && !value.contains(' ');
    if is_size { number(value).to_string() } else { value.trim_matches('"').to_owned() }
}

#[test]
fn a_server_takes_every_line_as_it_stands() {
    let node = RedisServer::start_as(&lock_node());
    let text = Tree::default().text("deploy/redis.conf");
    for (name, value) in directives(&text) {
        let Ok(Reply::List(known)) = node.command(&["CONFIG", "GET", name]) else {
            panic!("CONFIG GET {name} has a list for an answer")
        };
        assert_eq!(known.len(), 2, "the server knows {name}");
        let told = Reply::Text(as_told(value));
        match name {
            // Where a server is, is up to the test.
            "port" | "aclfile" | "dir" => {}
            "client-output-buffer-limit" => {
                let Reply::Text(all) = &known[1] else { panic!("{known:?}") };
                let (class, limits) = value.split_once(' ').unwrap();
                let limits: Vec<_> = limits.split(' ').map(as_told).collect();
                assert!(all.contains(&format!("{class} {}", limits.join(" "))), "{all}");
            }
            _ => assert_eq!(known[1], told, "{name}"),
        }
    }
}

// Each line has its reason: a comment above it, with no empty line between.
#[test]
fn no_line_is_without_a_reason() {
    let text = Tree::default().text("deploy/redis.conf");
    for part in text.split("\n\n").skip(1) {
        assert!(part.starts_with('#'), "{part}");
    }
}

/// Each entry asks all three anew.
async fn all_vote_for(guard: &MutexGuard) {
    eventually_async("it votes for the hold as before", async || {
        // A node that restarts may make a majority late.
        let Ok(again) = guard.reenter().await else { return false };
        again.release().await.is_ok() && guard.votes() == 3
    })
    .await;
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
        // As a holder that is away: no renewal gives back what the node has forgotten.
        way.refuse().await;
        node.kill();
        node.restart();
        // It wants a password, and so seems to be there while it loads.
        let loading = || node.info(&["INFO", "persistence"], "loading");
        eventually("it has loaded its data", || loading().as_deref() == Ok("0"));
        let vote = node.command(&["HGET", "quorate:{a}", guard.hold().as_str()]);
        assert_eq!(vote, Ok(Reply::Text("1".into())), "the node has forgotten a vote");
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
    // In parts: each is to be done before a client gives up on its answer.
    let changes = "for at = 1, 1000 do redis.call('SET', ARGV[1] .. at, '1') end";
    for part in 0..10 {
        nodes[0].command(&["EVAL", changes, "0", &format!("key{part}:")]).unwrap();
    }
    let quorum = connect(builder(&nodes)).await;
    let guard = quorum.mutex("a").lock().await.unwrap();
    nodes[0].restart();
    let loading = nodes[0].info(&["INFO", "persistence"], "loading");
    assert_eq!(loading.as_deref(), Ok("1"), "it was loaded too soon to see it");
    all_vote_for(&guard).await;
    nobody_is_kept_out(&quorum).await;
    guard.release().await.unwrap();
}

// Locks that were given are never taken away for want of room: what is asked for later gets no
// vote.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_room_gives_no_vote_and_forgets_none() {
    let nodes = RedisServer::start_many(&lock_node(), 3);
    let quorum = connect(builder(&nodes)).await;
    let held = quorum.mutex("held").lock().await.unwrap();
    // Two votes are enough for the lock, and the third may come later.
    eventually_async("all have voted", async || held.votes() == 3).await;
    for node in &nodes {
        node.command(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
    }
    let refused = quorum.mutex("asked").try_lock().await.unwrap_err();
    assert!(refused.is_no_quorum() && refused.to_string().contains("OOM"), "{refused}");
    for node in &nodes {
        assert!(node.keys().contains(&"quorate:{held}".to_owned()));
        node.command(&["CONFIG", "SET", "maxmemory", "256mb"]).unwrap();
    }
    held.release().await.unwrap();
    quorum
        .mutex("asked")
        .try_lock()
        .await
        .unwrap()
        .expect("there is room")
        .release()
        .await
        .unwrap();
}
