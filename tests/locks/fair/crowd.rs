//! Many waiters.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio::{task::JoinSet, time::sleep};

use crate::fair::queue::{Waiters, release};
use quorate_tests::{
    claims,
    fixture::{Fixture, ms, secs},
};

claims!(everywhere of FairMutex: five_hundred_waiters_all_enter, who_comes_and_goes_leaves_nothing);
claims!(inside of FairMutex: a_hand_over_costs_the_same_however_many_wait);

async fn five_hundred_waiters_all_enter(on: Fixture) {
    let (inside, entered) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let on = Arc::new(on);
    // Each refreshes its place by itself: on a busy machine five servers cannot serve 500 of them.
    let count = on.rounds(500, (500, 100));
    let mut clients = Vec::new();
    // On a busy machine servers need longer for so many than a tenth of a lease of 5 s.
    let lease = if on.is_real() { secs(30) } else { secs(5) };
    for _ in 0..5 {
        clients.push(on.client_with_lease(lease).await);
    }
    let mut waiters = JoinSet::new();
    for number in 0..count {
        let lock = clients[usize::try_from(number % 5).unwrap()].mutex("a");
        let (inside, entered, on) = (Arc::clone(&inside), Arc::clone(&entered), Arc::clone(&on));
        waiters.spawn(async move {
            let guard = lock.lock().await.unwrap();
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "one at a time");
            sleep(ms(1)).await;
            assert!(guard.is_held());
            inside.fetch_sub(1, Ordering::SeqCst);
            entered.fetch_add(1, Ordering::SeqCst);
            on.release(guard).await;
        });
    }
    waiters.join_all().await;
    assert_eq!(entered.load(Ordering::SeqCst), count);
    on.until_clean().await;
}

async fn who_comes_and_goes_leaves_nothing(on: Fixture) {
    let client = on.client().await;
    for _ in 0..3 {
        let guard = client.mutex("a").lock().await.unwrap();
        let mut waiters = Waiters::of(&on).await;
        waiters.come(client.mutex("a"), release).await;
        on.release(guard).await;
        waiters.must_enter_in_order().await;
        on.until_clean().await;
    }
}

// Ten deep or a hundred: the release, one bid of the next one, and nothing else. The waiters have
// just refreshed their places, and do so again a second later.
async fn a_hand_over_costs_the_same_however_many_wait(on: Fixture) {
    for crowd in [10, 100] {
        let client = on.client().await;
        let guard = client.mutex("a").lock().await.unwrap();
        let mut waiters = Waiters::of(&on).await;
        for _ in 0..crowd {
            waiters.come(client.mutex("a"), release).await;
        }
        let runs = |script: &str| on.runs(script).expect("they count");
        let before = runs("mutex/acquire");
        // In paused time the whole line passes before the next refresh is due.
        on.release(guard).await;
        waiters.must_enter_in_order().await;
        for (voter, before) in before.into_iter().enumerate() {
            assert_eq!(runs("mutex/acquire")[voter] - before, crowd, "of {crowd}, voter {voter}");
        }
        on.until_clean().await;
    }
}
