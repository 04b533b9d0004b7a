use std::time::Duration;

use futures::future::join_all;
use tokio::{net::TcpListener, time::timeout};

use super::{
    Cause, InspectionSettings, Outcome, RedisServer, answers, connect, listen, start, start_with,
};
use crate::voter::seat::Seat;
use quorate_support::{Proxy, are_before_7, eventually_async};

fn publish(server: &RedisServer, channel: &str) -> String {
    format!("{:?}", server.command(&["PUBLISH", channel, "0"]).unwrap())
}

#[tokio::test]
async fn what_is_published_after_subscribing_is_heard_and_after_unsubscribing_is_not() {
    let server = RedisServer::start();
    let (node, heard) = connect(&server.url()).await;
    listen(&node, "a").await;
    assert_eq!(publish(&server, "a"), "Int(1)", "in force as soon as it was answered");
    eventually_async("the message", async || heard.called() == ["a"]).await;
    node.unsubscribe("a".into()).await.unwrap();
    assert_eq!(publish(&server, "a"), "Int(0)");
}

// More messages at once than the client keeps. It is told that some may be lost, and its waiters
// ask the voters.
#[tokio::test]
async fn of_a_burst_of_messages_each_is_heard_or_the_ear_is_told_that_some_may_be_lost() {
    let server = RedisServer::start();
    let (node, heard) = connect(&server.url()).await;
    listen(&node, "a").await;
    let (before, burst) = (heard.missed(), "for n = 1, 2000 do redis.call('PUBLISH', 'a', n) end");
    server.command(&["EVAL", burst, "0"]).unwrap();
    publish(&server, "a");
    eventually_async("all are accounted for", async || {
        heard.called().len() == 2001 || heard.missed() > before
    })
    .await;
    assert!(heard.missed() > before, "a burst that is kept whole shows nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_channels_at_once_are_all_in_force_when_answered() {
    let server = RedisServer::start();
    let (node, heard) = connect(&server.url()).await;
    listen(&node, "first").await;
    let names: Vec<String> = (0..500).map(|n| format!("channel {n}")).collect();
    let wishes = names.iter().map(|name| node.subscribe(name.as_str().into()));
    join_all(wishes).await.into_iter().for_each(|outcome| outcome.unwrap());
    // Fewer at once than are kept for the client.
    for some in names.chunks(32) {
        for name in some {
            assert_eq!(publish(&server, name), "Int(1)");
        }
        eventually_async("each is heard", async || heard.called().ends_with(some)).await;
    }
    assert_eq!(heard.called(), names);
}

#[tokio::test]
async fn whenever_a_server_comes_back_its_channels_are_listened_to_and_the_ear_is_told() {
    let mut server = RedisServer::start();
    server.kill();
    let (node, heard) = start(&server.url());
    let refused =
        |outcome| matches!(outcome, Err(Cause::Unreachable(why)) if why.text().contains("refused"));
    let asked = async || refused(node.subscribe("a".into()).await);
    eventually_async("the cause is told", asked).await;
    for _ in 0..2 {
        let missed = heard.missed();
        server.restart();
        eventually_async("the listener is told", async || heard.missed() > missed).await;
        assert_eq!(["a", "b"].map(|channel| publish(&server, channel)), ["Int(1)", "Int(0)"]);
        eventually_async("it hears", async || heard.called().contains(&"a".to_owned())).await;
        heard.called.lock().unwrap().clear();
        listen(&node, "b").await;
        node.unsubscribe("b".into()).await.unwrap();
    }
}

/// The server takes connections, and says nothing.
#[tokio::test]
async fn wishes_are_answered_while_it_connects_again() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (node, _) = start(&format!("redis://{}", silent.local_addr().unwrap()));
    let _first = silent.accept().await.unwrap();
    let _second = silent.accept().await.unwrap();
    let asked = timeout(Duration::from_millis(500), node.subscribe("a".into()));
    assert!(matches!(asked.await, Ok(Err(Cause::Unreachable(_)))));
}

#[tokio::test]
async fn subscribing_through_a_black_hole_is_no_success() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port()).await;
    let (node, heard) = connect(&proxy.url()).await;
    listen(&node, "first").await;
    proxy.black_hole();
    let outcome = node.subscribe("a".into()).await;
    assert!(matches!(outcome, Err(Cause::TimedOut(_) | Cause::Broken(_))), "{outcome:?}");
    proxy.pass();
    eventually_async("the listener is told", async || heard.missed() > 0).await;
    eventually_async("in force", async || publish(&server, "a") == "Int(1)").await;
}

fn is_forbidden(outcome: &Outcome<()>) -> bool {
    matches!(outcome, Err(Cause::Rejected(why)) if why.lacks().is_some())
}

#[tokio::test]
async fn a_refused_channel_keeps_none_from_being_heard_by_the_next_connection() {
    let server = RedisServer::start();
    let rules = ["ACL", "SETUSER", "default", "resetchannels", "&allowed"];
    server.command(&rules).unwrap();
    let (node, heard) = connect(&server.url()).await;
    listen(&node, "allowed").await;
    assert!(is_forbidden(&node.subscribe("forbidden".into()).await));
    server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]).unwrap();
    eventually_async("the listener is told", async || heard.missed() > 0).await;
    assert_eq!(publish(&server, "allowed"), "Int(1)");
}

/// Where channels have slots.
#[tokio::test]
async fn a_refused_channel_changes_nothing_for_others() {
    let server = RedisServer::start();
    let rules = ["ACL", "SETUSER", "default", "resetchannels", "&{allowed}"];
    server.command(&rules).unwrap();
    let looks = InspectionSettings { seat: Some(Seat::new(0, 1)), ..InspectionSettings::default() };
    let (node, _) = start_with(&server.url(), looks);
    answers(&node).await;
    assert!(is_forbidden(&node.subscribe("{forbidden}".into()).await));
    node.subscribe("{allowed}".into()).await.unwrap();
    let kind = if are_before_7() { "CHANNELS" } else { "SHARDCHANNELS" };
    let channels = format!("{:?}", server.command(&["PUBSUB", kind]).unwrap());
    assert!(channels.contains("{allowed}"), "{channels}");
}

#[tokio::test]
async fn a_refused_channel_is_told_and_leaves_the_connection_in_step() {
    let server = RedisServer::start();
    let rules = ["ACL", "SETUSER", "default", "resetchannels", "&allowed*"];
    server.command(&rules).unwrap();
    let (node, heard) = connect(&server.url()).await;
    listen(&node, "allowed 1").await;
    for _ in 0..20 {
        let outcome = node.subscribe("forbidden".into()).await;
        assert!(is_forbidden(&outcome));
        node.unsubscribe("forbidden".into()).await.unwrap();
        let channel = "allowed 2";
        node.subscribe(channel.into()).await.unwrap();
        assert_eq!(publish(&server, channel), "Int(1)");
        node.unsubscribe(channel.into()).await.unwrap();
    }
    assert_eq!(heard.missed(), 0, "the connection was never replaced");
}
