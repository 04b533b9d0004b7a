use std::{future::poll_fn, pin::pin, sync::Arc, task::Poll, time::Duration};

use tokio::task::coop;

use super::{Call, Cause, Node, RedisServer, call, connect, count, number};
use crate::scripts::mutex;
use quorate_support::{Reply, eventually_async};

fn acquire() -> Call {
    call(&mutex::ACQUIRE, "q:{lock}", &["calls:", "5000", "", "5000", "c:1", "", ""])
}

fn release() -> Call {
    call(&mutex::RELEASE, "q:{lock}", &["calls:", "", "c:1", "0", "", ""])
}

/// A server that has just forgotten two scripts which the node believes it has.
async fn forgetful() -> (RedisServer, Arc<dyn Node>) {
    let server = RedisServer::start();
    let (node, _) = connect(&server.url()).await;
    node.run(acquire()).await.unwrap();
    node.run(release()).await.unwrap();
    server.command(&["SCRIPT", "FLUSH"]).unwrap();
    (server, node)
}

// Both leave together and by hash: NOSCRIPT is the answer to both, and only the later one, an undo
// or the next attempt, may be sent again.
#[tokio::test]
async fn what_was_not_known_and_is_overtaken_does_not_run_behind_what_followed() {
    let is_overtaken =
        |outcome| matches!(outcome, Err(Cause::Rejected(why)) if why.text().contains("overtaken"));
    let (server, node) = forgetful().await;
    let (acquired, released) = tokio::join!(node.run(acquire()), node.run(release()));
    assert!(is_overtaken(acquired));
    assert_eq!(released.unwrap().code(), 0, "sent again, found nothing");
    assert!(server.keys().is_empty());

    let (server, node) = forgetful().await;
    let (released, acquired) = tokio::join!(node.run(release()), node.run(acquire()));
    assert!(is_overtaken(released));
    assert_eq!(acquired.unwrap().code(), 1);
    assert_eq!(server.keys(), ["q:{lock}"]);
}

/// What it would answer is not waited for: a request leaves, in order, with its first poll, also
/// where tokio wants the task to yield.
#[tokio::test]
async fn a_request_leaves_at_once_though_the_budget_of_its_task_is_spent() {
    let server = RedisServer::start();
    let (node, _) = connect(&server.url()).await;
    poll_fn(|context| {
        while coop::has_budget_remaining() {
            let _ = pin!(coop::consume_budget()).poll(context);
        }
        drop(node.run(count("a")));
        Poll::Ready(())
    })
    .await;
    let ran = async || server.command(&["GET", "a"]) == Ok(Reply::Text("1".into()));
    eventually_async("it ran", ran).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn however_often_scripts_are_flushed_calls_run_once_and_no_acquire_behind_its_release() {
    let server = RedisServer::start();
    let (node, _) = connect(&server.url()).await;
    let callers = (0..32).map(|caller| {
        let node = node.clone();
        tokio::spawn(async move {
            let mut granted = 0;
            let run = |call| node.run(Call { deadline: Duration::from_secs(10), ..call });
            for round in 0..100 {
                let (key, hold) = (format!("lock {caller}"), format!("{caller}:{round}"));
                let acquired = run(call(
                    &mutex::ACQUIRE,
                    &key,
                    &["calls:", "60000", "", "60000", &hold, "", ""],
                ));
                let release = ["calls:", "", &hold, "0", "", ""];
                let released = run(call(&mutex::RELEASE, &key, &release));
                let (acquired, released) = tokio::join!(acquired, released);
                released.unwrap();
                granted += u32::from(acquired.is_ok());
                // Alone with its key, so no later request can have overtaken it.
                let counted = run(count(&format!("counter {caller}"))).await;
                assert_eq!(counted, Ok(number(round + 1)));
            }
            granted
        })
    });
    let callers: Vec<_> = callers.collect();
    while !callers.iter().all(tokio::task::JoinHandle::is_finished) {
        server.command(&["SCRIPT", "FLUSH"]).unwrap();
        tokio::task::yield_now().await;
    }
    let mut granted = 0;
    for caller in callers {
        granted += caller.await.unwrap();
    }
    assert!(granted > 0 && granted < 3200, "some met NOSCRIPT, not all: {granted}");
    assert!(server.keys().iter().all(|key| key.starts_with("counter")), "{:?}", server.keys());
}
