use std::{pin::pin, sync::Arc};

use futures::{FutureExt, future::join_all, poll};

use super::{Call, Cause, RedisServer, WRITE, call, connect, connections, count};
use crate::{
    scripts::mutex,
    voter::{
        lock,
        single::{Departed, Order},
    },
};
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

fn acquire(hold: &str) -> Call {
    Call::of(
        &mutex::ACQUIRE,
        &["a", "queue", "alive", "fence"],
        &["calls:", "5000", "", "5000", hold, "", ""],
    )
}

fn release(hold: &str) -> Call {
    Call::of(&mutex::RELEASE, &["a", "queue", "alive"], &["calls:", "", hold, "0", "", ""])
}

/// Which of its requests may leave again.
fn open(departed: &Departed<'_>, call: &Call) -> Vec<usize> {
    let mut answers = call.all_failed(&Cause::Rejected("NOSCRIPT".into()));
    let open = departed.still_latest((0..answers.len()).collect(), &mut answers);
    for (at, answer) in answers.iter().enumerate() {
        let is_told = format!("{answer:?}").contains("overtaken");
        assert_eq!(is_told, !open.contains(&at), "{answer:?}");
    }
    open
}

#[test]
fn what_a_later_request_of_its_hold_has_overtaken_never_goes_again() {
    let (order, acquire, release) = (Order::default(), acquire("c:1"), release("c:1"));
    let first = order.leave(&acquire);
    assert_eq!(open(&first, &acquire), [0]);
    let second = order.leave(&release);
    assert_eq!((open(&first, &acquire), open(&second, &release)), (vec![], vec![0]));
    drop(second);
    assert!(open(&first, &acquire).is_empty(), "also where that was answered before");
    drop(first);
    assert!(lock(&order.latest).is_empty(), "nothing is remembered of what is answered");
}

#[test]
fn what_other_holds_sent_since_is_no_matter() {
    let (order, release, acquire) = (Order::default(), release("c:1"), acquire("c:2"));
    let released = order.leave(&release);
    let _acquired = order.leave(&acquire);
    assert_eq!(open(&released, &release), [0]);
}

#[test]
fn an_attempt_does_not_go_again_once_its_place_has_asked_or_left_since() {
    let (order, acquire, release) = (Order::default(), acquire("c:1.1"), release("c:1.2"));
    let attempt = order.leave(&acquire);
    let _left = order.leave(&release);
    assert!(open(&attempt, &acquire).is_empty());
}

#[test]
fn of_several_requests_only_those_go_again_that_were_not_overtaken() {
    let order = Order::default();
    let keys = ["b", "queue", "alive", "fence", "a", "queue", "alive", "fence"];
    let both = Call::of(
        &mutex::ACQUIRE,
        &keys,
        &["calls:", "5000", "", "5000", "c:2", "", "", "c:1", "", ""],
    );
    let (departed, release) = (order.leave(&both), release("c:1"));
    let _released = order.leave(&release);
    assert_eq!(open(&departed, &both), [0]);
}
