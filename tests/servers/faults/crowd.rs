//! More callers at once than servers answer in time: they wait, and none is refused.

use quorate::{Error, Quorate};
use tokio::task::JoinSet;

use quorate_support::eventually_async;
use quorate_tests::scene::{SCRIPTS, are_empty, builder, calls, connect, servers};

const MANY: usize = 2000;

/// Lets everybody in, at the same time.
async fn all_enter<F>(client: &Quorate, enter: impl Fn(&Quorate, usize) -> F)
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for number in 0..MANY {
        tasks.spawn(enter(client, number));
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("no panic").expect("all servers are well");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_callers_at_once_all_get_what_they_want_and_nothing_stays() {
    let servers = servers(3);
    let client = connect(builder(&servers)).await;
    all_enter(&client, |client, number| {
        let mutex = client.mutex(number.to_string());
        async move { mutex.lock().await?.release().await }
    })
    .await;
    // However many want one at once: a lock costs each server an acquire and a release.
    for server in &servers {
        let asked = calls(server, &SCRIPTS);
        assert!(asked < 2 * MANY as u64 + MANY as u64 / 20, "{asked} requests for {MANY} locks");
    }
    all_enter(&client, |client, _| {
        let mutex = client.mutex("one");
        async move { mutex.lock().await?.release().await }
    })
    .await;
    all_enter(&client, |client, _| {
        let mutex = client.fair_mutex("fair");
        async move { mutex.lock().await?.release().await }
    })
    .await;
    all_enter(&client, |client, _| {
        let lock = client.rw_lock("read");
        async move { lock.read().await?.release().await }
    })
    .await;
    drop(client);
    eventually_async("nothing stays", async || are_empty(&servers)).await;
}
