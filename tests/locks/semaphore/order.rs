//! In the order of asking, however many permits each wants.

use crate::semaphore::waiting::{until_waiting, wait};
use quorate_tests::{claims, fixture::Fixture};

claims!(everywhere:
    whoever_wants_many_is_not_passed_by_those_who_want_one_and_lets_them_in_by_giving_up,
);

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
            on.release(guard.release()).await;
        }
        // Three are free, and kept for who has asked first.
        on.must_be_refused(ours.semaphore("a", 4).try_acquire().await);
        if gives_up {
            big.abort();
            on.release(small.await.unwrap().release()).await;
            assert!(guards[0].is_held());
            on.release(guards.remove(0).release()).await;
        } else {
            assert!(!big.is_finished() && !small.is_finished());
            on.release(guards.remove(0).release()).await;
            let big = big.await.unwrap();
            assert!(!small.is_finished(), "it asked later");
            on.release(big.release()).await;
            on.release(small.await.unwrap().release()).await;
        }
        on.until_clean().await;
    }
}
