use std::time::Duration;

use futures::future::join_all;

use super::{
    Access, Call, Cause, DEADLINE, RedisServer, Security, WRITE, answers, call, connect,
    connections, count, fails, listen, number,
};
use crate::{
    clock::Clock,
    voter::{
        lock,
        single::{
            Gate,
            link::{CONNECTING, Link, NO_BACKLOG},
        },
    },
};
use quorate_support::{Proxy, Reply, eventually_async};

// As in a process that was stopped for a while: it may send before it has looked at its sentinels.
#[tokio::test]
async fn nothing_leaves_by_a_connection_that_is_not_confirmed_in_time() {
    let server = RedisServer::start();
    let access = Access::new(&server.url().into(), &Security::default()).unwrap();
    let (link, _router) =
        Link::connect(access.config.clone(), &mut None, CONNECTING, NO_BACKLOG).await.unwrap();
    let (gate, now) = (Gate::default(), Clock::System.now());
    gate.open(&link);
    assert!(gate.pass().is_ok(), "nobody has to confirm it");
    *lock(&link.trusted) = Some(now + Duration::from_secs(3600));
    assert!(gate.pass().is_ok());
    *lock(&link.trusted) = Some(now);
    assert!(matches!(gate.pass(), Err(Cause::Unreachable(_))));
}

fn counted(server: &RedisServer, key: &str) -> String {
    match server.command(&["GET", key]).unwrap() {
        Reply::Text(count) => count,
        other => format!("{other:?}"),
    }
}

#[tokio::test]
async fn a_killed_server_is_used_again_soon_after_it_is_back() {
    let mut server = RedisServer::start();
    let (node, heard) = connect(&server.url()).await;
    listen(&node, "a").await;
    node.run(count("a")).await.unwrap();
    server.kill();
    fails(&node, |cause| matches!(cause, Cause::Unreachable(_))).await;
    assert!(node.identify().await.is_err());
    server.restart();
    let back = Clock::System.now();
    eventually_async("it counts again", async || node.run(count("a")).await.is_ok()).await;
    let took = Clock::System.now().since(back);
    assert!(took < Duration::from_secs(2), "{took:?}");
    eventually_async("the listener is told", async || heard.missed() > 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_runs_twice_however_often_connections_are_cut_under_load() {
    // A busy machine has time to answer what came before the cut.
    let count = |key: &str| Call { deadline: Duration::from_secs(5), ..count(key) };
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port()).await;
    let (node, _) = connect(&proxy.url()).await;
    let mut answered = 0;
    for round in 0..20 {
        let keys: Vec<_> = (0..100).map(|n| format!("{round}:{n}")).collect();
        proxy.cut_after_request_naming(&format!("{round}:50"), 1);
        let mut outcomes = Vec::new();
        for together in keys.chunks(20) {
            outcomes.extend(join_all(together.iter().map(|key| node.run(count(key)))).await);
        }
        answers(&node).await;
        for (key, outcome) in keys.iter().zip(outcomes) {
            let ran = counted(&server, key);
            match outcome {
                Ok(answer) => {
                    answered += 1;
                    assert_eq!((answer.code(), ran.as_str()), (1, "1"));
                }
                Err(Cause::Unreachable(_)) => assert_eq!(ran, "Nil", "never sent"),
                Err(_) => assert!(ran == "1" || ran == "Nil", "{ran}"),
            }
        }
    }
    assert!(answered >= 20 * 40, "those before the cut");
    assert_eq!(proxy.cuts(), 20);
}

#[tokio::test]
async fn a_stopped_server_is_noticed_under_steady_traffic_and_used_again() {
    let server = RedisServer::start();
    let (node, _) = connect(&server.url()).await;
    node.run(count("a")).await.unwrap();
    server.stop();
    let asked = Clock::System.now();
    assert_eq!(node.run(count("a")).await, Err(Cause::TimedOut(DEADLINE)));
    let took = Clock::System.now().since(asked);
    assert!(took >= DEADLINE && took < 2 * DEADLINE, "{took:?}");
    // Traffic never ceases; still the connection is given up, and then calls fail at once.
    fails(&node, |cause| matches!(cause, Cause::Unreachable(_))).await;
    let took = Clock::System.now().since(asked);
    assert!(took < Duration::from_secs(3), "{took:?}");
    server.resume();
    answers(&node).await;
    eventually_async("it counts again", async || node.run(count("b")).await.is_ok()).await;
}

#[tokio::test]
async fn an_idle_connection_into_a_black_hole_is_replaced_on_both_links() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port()).await;
    let (node, heard) = connect(&proxy.url()).await;
    listen(&node, "a").await;
    proxy.black_hole();
    let before = proxy.connections();
    // No call is made: the heartbeat alone must find out.
    eventually_async("new connections", async || proxy.connections() >= before + 2).await;
    proxy.pass();
    answers(&node).await;
    eventually_async("the listener is told", async || heard.missed() > 0).await;
}

#[tokio::test]
async fn deadlines_shorter_than_the_way_there_and_back_end_no_connection() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port()).await;
    let (node, _) = connect(&proxy.url()).await;
    let way = Duration::from_millis(30);
    listen(&node, "c").await;
    proxy.delay(way, way);
    let before = connections(&server);
    for _ in 0..50 {
        let deadline = Duration::from_millis(20);
        let outcome = node.run(Call { deadline, ..count("a") }).await;
        assert_eq!(outcome, Err(Cause::TimedOut(deadline)));
    }
    eventually_async("all ran", async || counted(&server, "a") == "50").await;
    assert_eq!(connections(&server), before);
    proxy.pass();
    assert_eq!(node.run(count("a")).await, Ok(number(51)), "late replies are nobody else's");
}

#[tokio::test]
async fn a_connection_whose_writes_are_stuck_is_replaced_all_the_same() {
    let server = RedisServer::start();
    let (node, _) = connect(&server.url()).await;
    node.run(call(&WRITE, "list", &["first"])).await.unwrap();
    server.stop();
    // More than all buffers on the way hold, so fred's task stands still in the middle of a write.
    let entry = "x".repeat(4_000_000);
    let stuck = join_all((0..8).map(|_| node.run(call(&WRITE, "list", &[&entry])))).await;
    assert!(stuck.iter().all(Result::is_err));
    fails(&node, |cause| matches!(cause, Cause::Unreachable(_))).await;
    server.resume();
    let back = Clock::System.now();
    answers(&node).await;
    let took = Clock::System.now().since(back);
    assert!(took < Duration::from_secs(3), "{took:?}");
}
