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

// Who is not the next would have to say so while another is asked, and then enter twice: each says
// `entered` only once it holds the lock, and the one before has left.
#[tokio::test(flavor = "multi_thread")]
async fn ten_processes_enter_in_the_order_of_coming() {
    let on = Fixture::real(5).of_kind(Kind::FairMutex);
    let client = on.client().await;
    let guard = client.mutex("a").lock().await.unwrap();
    let workers = queue_up(&on, &client, 10).await;
    on.release(guard).await;
    must_enter_in_order(workers);
    on.until_clean().await;
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
    on.release(guard).await;
    must_enter_in_order(workers);
    on.until_clean().await;
}

// A minority stands still while the others enter, and a process that comes then is the last.
#[tokio::test(flavor = "multi_thread")]
async fn processes_keep_their_order_while_a_minority_of_the_voters_is_stopped() {
    let on = Fixture::real(5).of_kind(Kind::FairMutex);
    let client = on.client().await;
    let guard = client.mutex("a").lock().await.unwrap();
    let mut workers = queue_up(&on, &client, 4).await;
    on.stop(0);
    on.stop(3);
    workers.push(worker(&on));
    until_waiting(&client, 5).await;
    on.release(guard).await;
    must_enter_in_order(workers);
    on.resume(0);
    on.resume(3);
    on.until_clean().await;
}

// The default deadline of 5 s, and as long again for a busy machine; meanwhile each of the two asks
// three times in 5 s, and whoever spins would ask thousands of times.
#[tokio::test(flavor = "multi_thread")]
async fn when_the_process_at_the_head_is_killed_the_next_one_enters_and_nobody_spins() {
    let on = Fixture::real(5).of_kind(Kind::FairMutex);
    let client = on.client().await;
    let guard = client.mutex("a").lock().await.unwrap();
    let mut workers = queue_up(&on, &client, 3).await;
    let mut first = workers.remove(0);
    first.kill();
    let (before, watch) = (on.scripts_run(), Stopwatch::start());
    on.release(guard).await;
    must_enter_in_order(workers);
    let (asked, took) = (on.scripts_run() - before, watch.time());
    assert!(took < secs(10), "{took:?}");
    assert!(asked < 200, "{asked} scripts on five voters");
    on.until_clean().await;
}
