//! What `deploy/` has works as it stands there.

#[path = "../faults/scene.rs"]
mod scene;
#[path = "../support/mod.rs"]
mod support;

use quorate::{Builder, Quorate};
use scene::connect;
use support::{RedisServer, Reply, Settings, eventually_async};

const CONFIGURATION: &str = include_str!("../../deploy/redis.conf");
const USERS: &str = include_str!("../../deploy/users.acl");

/// Name and value of each line. Where a server is and where its files are is up to the test.
fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = CONFIGURATION.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(' ').expect("a name and a value"))
}

/// What stands behind the name of a user.
fn rules(user: &str) -> &'static str {
    let line = USERS.lines().find_map(|line| line.strip_prefix("user ")?.strip_prefix(user));
    line.expect("there is this user").trim()
}

fn password() -> &'static str {
    let word = rules("quorate").split(' ').find_map(|word| word.strip_prefix('>'));
    word.expect("it has a password")
}

/// A server by `deploy/`. The tests' own servers keep nothing on disk, so that is said once more.
fn node() -> RedisServer {
    let users = ["quorate", "operator"].map(|user| format!("{user} {}", rules(user)));
    let ours = lines().filter(|(name, _)| *name != "aclfile");
    let text = ours.map(|(name, value)| format!("{name} {value}\n")).collect::<Vec<_>>().concat();
    let settings = Settings::new().config(&text).users(&[&users[0], &users[1]]);
    RedisServer::start_as(&settings.flags(&["--appendonly", "yes"]))
}

fn builder(nodes: &[RedisServer]) -> Builder {
    Quorate::builder().voters(nodes.iter().map(|node| node.url_as("quorate", password())))
}

#[test]
fn the_user_of_the_locks_has_the_rights_of_the_readme() {
    let readme = include_str!("../../README.md");
    let (_, block) = readme.split_once("ACL SETUSER quorate on >password").expect("it has them");
    let mut readmes: Vec<&str> =
        block.split_once("```").expect("the block ends").0.split_whitespace().collect();
    let mut ours: Vec<&str> = rules("quorate").split(' ').skip(2).collect();
    readmes.sort_unstable();
    ours.sort_unstable();
    assert_eq!(ours, readmes);
}

#[test]
fn a_server_takes_every_line_and_lets_nobody_in_without_a_name() {
    let node = node();
    for (name, value) in lines() {
        let known = node.command(&["CONFIG", "GET", name]).unwrap();
        let Reply::List(known) = known else { panic!("{name}: {known:?}") };
        assert_eq!(known.len(), 2, "the server knows {name}");
        let moved = ["port", "aclfile", "maxmemory", "client-output-buffer-limit"];
        if !moved.contains(&name) {
            assert_eq!(known[1], Reply::Text(value.trim_matches('"').to_owned()), "{name}");
        }
    }
    let default = ["ACL", "SETUSER", "default"].into_iter().chain(rules("default").split(' '));
    node.command(&default.collect::<Vec<_>>()).unwrap();
    let Ok(Reply::List(flags)) = node.command(&["ACL", "GETUSER", "default"]) else {
        panic!("it is a list")
    };
    let off = Reply::List(vec![Reply::Text("off".into())]);
    let first = match &flags[1] {
        Reply::List(words) => Reply::List(words.iter().take(1).cloned().collect()),
        other => panic!("{other:?}"),
    };
    assert_eq!(first, off);
}

#[tokio::test(flavor = "multi_thread")]
async fn locks_stand_on_such_nodes_and_a_restart_forgets_nothing() {
    let mut nodes = [(); 3].map(|()| node());
    let quorum = connect(builder(&nodes)).await;
    let guard = quorum.mutex("a").lock().await.unwrap();
    for node in &mut nodes {
        node.kill();
        node.restart();
        eventually_async("it votes for the hold as before", async || {
            let again = guard.reenter().await.unwrap();
            again.release().await.unwrap();
            guard.votes() == 3
        })
        .await;
    }
    let seen = quorum.mutex("a").inspect().await.unwrap();
    assert!(seen.voters.iter().all(|view| view.quarantine.is_none()), "{seen:?}");
    guard.release().await.unwrap();
    quorum.fair_mutex("b").lock().await.unwrap().release().await.unwrap();
    let write = quorum.rw_lock("c").write().await.unwrap();
    write.downgrade().await.unwrap().release().await.unwrap();
}
