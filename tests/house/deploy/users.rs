//! What each user of a node may do.

use super::files::Tree;
use quorate_support::{NODE_PASSWORD, RedisServer, Reply, lock_node};
use quorate_tests::rights;

/// What a user gets for a command.
fn ask(node: &RedisServer, user: &str, words: &[&str]) -> Result<Reply, String> {
    let login = ["AUTH", user, NODE_PASSWORD];
    node.anonymous(&[&login, words]).unwrap().pop().unwrap()
}

fn is_denied(reply: &Result<Reply, String>) -> bool {
    let denials = ["NOPERM", "ERR DEBUG command not allowed"];
    reply.as_ref().is_err_and(|error| denials.iter().any(|denial| error.starts_with(denial)))
}

#[test]
fn the_user_of_the_locks_has_the_documented_rights() {
    let mut documented = rights::documented();
    let rights = Tree::default().user("quorate").expect("there is this user");
    let mut ours: Vec<&str> = rights.iter().skip(2).map(String::as_str).collect();
    documented.sort_unstable();
    ours.sort_unstable();
    assert_eq!(ours, documented);
}

#[test]
fn without_a_name_nothing_is_told_but_that_the_node_answers() {
    let node = RedisServer::start_as(&lock_node());
    for words in [&["PING"][..], &["GET", "a"], &["INFO"], &["CONFIG", "GET", "*"]] {
        let reply = node.anonymous(&[words]).unwrap().pop().unwrap();
        assert!(reply.is_err_and(|error| error.starts_with("NOAUTH")), "{words:?}");
    }
    assert!(node.anonymous(&[&["AUTH", "default", ""]]).unwrap()[0].is_err());
    assert_eq!(ask(&node, "probe", &["PING"]), Ok(Reply::Text("PONG".into())));
    for words in [&["GET", "a"][..], &["INFO"], &["SUBSCRIBE", "a"], &["CLIENT", "LIST"]] {
        assert!(is_denied(&ask(&node, "probe", words)), "{words:?}");
    }
}

#[test]
fn an_operator_can_look_after_a_node_but_not_make_it_forget() {
    let node = RedisServer::start_as(&lock_node());
    for words in [
        &["CONFIG", "SET", "slowlog-log-slower-than", "500"][..],
        &["ACL", "LOAD"],
        &["ACL", "LOG"],
        &["CLIENT", "LIST"],
        &["SLOWLOG", "GET"],
        &["LATENCY", "LATEST"],
        &["MEMORY", "DOCTOR"],
        &["BGREWRITEAOF"],
        &["DEL", "quorate:{a}"],
        &["SCAN", "0"],
    ] {
        assert_eq!(ask(&node, "operator", words).err(), None, "{words:?}");
    }
    for words in [
        &["FLUSHALL"][..],
        &["FLUSHDB"],
        &["SWAPDB", "0", "1"],
        &["REPLICAOF", "127.0.0.1", "1"],
        &["SLAVEOF", "127.0.0.1", "1"],
        &["DEBUG", "RELOAD"],
        &["MODULE", "LIST"],
    ] {
        assert!(is_denied(&ask(&node, "operator", words)), "{words:?}");
    }
}

#[test]
fn an_exporter_reads_figures_and_no_locks() {
    let node = RedisServer::start_as(&lock_node());
    for words in [
        &["INFO", "ALL"][..],
        &["CONFIG", "GET", "*"],
        &["CLIENT", "SETNAME", "exporter"],
        &["SLOWLOG", "LEN"],
        &["SLOWLOG", "GET", "1"],
        &["LATENCY", "LATEST"],
        &["LATENCY", "HISTOGRAM"],
    ] {
        assert_eq!(ask(&node, "exporter", words).err(), None, "{words:?}");
    }
    for words in [
        &["GET", "quorate:{a}"][..],
        &["SCAN", "0"],
        &["SET", "a", "b"],
        &["CONFIG", "SET", "timeout", "1"],
        &["SUBSCRIBE", "quorate:{a}"],
        &["EVAL", "return 1", "0"],
    ] {
        assert!(is_denied(&ask(&node, "exporter", words)), "{words:?}");
    }
}
