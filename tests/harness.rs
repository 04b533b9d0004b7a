//! The harness does what it says: servers start, end and never leak; the proxy spoils as told.

mod support;

use std::env;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, test_kill_process};
use support::{Proxy, RedisServer, Reply, eventually, eventually_async};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Long enough for a reply that is on its way; only waited out where none may come.
const SILENCE: Duration = Duration::from_millis(150);

fn text(text: &str) -> Reply {
    Reply::Text(text.to_owned())
}

fn is_alive(pid: u32) -> bool {
    let pid = Pid::from_raw(pid.try_into().expect("a process id")).expect("not zero");
    test_kill_process(pid).is_ok()
}

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
        .args(["--exact", "a_server_dies_with_its_test_process", "--nocapture"])
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

/// A client's connection through the proxy, speaking in inline commands.
struct Client(TcpStream);

impl Client {
    async fn connect(proxy: &Proxy) -> Self {
        Self(TcpStream::connect(("127.0.0.1", proxy.port())).await.expect("it is accepted"))
    }

    async fn send(&mut self, command: &str) {
        self.0.write_all(format!("{command}\r\n").as_bytes()).await.expect("it is written");
    }

    /// What comes next; empty when the connection was closed.
    async fn receive(&mut self) -> String {
        let mut buffer = [0; 1024];
        let length = timeout(Duration::from_secs(20), self.0.read(&mut buffer))
            .await
            .expect("something comes")
            .unwrap_or(0);
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }

    async fn call(&mut self, command: &str) -> String {
        self.send(command).await;
        self.receive().await
    }

    async fn hears_nothing(&mut self) -> bool {
        timeout(SILENCE, self.0.read(&mut [0])).await.is_err()
    }
}

async fn proxied() -> (RedisServer, Proxy) {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port()).await;
    (server, proxy)
}

#[tokio::test]
async fn a_proxy_passes_both_ways() {
    let (server, proxy) = proxied().await;
    let mut client = Client::connect(&proxy).await;
    assert_eq!(client.call("SET k v").await, "+OK\r\n");
    assert_eq!(server.keys(), ["k"]);
    assert_eq!(proxy.connections(), 1);
}

#[tokio::test]
async fn a_cut_closes_what_is_open_and_accepts_the_next() {
    let (_server, proxy) = proxied().await;
    let mut client = Client::connect(&proxy).await;
    assert_eq!(client.call("PING").await, "+PONG\r\n");
    proxy.cut().await;
    assert_eq!(proxy.connections(), 0);
    assert_eq!(client.receive().await, "");
    assert_eq!(Client::connect(&proxy).await.call("PING").await, "+PONG\r\n");
}

#[tokio::test]
async fn a_refusing_proxy_refuses_new_connections_only() {
    let (_server, proxy) = proxied().await;
    let mut client = Client::connect(&proxy).await;
    assert_eq!(client.call("PING").await, "+PONG\r\n");
    proxy.refuse().await;
    let refused = TcpStream::connect(("127.0.0.1", proxy.port())).await.expect_err("refused");
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    assert_eq!(client.call("PING").await, "+PONG\r\n");
    proxy.accept();
    assert_eq!(Client::connect(&proxy).await.call("PING").await, "+PONG\r\n");
}

#[tokio::test]
async fn a_black_hole_swallows_and_then_closes_what_it_took_from() {
    let (mut server, proxy) = proxied().await;
    let mut spoilt = Client::connect(&proxy).await;
    let mut spared = Client::connect(&proxy).await;
    assert_eq!(spoilt.call("PING").await, "+PONG\r\n");
    assert_eq!(spared.call("PING").await, "+PONG\r\n");
    proxy.black_hole();
    spoilt.send("SET k v").await;
    assert!(spoilt.hears_nothing().await);
    assert!(Client::connect(&proxy).await.hears_nothing().await);
    proxy.pass();
    assert_eq!(spoilt.receive().await, "");
    assert_eq!(spared.call("PING").await, "+PONG\r\n");
    assert_eq!(server.keys(), Vec::<String>::new());
    // Nor does it tell that the server died.
    proxy.black_hole();
    server.kill();
    assert!(spared.hears_nothing().await);
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "real time passes here")]
async fn delays_add_to_a_trip_and_not_to_each_other() {
    let (_server, proxy) = proxied().await;
    let mut client = Client::connect(&proxy).await;
    assert_eq!(client.call("PING").await, "+PONG\r\n");
    proxy.delay(Duration::from_millis(120), Duration::from_millis(180));
    let started = std::time::Instant::now();
    for _ in 0..40 {
        client.send("PING").await;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut received = String::new();
    while received.len() < 40 * "+PONG\r\n".len() {
        received += &client.receive().await;
    }
    // One after the other the forty would need twelve seconds.
    let took = started.elapsed();
    assert!(took >= Duration::from_millis(300), "{took:?}");
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[tokio::test]
async fn held_replies_come_later_and_complete() {
    let (server, proxy) = proxied().await;
    let mut client = Client::connect(&proxy).await;
    proxy.hold_replies();
    client.send("INCR k").await;
    eventually_async("the request runs", async || server.keys() == ["k"]).await;
    client.send("INCR k").await;
    assert!(client.hears_nothing().await);
    proxy.pass();
    let mut received = String::new();
    while received.len() < ":1\r\n:2\r\n".len() {
        received += &client.receive().await;
    }
    assert_eq!(received, ":1\r\n:2\r\n");
}

#[tokio::test]
async fn a_planned_cut_falls_between_execution_and_reply() {
    let (server, proxy) = proxied().await;
    let mut client = Client::connect(&proxy).await;
    proxy.cut_after_request(2);
    assert_eq!(client.call("INCR k").await, ":1\r\n");
    assert_eq!(client.call("INCR k").await, "");
    assert_eq!(server.command(&["GET", "k"]), Ok(text("2")));
    eventually_async("the cut is counted", async || proxy.cuts() == 1).await;
    // One cut, and no more.
    assert_eq!(Client::connect(&proxy).await.call("INCR k").await, ":3\r\n");
}

#[tokio::test]
async fn a_planned_cut_can_name_its_request() {
    let (server, proxy) = proxied().await;
    let mut other = Client::connect(&proxy).await;
    let mut client = Client::connect(&proxy).await;
    proxy.cut_after_request_naming("INCR", 1);
    assert_eq!(other.call("PING").await, "+PONG\r\n");
    assert_eq!(client.call("INCR k").await, "");
    assert_eq!(server.keys(), ["k"]);
    assert_eq!(other.call("PING").await, "+PONG\r\n");
}

#[tokio::test]
async fn a_dropped_proxy_closes_its_connections() {
    let (_server, proxy) = proxied().await;
    let mut client = Client::connect(&proxy).await;
    assert_eq!(client.call("PING").await, "+PONG\r\n");
    drop(proxy);
    assert_eq!(client.receive().await, "");
}
