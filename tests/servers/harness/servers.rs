//! Servers start, end and never leak.

use std::env;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use super::{SILENCE, is_alive, text};
use quorate_support::{RedisServer, Reply, eventually};

#[test]
fn a_command_has_its_reply_or_the_servers_error() {
    let server = RedisServer::start();
    assert_eq!(server.command(&["SET", "b", ""]), Ok(text("OK")));
    assert_eq!(server.command(&["INCR", "a"]), Ok(Reply::Int(1)));
    assert_eq!(server.command(&["GET", "b"]), Ok(text("")));
    assert_eq!(server.command(&["GET", "none"]), Ok(Reply::Nil));
    let list = Reply::List(vec![text("1"), Reply::Nil]);
    assert_eq!(server.command(&["MGET", "a", "none"]), Ok(list));
    let refused = server.command(&["INCR", "b"]).expect_err("no number");
    assert!(refused.starts_with("ERR"), "{refused}");
    assert_eq!(server.keys(), ["a", "b"]);
}

#[test]
fn servers_started_at_once_are_different_ones() {
    let servers = thread::scope(|scope| {
        let starts: Vec<_> = (0..4).map(|_| scope.spawn(RedisServer::start)).collect();
        starts.into_iter().map(|start| start.join().expect("it starts")).collect::<Vec<_>>()
    });
    for server in &servers {
        let port = server.port().to_string();
        server.command(&["SET", "port", &port]).expect("it answers");
    }
    for server in &servers {
        assert_eq!(server.command(&["GET", "port"]), Ok(text(&server.port().to_string())));
    }
}

#[test]
fn a_dropped_server_is_gone_even_if_it_was_stopped() {
    let server = RedisServer::start();
    let (pid, dir) = (server.pid(), server.dir().to_owned());
    assert!(is_alive(pid) && dir.exists());
    server.stop();
    drop(server);
    assert!(!is_alive(pid) && !dir.exists());
}

#[test]
fn a_restart_keeps_the_port_and_loses_the_data() {
    let mut server = RedisServer::start();
    let (port, pid) = (server.port(), server.pid());
    server.command(&["SET", "k", "v"]).expect("it answers");
    server.kill();
    assert!(!is_alive(pid));
    assert!(server.command(&["PING"]).is_err());
    server.restart();
    assert_eq!((server.port(), server.keys()), (port, vec![]));
}

#[test]
fn flags_win_over_the_usual_ones() {
    let flags = ["--appendonly", "yes", "--appendfsync", "always"];
    let mut server = RedisServer::start_with(&flags);
    server.command(&["SET", "k", "v"]).expect("it answers");
    server.kill();
    server.restart();
    assert_eq!(server.keys(), ["k"]);
}

#[test]
fn a_server_for_a_cluster_finds_a_free_bus_port() {
    let server = RedisServer::start_with(&["--cluster-enabled", "yes"]);
    let Ok(Reply::Text(info)) = server.command(&["CLUSTER", "INFO"]) else { panic!("no text") };
    assert!(info.contains("cluster_state"), "{info}");
}

#[test]
fn a_stopped_server_is_silent_until_resumed() {
    let server = RedisServer::start();
    server.stop();
    thread::scope(|scope| {
        let asking = scope.spawn(|| server.command(&["PING"]));
        thread::sleep(SILENCE);
        assert!(!asking.is_finished());
        server.resume();
        assert_eq!(asking.join().expect("no panic"), Ok(text("PONG")));
    });
}

/// This test runs itself as a child process, which starts a server and is killed.
#[test]
fn a_server_dies_with_its_test_process() {
    const CHILD: &str = "QUORATE_HARNESS_CHILD";
    if env::var_os(CHILD).is_some() {
        let server = RedisServer::start();
        println!("\nserver {} {}", server.pid(), server.dir().display());
        loop {
            thread::park();
        }
    }
    let mut child = Command::new(env::current_exe().expect("this binary"))
        .args(["--exact", "harness::servers::a_server_dies_with_its_test_process", "--nocapture"])
        .env(CHILD, "yes")
        .stdout(Stdio::piped())
        .spawn()
        .expect("this binary runs");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let told = lines
        .map(|line| line.expect("text"))
        .find_map(|line| line.strip_prefix("server ").map(str::to_owned))
        .expect("the child tells its server");
    let (pid, dir) = told.split_once(' ').expect("two words");
    let pid = pid.parse().expect("a number");
    assert!(is_alive(pid));
    child.kill().expect("it can be killed");
    child.wait().expect("it can be reaped");
    eventually("the server dies with its process", || !is_alive(pid));
    eventually("its directory goes too", || !Path::new(dir).exists());
}
