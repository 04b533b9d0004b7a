use futures::future::join_all;

use super::*;
use crate::embedded::Fault;

const fn delay(there: u64, back: u64) -> Fault {
    Fault::Delay { there: ms(there), back: ms(back) }
}

#[tokio::test(start_paused = true)]
async fn without_faults_a_request_runs_at_once() {
    let (node, _) = connect(&voter());
    let outcome = node.run(acquire("a:1")).now_or_never();
    assert_eq!(outcome.map(code), Some(1));
}

#[tokio::test(start_paused = true)]
async fn answers_come_back_in_order_whatever_each_takes() {
    let (voter, node, _) = connected();
    let clock = Clock::tokio();
    voter.fault_next(1, delay(0, 50));
    voter.fault_next(2, delay(0, 10));
    let answers = join_all([node.run(acquire("a:1")), node.run(acquire("b:1"))]).await;
    assert_eq!(answers.into_iter().map(code).collect::<Vec<_>>(), [1, 0]);
    assert_eq!(passed(&clock), ms(60), "the second waits behind the first");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_late_for_its_caller_runs_all_the_same() {
    let (voter, node, _) = connected();
    let _slow = voter.fault(delay(500, 0));
    let clock = Clock::tokio();
    assert_eq!(node.run(acquire("a:1")).await, Err(Cause::TimedOut(DEADLINE)));
    assert_eq!(passed(&clock), DEADLINE);
    tokio::time::sleep(ms(301)).await;
    assert_eq!(voter.runs("mutex/acquire"), 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_sent_before_the_connection_closed_runs() {
    let (voter, node, _) = connected();
    let _slow = voter.fault(delay(50, 0));
    let answer = pending(node.run(acquire("a:1")));
    node.close().await;
    assert_eq!(node.run(acquire("b:1")).await, Err(Cause::Unreachable("closed".into())));
    drop(node);
    assert_eq!(code(answer.await), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_voter_runs_what_arrived_in_the_order_of_arrival() {
    let voter = voter();
    let (first, _) = connect(&voter);
    let (second, _) = connect(&voter);
    voter.stop();
    // Sent in the other order of the connections, and asked for in this one.
    let mut later = second.run(acquire("b:1"));
    let late = pending(first.run(acquire("a:1")));
    assert!((&mut later).now_or_never().is_none());
    tokio::time::sleep(ms(100)).await;
    assert_eq!(voter.commands_seen(), 0);
    voter.resume();
    assert_eq!((code(late.await), code(later.await)), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_stopped_voter_answers_nobody_in_time_and_runs_the_request_later() {
    let (voter, node, _) = connected();
    voter.stop();
    assert_eq!(node.run(acquire("a:1")).await, Err(Cause::TimedOut(DEADLINE)));
    assert!(voter.keys().is_empty());
    voter.resume();
    assert_eq!(voter.keys(), ["lock"]);
}
