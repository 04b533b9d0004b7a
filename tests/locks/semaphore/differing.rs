//! Clients that use one semaphore with different numbers of permits.

use tokio::time::sleep;

use crate::semaphore::waiting::{until, until_waiting, wait};
use quorate_tests::{
    claims,
    fixture::{Fixture, secs},
};

claims!(everywhere:
    the_smaller_number_counts_for_new_permits_and_nobody_is_thrown_out,
    the_smaller_number_is_forgotten_a_lease_after_it_was_last_asked_with,
    whoever_wants_more_than_others_allow_is_told_and_holds_up_nobody,
);

async fn the_smaller_number_counts_for_new_permits_and_nobody_is_thrown_out(on: Fixture) {
    let client = on.client().await;
    let (large, small) = (client.semaphore("a", 5), client.semaphore("a", 2));
    let mut guards = Vec::new();
    for _ in 0..3 {
        guards.push(large.acquire().await.unwrap());
    }
    on.must_be_refused(small.try_acquire().await);
    let waiting = wait(&client, 2, 1);
    until_waiting(&client, 1).await;
    until(&client, 5, "two count", |seen| (seen.permits, seen.free()) == (Some(2), Some(0))).await;
    // Also for those who ask with the larger number.
    on.must_be_refused(large.try_acquire().await);
    on.release(guards.pop().unwrap().release()).await;
    assert!(guards.iter().all(quorate::PermitGuard::is_held) && !waiting.is_finished());
    for guard in guards.drain(..) {
        on.release(guard.release()).await;
    }
    let entered = waiting.await.unwrap();
    assert!(entered.slot() < 2);
    on.release(entered.release()).await;
    on.until_clean().await;
}

async fn the_smaller_number_is_forgotten_a_lease_after_it_was_last_asked_with(on: Fixture) {
    let client = on.client_with_lease(secs(3)).await;
    let (large, small) = (client.semaphore("a", 3), client.semaphore("a", 1));
    let one = small.acquire().await.unwrap();
    sleep(secs(5)).await;
    on.must_be_refused(large.try_acquire().await);
    on.release(one.release()).await;
    sleep(secs(4)).await;
    on.release(large.acquire_many(3).await.unwrap().release()).await;
}

async fn whoever_wants_more_than_others_allow_is_told_and_holds_up_nobody(on: Fixture) {
    let client = on.client().await;
    let one = client.semaphore("a", 2).acquire().await.unwrap();
    let error = client.semaphore("a", 5).try_acquire_many(3).await.unwrap_err();
    assert!(error.is_no_quorum(), "{error}");
    assert!(error.to_string().contains("3 permits are more than others have asked for"), "{error}");
    let waiting = wait(&client, 5, 3);
    let other = client.semaphore("a", 2).acquire().await.unwrap();
    waiting.abort();
    on.release(one.release()).await;
    on.release(other.release()).await;
}
