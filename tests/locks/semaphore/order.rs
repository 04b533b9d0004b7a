//! In the order of asking, however many permits each wants.

use std::sync::{Arc, Mutex};

use tokio::task::JoinSet;

use crate::semaphore::waiting::{release, until_waiting, wait};
use quorate_tests::{claims, fixture::Fixture};

claims!(everywhere:
    waiters_enter_in_the_order_of_asking,
    whoever_wants_many_is_not_passed_by_those_who_want_one_and_lets_them_in_by_giving_up,
);

// Twelve that want one or two of two permits: each waits until the one before it stands there.
async fn waiters_enter_in_the_order_of_asking(on: Fixture) {
    let clients = [on.client().await, on.client().await, on.client().await];
    let all = clients[0].semaphore("a", 2).acquire_many(2).await.unwrap();
    let entered = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = JoinSet::new();
    for number in 0..12_usize {
        let client = &clients[number % 3];
        let (semaphore, entered) = (client.semaphore("a", 2), Arc::clone(&entered));
        let wanted = 1 + u32::try_from(number % 2).unwrap();
        tasks.spawn(async move {
            let guard = semaphore.acquire_many(wanted).await.unwrap();
            entered.lock().unwrap().push(number);
            guard.release().await
        });
        until_waiting(&clients[0], number + 1).await;
    }
    release(&on, all).await;
    for released in tasks.join_all().await {
        assert!(released.is_ok() || on.is_real(), "{released:?}");
    }
    assert_eq!(*entered.lock().unwrap(), (0..12).collect::<Vec<_>>());
    on.until_clean().await;
}

// Three of four are given back one by one: none of them goes to those behind.
async fn whoever_wants_many_is_not_passed_by_those_who_want_one_and_lets_them_in_by_giving_up(
    on: Fixture,
) {
    let (ours, theirs) = (on.client().await, on.client().await);
    for gives_up in [false, true] {
        let mut guards = Vec::new();
        for _ in 0..4 {
            guards.push(ours.semaphore("a", 4).acquire().await.unwrap());
        }
        let big = wait(&theirs, 4, 4);
        until_waiting(&ours, 1).await;
        let small = wait(&ours, 4, 1);
        until_waiting(&ours, 2).await;
        for guard in guards.split_off(1) {
            assert!(!big.is_finished() && !small.is_finished());
            release(&on, guard).await;
        }
        // Three are free, and kept for who has asked first.
        on.must_be_refused(ours.semaphore("a", 4).try_acquire().await);
        if gives_up {
            big.abort();
            release(&on, small.await.unwrap()).await;
            assert!(guards[0].is_held());
            release(&on, guards.remove(0)).await;
        } else {
            assert!(!big.is_finished() && !small.is_finished());
            release(&on, guards.remove(0)).await;
            let big = big.await.unwrap();
            assert!(!small.is_finished(), "it asked later");
            release(&on, big).await;
            release(&on, small.await.unwrap()).await;
        }
        on.until_clean().await;
    }
}
