//! Clients that lose a race for a mutex wait in a queue: none starves, and all together ask little.

use quorate_tests::prelude::*;

claims!(everywhere of both:
    a_client_that_takes_the_lock_again_and_again_starves_no_other,
);

/// Two of a client's tasks take turns so often.
const TURNS: usize = 60;

// Each release wakes both clients. The other task of the first one hears it sooner, so the second
// client loses the first race; then it stands in the queue, which nobody passes.
async fn a_client_that_takes_the_lock_again_and_again_starves_no_other(on: Fixture) {
    let (busy, other) = (on.client().await, on.client().await);
    let guard = busy.mutex("a").lock().await.unwrap();
    let mut tasks = JoinSet::new();
    for _ in 0..2 {
        let mutex = busy.mutex("a");
        tasks.spawn(async move {
            for _ in 0..TURNS {
                turn(mutex.clone()).await;
            }
        });
    }
    let waiter = tokio::spawn(other.mutex("a").lock());
    on.until_queued().await;
    guard.release().await.unwrap();
    let guard = waiter.await.unwrap().unwrap();
    assert!(!tasks.is_empty() && tasks.try_join_next().is_none(), "no task has had all its turns");
    guard.release().await.unwrap();
    tasks.join_all().await;
    on.until_clean().await;
}

/// Everybody asks at once, each with a client of its own.
async fn crowd(count: usize) -> (u64, Duration) {
    let on = Fixture::embedded(3);
    let clients = join_all((0..count).map(|_| on.client())).await;
    let watch = Stopwatch::start();
    let waiters: JoinSet<_> = clients.iter().map(|client| turn(client.mutex("a"))).collect();
    waiters.join_all().await;
    let took = watch.time();
    let asked = |script| on.runs(script).unwrap().into_iter().max().unwrap();
    (asked("mutex/acquire"), took)
}

// However many they are: if each release woke all, thirty would ask some 15 times for each grant,
// and three hundred 150 times.
#[tokio::test(start_paused = true)]
async fn the_more_clients_want_a_lock_the_less_each_is_woken() {
    for count in [30, if cfg!(feature = "full") { 3_000 } else { 300 }] {
        let (asked, took) = crowd(count).await;
        let most = 9 * count as u64;
        assert!(asked <= most, "{count} clients asked a voter {asked} times");
        assert!(took < secs(30), "{took:?}");
    }
}
