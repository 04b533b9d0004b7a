//! What the other tests would not notice if the harness did not do it: nothing of it is left, and
//! the proxy spoils as told.

use std::{
    env,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use quorate_tests::prelude::*;
use rustix::process::{Pid, test_kill_process};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Long enough for a reply that is on its way; only waited out where none may come.
const SILENCE: Duration = Duration::from_millis(150);

fn is_alive(pid: u32) -> bool {
    let pid = Pid::from_raw(pid.try_into().expect("a process id")).expect("not zero");
    test_kill_process(pid).is_ok()
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

/// This test runs itself as a child process, which starts a server and is killed.
#[test]
fn a_server_dies_with_its_test_process() {
    const CHILD: &str = "QUORATE_HARNESS_CHILD";
    if env::var_os(CHILD).is_some() {
        let server = RedisServer::start();
        println!("\nserver {} {}", server.pid(), server.dir().display());
        loop {
            std::thread::park();
        }
    }
    let mut child = Command::new(env::current_exe().expect("this binary"))
        .args(["--exact", "harness::a_server_dies_with_its_test_process", "--nocapture"])
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
        let read = timeout(Duration::from_secs(20), self.0.read(&mut buffer)).await;
        let length = read.expect("something comes").unwrap_or(0);
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

async fn proxied() -> (RedisServer, Proxy, Client) {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port()).await;
    let mut client = Client::connect(&proxy).await;
    assert_eq!(client.call("PING").await, "+PONG\r\n");
    (server, proxy, client)
}

// That it refuses new connections, `refuse` itself makes sure of.
#[tokio::test]
async fn a_cut_closes_what_is_open_and_a_refusal_does_not() {
    let (_server, proxy, mut client) = proxied().await;
    proxy.refuse().await;
    assert_eq!(client.call("PING").await, "+PONG\r\n");
    proxy.cut().await;
    assert_eq!(client.receive().await, "");
    proxy.accept();
    assert_eq!(Client::connect(&proxy).await.call("PING").await, "+PONG\r\n");
}

#[tokio::test]
async fn a_black_hole_swallows_and_then_closes_what_it_took_from() {
    let (mut server, proxy, mut spoilt) = proxied().await;
    let mut spared = Client::connect(&proxy).await;
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
async fn held_replies_come_later_and_complete() {
    let (server, proxy, mut client) = proxied().await;
    proxy.hold_replies();
    client.send("INCR k").await;
    until!("the request runs", server.keys() == ["k"]);
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
    let (server, proxy, mut client) = proxied().await;
    let mut other = Client::connect(&proxy).await;
    proxy.cut_after_request_naming("INCR", 2);
    assert_eq!(client.call("INCR k").await, ":1\r\n");
    assert_eq!(other.call("PING").await, "+PONG\r\n");
    assert_eq!(client.call("INCR k").await, "");
    assert_eq!(server.command(&["GET", "k"]), Ok(Reply::Text("2".into())));
    until!("the cut is counted", proxy.cuts() == 1);
    // One cut, and no more.
    assert_eq!(other.call("INCR k").await, ":3\r\n");
}
