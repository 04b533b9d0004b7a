use std::{pin::pin, sync::Arc};

use futures::{FutureExt, future::join_all, poll};

use super::{Call, RedisServer, WRITE, call, connect, connections, count};
use quorate_support::eventually_async;

const LONG: std::time::Duration = std::time::Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_requests_run_in_the_order_in_which_they_were_sent() {
    let server = RedisServer::start();
    let (node, _) = connect(&server.url()).await;
    let requests = (0..1000)
        .map(|n: u32| node.run(Call { deadline: LONG, ..call(&WRITE, "list", &[&n.to_string()]) }));
    // Sent in one order and first polled in the opposite one.
    let mut requests: Vec<_> = requests.collect();
    requests.reverse();
    join_all(requests).await.into_iter().for_each(|outcome| drop(outcome.unwrap()));
    let written = server.command(&["LRANGE", "list", "0", "-1"]).unwrap();
    let expected = (0..1000).map(|n: u32| quorate_support::Reply::Text(n.to_string()));
    assert!(written == quorate_support::Reply::List(expected.collect()), "{written:?}");
}

#[tokio::test]
async fn a_request_runs_though_its_future_is_dropped() {
    let server = RedisServer::start();
    let (node, _) = connect(&server.url()).await;
    drop(node.run(count("never polled")));
    {
        let mut request = pin!(node.run(count("polled")));
        assert!(poll!(request.as_mut()).is_pending());
    }
    eventually_async("both have run", async || server.keys() == ["never polled", "polled"]).await;
}

#[tokio::test]
async fn a_node_that_is_closed_or_dropped_answers_at_once_and_has_no_connections_and_no_tasks() {
    let server = RedisServer::start();
    for closes in [true, false] {
        let (node, _) = connect(&server.url()).await;
        if closes {
            node.close().await;
            assert!(super::is_unreachable(&node.run(count("a")).await, ""));
            assert!(node.subscribe("c".into()).await.is_err());
            assert!(node.close().now_or_never().is_some(), "closing again does nothing");
        } else {
            let weak = Arc::downgrade(&node);
            drop(node);
            assert!(weak.upgrade().is_none());
        }
        let metrics = tokio::runtime::Handle::current().metrics();
        eventually_async("no task is left", async || metrics.num_alive_tasks() == 0).await;
        let gone = async || connections(&server).is_empty();
        eventually_async("no connection is left", gone).await;
    }
}
