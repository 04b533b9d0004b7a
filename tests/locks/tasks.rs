//! The tasks of a client end once nobody has it any more, and nothing is owed.

use quorate_tests::prelude::*;
use tokio::runtime::Handle;

/// How long it takes after `trouble` until all tasks have ended of a client that had a lock, when
/// nobody has the client any more.
async fn time_to_end(
    lease: Duration,
    trouble: impl AsyncFnOnce(&Quorate, &[EmbeddedVoter]),
) -> Duration {
    let voters = embedded::voters(3);
    let builder = Quorate::builder().embedded(&voters);
    let client = builder.lease(lease).longest_lease(lease).connect().await.expect("all are up");
    let guard = client.mutex("a").lock().await.expect("all are up");
    trouble(&client, &voters).await;
    drop((client, guard));
    let watch = Stopwatch::start();
    let tasks = || Handle::current().metrics().num_alive_tasks();
    until!("no task is left", tasks() == 0);
    watch.time()
}

#[tokio::test(start_paused = true)]
async fn the_tasks_of_a_client_end_when_nobody_has_it_any_more() {
    let time = time_to_end(secs(30), async |_, _| {}).await;
    assert!(time < secs(5), "nothing is owed any more: {time:?}");
}

// The quarantine ends after a lease of two minutes.
#[tokio::test(start_paused = true)]
async fn no_task_stays_for_a_quarantine() {
    let time = time_to_end(secs(120), async |client, voters| {
        voters[0].restart_empty();
        let is_out = async || client.status().await.voters[0].quarantine.is_some();
        eventually_async("the voter is in quarantine", is_out).await;
    });
    let time = time.await;
    assert!(time < secs(5), "{time:?}");
}

// The voters never answer to the release: it is given up at the end of the lease.
#[tokio::test(start_paused = true)]
async fn the_tasks_of_a_client_end_though_the_voters_are_gone() {
    let lease = secs(4);
    let gone = async |_: &Quorate, voters: &[EmbeddedVoter]| {
        voters.iter().for_each(EmbeddedVoter::stop);
    };
    let time = time_to_end(lease, gone).await;
    assert!(time < 2 * lease, "{time:?}");
}
