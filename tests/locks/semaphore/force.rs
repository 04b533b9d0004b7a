//! What operators end by force.

use quorate::{HoldId, PermitGuard};

use crate::semaphore::waiting::{release, until_waiting, wait};
use quorate_support::eventually_async;
use quorate_tests::{
    claims,
    fixture::{Fixture, secs},
};

claims!(everywhere:
    one_hold_ends_by_force_and_no_other,
    all_holds_end_by_force,
    a_semaphore_that_is_spoilt_can_be_cleared,
);

/// Not that its votes were gone: what was ended by force is marked.
async fn must_end_by_force(guard: &PermitGuard) {
    let why = guard.lost().await;
    assert!(why.is_lost() && why.to_string().contains("ended by force"), "{why}");
}

async fn one_hold_ends_by_force_and_no_other(on: Fixture) {
    let client = on.client_with_lease(secs(3)).await;
    let semaphore = client.semaphore("a", 2);
    let (one, other) = (semaphore.acquire().await.unwrap(), semaphore.acquire().await.unwrap());
    let waiting = wait(&client, 2, 1);
    until_waiting(&client, 1).await;
    semaphore.force_release_hold(one.hold()).await.unwrap();
    let next = waiting.await.unwrap();
    must_end_by_force(&one).await;
    assert!(other.is_held() && next.is_held());
    let error = semaphore.force_release_hold(&"nobody:1".parse::<HoldId>().unwrap()).await;
    assert!(error.unwrap_err().is_not_holding());
    release(&on, other).await;
    release(&on, next).await;
}

async fn all_holds_end_by_force(on: Fixture) {
    let client = on.client_with_lease(secs(3)).await;
    let semaphore = client.semaphore("a", 3);
    let (one, two) = (semaphore.acquire().await.unwrap(), semaphore.acquire_many(2).await.unwrap());
    assert!(semaphore.force_release().await.unwrap());
    must_end_by_force(&one).await;
    must_end_by_force(&two).await;
    assert!(!semaphore.force_release().await.unwrap());
    release(&on, semaphore.acquire_many(3).await.unwrap()).await;
}

async fn a_semaphore_that_is_spoilt_can_be_cleared(on: Fixture) {
    let client = on.client().await;
    let semaphore = client.semaphore("a", 2);
    for voter in 0..on.voters() {
        on.command(voter, &["SET", "quorate:{a}:semaphore:slots", "text"]);
    }
    assert!(semaphore.try_acquire().await.unwrap_err().is_no_quorum());
    assert!(semaphore.force_clear().await.unwrap());
    assert!(!semaphore.force_clear().await.unwrap());
    let guard = semaphore.acquire_many(2).await.unwrap();
    eventually_async("a majority says that nothing is free", async || {
        semaphore.inspect().await.is_ok_and(|seen| seen.free() == 0)
    })
    .await;
    release(&on, guard).await;
}
