use std::{future::poll_fn, pin::pin, sync::Arc, task::Poll, time::Duration};

use tokio::task::coop;

use super::{Call, Cause, Node, RedisServer, call, connect, count, number};
use crate::{proto::Verdict, scripts::mutex};
use quorate_support::{Reply, eventually_async};

#[tokio::test]
async fn scripts_answer_also_by_their_hash() {
    let server = RedisServer::start();
    let (node, _) = connect(&server.url()).await;
    for expected in 1..=3 {
        assert_eq!(node.run(count("a")).await, Ok(number(expected)));
    }
    let info = server.command(&["INFO", "commandstats"]).unwrap();
    let info = format!("{info:?}");
    assert!(info.contains("cmdstat_eval:calls=1,"), "{info}");
    assert!(info.contains("cmdstat_evalsha:calls=2,"), "{info}");
}

#[tokio::test]
async fn an_acquired_mutex_is_refused_to_others_and_released() {
    let server = RedisServer::start();
    let (node, _) = connect(&server.url()).await;
    let ask = async |script, args: &[&str]| node.run(call(script, "q:{lock}", args)).await.unwrap();
    assert_eq!(
        ask(&mutex::ACQUIRE, &["calls:", "5000", "", "5000", "c:1", "", ""]).await.code(),
        1
    );
    let refused = ask(&mutex::ACQUIRE, &["calls:", "5000", "", "5000", "c:2", "", ""]).await;
    assert!(matches!(refused.whose(), Verdict::Refused { by, .. } if by.as_str() == "c:1"));
    assert_eq!(ask(&mutex::RELEASE, &["calls:", "", "c:1", "0", "", ""]).await.code(), 1);
    assert!(server.keys().is_empty());
}

#[tokio::test]
async fn an_error_reply_is_a_rejection_with_its_text() {
    let server = RedisServer::start();
    let (node, _) = connect(&server.url()).await;
    server.command(&["SET", "a", "text"]).unwrap();
    let Err(Cause::Rejected(text)) = node.run(count("a")).await else { panic!("rejected") };
    assert!(text.contains("not an integer"), "{text}");
}

#[tokio::test]
async fn a_run_id_is_another_after_a_restart() {
    let mut server = RedisServer::start();
    let (node, _) = connect(&server.url()).await;
    let before = node.identify().await.unwrap();
    assert_eq!(before.run_id.len(), 40);
    assert_eq!(node.identify().await.unwrap(), before);
    server.restart();
    super::answers(&node).await;
    assert_ne!(node.identify().await.unwrap(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flushed_scripts_under_load_run_again_and_each_call_runs_once() {
    let server = RedisServer::start();
    let (node, _) = connect(&server.url()).await;
    let callers = (0..32).map(|caller| {
        let node = node.clone();
        tokio::spawn(async move {
            let mut ran = 0;
            for _ in 0..200 {
                let deadline = Duration::from_secs(10);
                let call = Call { deadline, ..count(&format!("counter:{caller}")) };
                ran += 1;
                // Alone with its key, so no later request can have overtaken it.
                assert_eq!(node.run(call).await, Ok(number(ran)));
            }
        })
    });
    let callers: Vec<_> = callers.collect();
    let mut flushes = 0;
    while !callers.iter().all(tokio::task::JoinHandle::is_finished) {
        server.command(&["SCRIPT", "FLUSH"]).unwrap();
        flushes += 1;
        tokio::task::yield_now().await;
    }
    for caller in callers {
        caller.await.unwrap();
    }
    assert!(flushes > 10);
    let info = format!("{:?}", server.command(&["INFO", "errorstats"]).unwrap());
    assert!(info.contains("errorstat_NOSCRIPT"), "the flushes met calls under way: {info}");
}

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

#[tokio::test]
async fn an_acquire_that_was_not_known_and_overtaken_by_its_undo_leaves_nothing() {
    let (server, node) = forgetful().await;
    // Both leave together and by hash: NOSCRIPT is the answer to both.
    let (acquired, released) = tokio::join!(node.run(acquire()), node.run(release()));
    assert!(matches!(acquired, Err(Cause::Rejected(text)) if text.contains("overtaken")));
    assert_eq!(released.unwrap().code(), 0, "sent again, found nothing");
    assert!(server.keys().is_empty());
}

#[tokio::test]
async fn an_undo_that_was_not_known_and_overtaken_by_the_next_attempt_takes_nothing() {
    let (server, node) = forgetful().await;
    let (released, acquired) = tokio::join!(node.run(release()), node.run(acquire()));
    assert!(matches!(released, Err(Cause::Rejected(text)) if text.contains("overtaken")));
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
async fn no_acquire_lands_behind_its_release_however_often_scripts_are_flushed() {
    let server = RedisServer::start();
    let (node, _) = connect(&server.url()).await;
    let callers = (0..32).map(|caller| {
        let node = node.clone();
        tokio::spawn(async move {
            let mut granted = 0;
            for round in 0..100 {
                let (key, hold) = (format!("lock {caller}"), format!("{caller}:{round}"));
                let ask = |script, args: &[&str]| {
                    let deadline = Duration::from_secs(10);
                    node.run(Call { deadline, ..call(script, &key, args) })
                };
                let acquired =
                    ask(&mutex::ACQUIRE, &["calls:", "60000", "", "60000", &hold, "", ""]);
                let released = ask(&mutex::RELEASE, &["calls:", "", &hold, "0", "", ""]);
                let (acquired, released) = tokio::join!(acquired, released);
                released.unwrap();
                granted += u32::from(acquired.is_ok());
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
    assert_eq!(server.keys(), Vec::<String>::new());
}
