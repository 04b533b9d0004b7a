//! The proxy spoils as told.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{SILENCE, text};
use quorate_support::{Proxy, RedisServer, eventually_async};

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
