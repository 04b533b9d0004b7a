//! Many waiters.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio::{task::JoinSet, time::sleep};

use crate::{
    claims,
    fixture::{Fixture, ms, secs},
    queue::{Waiters, release},
};

claims!(everywhere: five_hundred_waiters_all_enter, who_comes_and_goes_leaves_nothing);
claims!(inside: a_hand_over_costs_the_same_however_many_wait);

// CONFORMANCE 17
async fn five_hundred_waiters_all_enter(on: Fixture) {
    let (inside, entered) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let count = on.rounds(500, (500, 500));
    let mut clients = Vec::new();
    for _ in 0..5 {
        clients.push(on.connect(on.builder().lease(secs(5)).voter_deadline(ms(500))).await);
    }
    let mut waiters = JoinSet::new();
    for number in 0..count {
        let lock = clients[usize::try_from(number % 5).unwrap()].mutex("a");
        let (inside, entered) = (Arc::clone(&inside), Arc::clone(&entered));
        waiters.spawn(async move {
            let guard = lock.lock().await.unwrap();
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "one at a time");
            sleep(ms(1)).await;
            assert!(guard.is_held());
            inside.fetch_sub(1, Ordering::SeqCst);
            entered.fetch_add(1, Ordering::SeqCst);
            guard.release().await.unwrap();
        });
    }
    waiters.join_all().await;
    assert_eq!(entered.load(Ordering::SeqCst), count);
    on.until_clean().await;
}

// CONFORMANCE 21
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
        let before = runs("fair/acquire");
        // In paused time the whole line passes before the next refresh is due.
        on.release(guard).await;
        waiters.must_enter_in_order().await;
        for (voter, before) in before.into_iter().enumerate() {
            assert_eq!(runs("fair/acquire")[voter] - before, crowd, "of {crowd}, voter {voter}");
        }
        on.until_clean().await;
    }
}
