//! What a node answers: to each of its users, and to the commands by which Compose and Kubernetes
//! ask it.

use std::process::Command;

use quorate_support::{NODE_PASSWORD, lock_node};
use quorate_tests::{prelude::*, rights};

use super::{COMPOSE, NODES};

#[test]
fn the_user_of_the_locks_has_the_documented_rights() {
    let users = read_file("deploy/users.acl");
    let ours =
        users.lines().find_map(|line| line.strip_prefix("user quorate on #quorate-password "));
    let mut ours: Vec<_> = ours.expect("there is this user").split(' ').collect();
    let mut documented = rights::documented();
    documented.sort_unstable();
    ours.sort_unstable();
    assert_eq!(ours, documented);
}

// An operator looks after a node but cannot make it forget; an exporter reads figures and no locks;
// without a password nothing is told but that the node answers.
#[test]
fn each_user_can_do_what_it_is_for_and_no_more() {
    let node = RedisServer::start_as(&lock_node());
    let may = |user: &str, commands: &str, allowed: bool| {
        for command in commands.split(", ") {
            let words: Vec<_> = command.split(' ').collect();
            let login = ["AUTH", user, NODE_PASSWORD];
            let reply = node.anonymous(&[&login, &words]).unwrap().pop().unwrap();
            let denials = ["NOPERM", "ERR DEBUG command not allowed"];
            let is_denied = |error: &String| denials.iter().any(|it| error.starts_with(it));
            let is_so = if allowed { reply.is_ok() } else { reply.as_ref().is_err_and(is_denied) };
            assert!(is_so, "{user}: {command}: {reply:?}");
        }
    };
    may(
        "operator",
        "CONFIG SET slowlog-log-slower-than 500, ACL LOAD, ACL LOG, CLIENT LIST, SLOWLOG GET, \
         LATENCY LATEST, MEMORY DOCTOR, BGREWRITEAOF, DEL quorate:{a}, SCAN 0",
        true,
    );
    let forgetting = "FLUSHALL, FLUSHDB, SWAPDB 0 1, REPLICAOF 127.0.0.1 1, SLAVEOF 127.0.0.1 1, \
         DEBUG RELOAD, MODULE LIST";
    may("operator", forgetting, false);
    may(
        "exporter",
        "INFO ALL, CONFIG GET *, CLIENT SETNAME exporter, SLOWLOG LEN, SLOWLOG GET 1, \
         LATENCY LATEST, LATENCY HISTOGRAM",
        true,
    );
    let others = "GET quorate:{a}, SCAN 0, SET a b, CONFIG SET timeout 1, SUBSCRIBE quorate:{a}, \
         EVAL return 0";
    may("exporter", others, false);
    may("probe", "PING", true);
    may("probe", "GET a, INFO, SUBSCRIBE a, CLIENT LIST", false);
    for words in [&["PING"][..], &["GET", "a"], &["INFO"], &["CONFIG", "GET", "*"]] {
        let reply = node.anonymous(&[words]).unwrap().pop().unwrap();
        assert!(reply.is_err_and(|error| error.starts_with("NOAUTH")), "{words:?}");
    }
    assert!(!super::lets_in(&node, "default", ""));
}

/// The command of a line of YAML like `command: [a, "b"]`, the first behind this text.
fn command(text: &str, before: &str) -> Vec<String> {
    let (_, rest) = text.split_once(before).expect("it is there");
    let list = rest.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    let words = list.expect("a list on one line").0.split(", ");
    words.map(|word| word.trim_matches('"').to_owned()).collect()
}

/// Whether the probes for readiness, for life and of Compose are content with what stands there.
fn are_content(port: u16) -> [bool; 3] {
    let (nodes, compose) = (read_file(NODES), read_file(COMPOSE));
    // Readiness is asked as the start is.
    assert!(nodes.contains("startupProbe:\n            exec: &answers\n"));
    assert!(nodes.contains("readinessProbe:\n            exec: *answers\n"));
    let health = command(&compose, "  healthcheck:\n").split_off(1);
    let probes = [command(&nodes, "startupProbe:"), command(&nodes, "livenessProbe:"), health];
    probes.map(|command| {
        assert_eq!(command[0], "redis-cli");
        let mut cli = Command::new("redis-cli");
        let cli = cli.args(["-p", &port.to_string()]).args(&command[1..]).output();
        cli.expect("redis-cli comes with redis-server").status.success()
    })
}

/// It lives, and killing it would not help.
const ALIVE_AND_NOT_READY: [bool; 3] = [false, true, false];

#[test]
fn every_probe_is_content_with_a_node_and_none_with_nothing() {
    let mut node = RedisServer::start_as(&lock_node());
    assert_eq!(are_content(node.port()), [true; 3]);
    node.kill();
    assert_eq!(are_content(node.port()), [false; 3]);
    // As after a mistake with the files: it answers, and is no voter.
    let node = RedisServer::start_as(&Settings::new().users(&[]));
    assert_eq!(are_content(node.port()), ALIVE_AND_NOT_READY);
}

// The server is told to take its time for each change, so it loads for some seconds, and looks up
// every thousand changes. Killing it would make it begin again.
#[test]
fn a_node_that_loads_its_data_is_alive_and_not_ready() {
    let mut node = RedisServer::start_as(&lock_node().flags(&["--key-load-delay", "200"]));
    change_often(&node, 40);
    node.restart();
    let content = are_content(node.port());
    // Still, so it was while it was asked.
    assert!(is_loading(&node), "it was loaded too soon to see it");
    assert_eq!(content, ALIVE_AND_NOT_READY);
    eventually("it is ready once it has loaded", || are_content(node.port()) == [true; 3]);
}

/// So many thousand changes, in parts: each is to be done before a client gives up on its answer.
pub(crate) fn change_often(node: &RedisServer, thousands: u8) {
    let changes = "for at = 1, 1000 do redis.call('SET', ARGV[1] .. at, '1') end";
    for part in 0..thousands {
        let done = node.command(&["EVAL", changes, "0", &format!("key{part}:")]);
        assert_eq!(done, Ok(Reply::Nil));
    }
}

pub(crate) fn is_loading(node: &RedisServer) -> bool {
    node.info(&["INFO", "persistence"], "loading").as_deref() == Ok("1")
}
