//! Servers that were promoted are known by their marks.

use std::time::Duration;

use super::{Cause, Heard, MARK, RedisServer, Value, answers, connect, count, fails, start};
use crate::{node::Identity, scripts::voter};
use quorate_support::{Proxy, Reply, eventually, eventually_async};

const SECS: fn(u64) -> Duration = Duration::from_secs;

/// A replica that has become a primary, and its former primary.
fn promoted() -> (RedisServer, RedisServer) {
    let primary = RedisServer::start();
    let replica = primary.start_replica();
    tell(&replica, &["REPLICAOF", "NO", "ONE"]);
    (replica, primary)
}

fn tell(server: &RedisServer, words: &[&str]) {
    server.command(words).unwrap_or_else(|why| panic!("{words:?}: {why}"));
}

fn info(server: &RedisServer, name: &str) -> String {
    server.info(&["INFO"], name).unwrap()
}

fn uptime(server: &RedisServer) -> Duration {
    SECS(info(server, "uptime_in_seconds").parse().unwrap())
}

/// The replication id that the mark names, and the moment, in milliseconds.
fn mark(server: &RedisServer) -> (String, u64) {
    let Reply::Text(mark) = server.command(&["GET", MARK]).unwrap() else { panic!("no mark") };
    let (id, since) = mark.split_once(' ').unwrap();
    (id.to_owned(), since.parse().unwrap())
}

fn left(server: &RedisServer) -> Duration {
    let Reply::Int(left) = server.command(&["PTTL", MARK]).unwrap() else { panic!("no number") };
    Duration::from_millis(left.try_into().expect("it has an expiry"))
}

async fn met(url: &str) -> Identity {
    last(&connect(url).await.1)
}

fn last(heard: &Heard) -> Identity {
    heard.met.lock().unwrap().last().unwrap().0.clone()
}

fn run_ids(heard: &Heard) -> Vec<String> {
    heard.met.lock().unwrap().iter().map(|(identity, _)| identity.run_id.clone()).collect()
}

#[tokio::test]
async fn a_promoted_server_is_as_old_as_its_mark_which_is_kept_for_a_month() {
    let (server, _primary) = promoted();
    eventually("it is not young", || uptime(&server) >= SECS(3));
    assert!(met(&server.url()).await.uptime < SECS(1), "nobody has met it before");
    let (id, since) = mark(&server);
    assert_eq!(id, info(&server, "master_replid"));
    tell(&server, &["PEXPIRE", MARK, "60000"]);
    eventually_async("it grows older", async || {
        let age = met(&server.url()).await.uptime;
        age >= SECS(1) && age < uptime(&server)
    })
    .await;
    assert_eq!(mark(&server), (id, since), "the first one stays");
    let month = SECS(30 * 24 * 3_600);
    let left = left(&server);
    assert!(left <= month && left + SECS(60) > month, "{left:?}");
    assert_eq!(server.keys(), [MARK], "and nothing else");
}

#[tokio::test]
async fn a_server_that_was_never_promoted_has_no_mark() {
    let (_, primary) = promoted();
    eventually("it is not young", || uptime(&primary) >= SECS(2));
    assert!(met(&primary.url()).await.uptime >= SECS(2));
    assert!(primary.keys().is_empty());
    assert_eq!(primary.calls("eval"), 0);
}

#[tokio::test]
async fn a_mark_of_another_tenure_or_of_the_future_counts_for_nothing() {
    let (server, _primary) = promoted();
    eventually("it is not young", || uptime(&server) >= SECS(2));
    let id = info(&server, "master_replid");
    let former = info(&server, "master_replid2");
    for planted in [format!("{former} 1000"), format!("{id} 99999999999999"), "text".to_owned()] {
        tell(&server, &["SET", MARK, &planted]);
        assert!(met(&server.url()).await.uptime < SECS(1), "{planted}");
        assert_eq!(mark(&server).0, id);
    }
    tell(&server, &["SET", MARK, &format!("{id} 1000")]);
    let (told, up) = (met(&server.url()).await.uptime, uptime(&server));
    assert!(told + SECS(1) >= up && told <= up, "it is no older than its process: {told:?}");
}

#[tokio::test]
async fn who_may_not_look_at_the_mark_takes_the_server_for_as_old_as_its_process() {
    let (server, _primary) = promoted();
    let rules = ["ACL", "SETUSER", "poor", "on", ">pw", "~a*", "+@all"];
    tell(&server, &rules);
    eventually("it is not young", || uptime(&server) >= SECS(2));
    let (node, heard) = connect(&server.url_as("poor", "pw")).await;
    assert!(last(&heard).uptime >= SECS(2));
    assert_eq!(node.run(count("a")).await, Ok(Value::Int(1)), "it is a voter all the same");
    assert_eq!(server.keys(), ["a"]);
    // Nor who may not do everything that the script does.
    tell(&server, &["ACL", "SETUSER", "poor", "allkeys", "-set"]);
    let (_node, heard) = connect(&server.url_as("poor", "pw")).await;
    assert!(last(&heard).uptime >= SECS(2));
}

#[tokio::test]
async fn a_server_that_can_write_nothing_now_has_been_met_by_nobody() {
    let (server, _primary) = promoted();
    eventually("it is not young", || uptime(&server) >= SECS(2));
    for (setting, value, usual) in [("maxmemory", "1", "0"), ("min-replicas-to-write", "1", "0")] {
        tell(&server, &["CONFIG", "SET", setting, value]);
        let (_node, heard) = connect(&server.url()).await;
        assert!(last(&heard).uptime < SECS(1), "{setting}");
        tell(&server, &["CONFIG", "SET", setting, usual]);
        assert!(server.keys().is_empty());
    }
}

// Once an hour; in this build with each look at the connection.
#[tokio::test]
async fn a_mark_is_kept_for_as_long_as_somebody_is_connected() {
    let (server, _primary) = promoted();
    let (_node, _heard) = connect(&server.url()).await;
    let (before, month) = (mark(&server), SECS(29 * 24 * 3_600));
    tell(&server, &["PEXPIRE", MARK, "60000"]);
    eventually_async("it is kept for a month again", async || left(&server) > month).await;
    assert_eq!(mark(&server), before);
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_asked_again_before_any_script_runs() {
    let (server, _primary) = promoted();
    let proxy = Proxy::start(server.port()).await;
    proxy.hold_replies_from(&format!("EVAL\r\n${}\r\n", voter::TENURE.source.len()));
    let (node, heard) = start(&proxy.url());
    let told = "does not say who it is: no answer within 1s";
    fails(&node, |cause| *cause == Cause::Unreachable(told.into())).await;
    assert!(run_ids(&heard).is_empty());
    proxy.pass();
    answers(&node).await;
    assert_eq!(run_ids(&heard).len(), 1);
}

#[tokio::test]
async fn a_server_that_was_a_replica_in_between_is_another_one_and_stays_that() {
    let (other, server) = promoted();
    let (_node, heard) = connect(&server.url()).await;
    let run_id = info(&server, "run_id");
    let met_again = async |times: usize| {
        tell(&server, &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        eventually_async("it is met again", async || run_ids(&heard).len() == times).await;
        run_ids(&heard).pop().unwrap()
    };
    let mut told = vec![run_id.clone()];
    for times in 2..=3 {
        tell(&server, &["REPLICAOF", "127.0.0.1", &other.port().to_string()]);
        eventually("it has the data", || server.is_linked_to(&other).is_ok());
        tell(&server, &["REPLICAOF", "NO", "ONE"]);
        told.push(met_again(times).await);
        assert_eq!(told.last(), Some(&format!("{run_id}/{}", info(&server, "master_replid"))));
    }
    assert_ne!(told[1], told[2]);
    // After a time without replicas it does not tell any more that it was promoted.
    tell(&server, &["CONFIG", "SET", "repl-backlog-ttl", "1"]);
    let forgotten = || info(&server, "master_replid2").bytes().all(|byte| byte == b'0');
    eventually("it has forgotten", forgotten);
    assert_eq!(met_again(4).await, told[2]);
}

// While it loads it does not tell yet what it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_loads_its_data_is_met_when_it_has_them() {
    // It answers after each kilobyte of them.
    let slowly = "--key-load-delay 100000 --loading-process-events-interval-bytes 1024 \
        --rdbcompression no";
    let mut server = RedisServer::start_with(&slowly.split_whitespace().collect::<Vec<_>>());
    let value = "a".repeat(2_000);
    for key in 0..20 {
        tell(&server, &["SET", &format!("a:{key}"), &value]);
    }
    tell(&server, &["SAVE"]);
    let (node, heard) = connect(&server.url()).await;
    let restarted = tokio::task::spawn_blocking(move || {
        server.restart();
        server
    });
    fails(&node, |cause| matches!(cause, Cause::Unreachable(why) if why.contains("still loads")))
        .await;
    assert_eq!(run_ids(&heard).len(), 1);
    let _server = restarted.await.unwrap();
    answers(&node).await;
    assert_eq!(run_ids(&heard).len(), 2);
}
