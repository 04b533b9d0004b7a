//! Waiters in processes of their own, over real servers.

use std::path::Path;

use quorate::VoterView;

use crate::fair::queue::until_waiting;
use quorate_support::{Worker, eventually_async};
use quorate_tests::{
    fixture::{Fixture, Stopwatch, secs},
    kind::{Client, Kind},
};

/// A process that waits for `a`.
fn worker(on: &Fixture) -> Worker {
    Worker::start(
        Path::new(env!("CARGO_BIN_EXE_turns")),
        ["a".to_owned()].into_iter().chain(on.urls()),
    )
}

/// So many processes, one behind the other.
async fn queue_up(on: &Fixture, client: &Client, count: usize) -> Vec<Worker> {
    let mut workers = Vec::new();
    for number in 1..=count {
        workers.push(worker(on));
        until_waiting(client, number).await;
    }
    workers
}

/// Lets each of them enter and leave; whoever is behind says nothing before.
fn must_enter_in_order(workers: Vec<Worker>) {
    let mut before = String::new();
    for mut worker in workers {
        let entered = worker.says();
        assert!(entered.starts_with("entered ") && entered != before, "{entered}");
        worker.leave();
        before = entered;
    }
}

// One voter after the other is killed and comes back empty, while they wait. A place stands on the
// other four, and is told to the empty one again; so is the hold, at once. The lock is given up
// when the processes count the grants of all voters again: the longest lease after the last of them
// has seen the last restart.
#[tokio::test(flavor = "multi_thread")]
async fn processes_keep_their_order_while_voters_restart_empty_one_by_one() {
    let mut on = Fixture::real(5).of_kind(Kind::FairMutex);
    let client = on.client().await;
    let guard = client.mutex("a").lease(secs(6)).lock().await.unwrap();
    let workers = queue_up(&on, &client, 5).await;
    for voter in 0..on.voters() {
        on.kill(voter);
        on.restart(voter);
        eventually_async("all stand on every voter again", async || {
            let seen = client.mutex("a").inspect().await;
            let is_back = |view: &VoterView| {
                let Ok(state) = &view.state else { return false };
                let is_held = state.holders.iter().any(|held| held.hold == *guard.hold());
                is_held && state.waiting.len() == 5
            };
            seen.is_ok_and(|seen| seen.voters.iter().all(is_back))
        })
        .await;
    }
    Stopwatch::start().sleep_until(secs(31)).await;
    assert!(guard.is_held());
    on.release(guard.release()).await;
    must_enter_in_order(workers);
    on.until_clean().await;
}
