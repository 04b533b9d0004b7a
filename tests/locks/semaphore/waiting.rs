//! Waiting for a condition on the semaphore `a`, and giving up.

use std::time::Duration;

use quorate::{Error, LockView, PermitGuard, Quorate};
use tokio::task::JoinHandle;

use quorate_support::eventually_async;
use quorate_tests::{
    claims,
    fixture::{Fixture, Stopwatch, ms, secs},
};

claims!(everywhere:
    whoever_gives_up_leaves_nothing_and_lets_the_others_pass,
    a_caller_is_told_who_has_the_permits_and_for_how_long,
);

/// The keys of a semaphore that is held.
pub(crate) const HELD: &[&str] = &["quorate:{a}:semaphore:ends", "quorate:{a}:semaphore:slots"];

/// Waits until a majority says this about the semaphore, of so many permits.
pub(crate) async fn until(
    client: &Quorate,
    permits: u32,
    what: &str,
    says: impl Fn(&LockView) -> bool,
) {
    eventually_async(what, async || {
        client.semaphore("a", permits).inspect().await.is_ok_and(|seen| says(&seen))
    })
    .await;
}

/// Waits until so many wait.
pub(crate) async fn until_waiting(client: &Quorate, count: usize) {
    until(client, 10_000, &format!("{count} wait"), |seen| seen.waiting.len() == count).await;
}

/// One who waits for so many permits.
pub(crate) fn wait(client: &Quorate, permits: u32, wanted: u32) -> JoinHandle<PermitGuard> {
    let semaphore = client.semaphore("a", permits);
    tokio::spawn(async move { semaphore.acquire_many(wanted).await.expect("a majority answers") })
}

/// Releases. Servers on a busy machine may not confirm it in time: then it goes on by itself.
pub(crate) async fn release(on: &Fixture, guard: PermitGuard) {
    match guard.release().await {
        Err(error) if on.is_real() && error.is_unconfirmed() => {}
        released => released.expect("it is held"),
    }
}

async fn must_take(
    on: &Fixture,
    limit: Duration,
    asked: impl Future<Output = Result<Option<PermitGuard>, Error>>,
) {
    let watch = Stopwatch::start();
    assert!(asked.await.expect("a majority answers").is_none(), "all are held throughout");
    let waited = watch.time();
    assert!(waited >= limit && waited <= on.at_most(limit + ms(2)), "{waited:?}");
}

async fn whoever_gives_up_leaves_nothing_and_lets_the_others_pass(on: Fixture) {
    let (ours, theirs) = (on.client().await, on.client().await);
    let (our, their) = (ours.semaphore("a", 2), theirs.semaphore("a", 2));
    let guard = our.acquire().await.unwrap();
    must_take(&on, secs(1), their.acquire_many_within(2, secs(1))).await;
    on.until_only(HELD).await;
    let other = their.try_acquire().await.unwrap().expect("nobody waits any more");
    let waiting = wait(&theirs, 2, 1);
    until_waiting(&ours, 1).await;
    waiting.abort();
    until_waiting(&ours, 0).await;
    release(&on, guard).await;
    release(&on, other).await;
    on.until_clean().await;
}

async fn a_caller_is_told_who_has_the_permits_and_for_how_long(on: Fixture) {
    let client = on.client().await;
    let semaphore = client.semaphore("a", 1);
    let guard = semaphore.acquire().await.unwrap();
    let error = semaphore.acquire_or_busy(ms(50)).await.unwrap_err();
    if on.is_real() && error.is_no_quorum() {
        return;
    }
    assert!(error.is_busy(), "{error}");
    assert_eq!(error.holder(), Some(guard.hold()));
    assert!(error.lease_left().is_some_and(|time| time <= secs(30)), "{error}");
    assert_eq!(error.holder_kind(), Some(quorate::HolderKind::Permit));
    release(&on, guard).await;
}
