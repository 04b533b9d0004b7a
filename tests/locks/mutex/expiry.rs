//! Leases that end, and leases that are renewed.

use quorate_tests::{doomed::Doomed, prelude::*};

claims!(everywhere of both:
    a_waiter_enters_right_after_a_fixed_lease_without_any_message,
    when_a_holder_dies_the_lock_is_free_within_its_lease,
);
claims!(minority of both: a_renewed_lock_outlives_ten_leases_with_jitter_and_re_entry);
claims!(inside of both: a_dead_holders_lease_counts_from_its_last_renewal);

/// A client that asks again only for a reason: no message and no poll within a test's time.
async fn waiter(on: &Fixture) -> JoinHandle<Duration> {
    let quorum = on.connect(on.builder().poll_interval(secs(600))).await;
    let watch = Stopwatch::start();
    tokio::spawn(async move {
        let guard = quorum.mutex("a").lock().await.unwrap();
        let waited = watch.time();
        guard.release().await.unwrap();
        waited
    })
}

/// A hold of this mutex that is left to its lease.
async fn hold(
    on: &Fixture,
    name: &'static str,
    lease: Duration,
    renewed: bool,
) -> Doomed<MutexGuard> {
    Doomed::take(on, lease, async move |client| {
        let mutex = client.mutex(name);
        let mutex = if renewed { mutex.lease(lease) } else { mutex.lease_fixed(lease) };
        mutex.lock().await.expect("it is free")
    })
    .await
}

/// The holder says nothing after its death, and the waiter does not poll: what lets it enter is
/// the end of the lease, which a voter's refusal tells.
async fn enters_after_death(on: Fixture, lease: Duration, renewed: bool) {
    let before = Stopwatch::start();
    let holder = hold(&on, "a", lease, renewed).await;
    let after = Stopwatch::start();
    let waiter = waiter(&on).await;
    on.until_queued().await;
    holder.die();
    timeout(on.at_most(lease), waiter).await.expect("it enters").unwrap();
    assert!(before.time() >= trusted(lease), "two hold it: {:?}", before.time());
    // An expiry has a resolution of a millisecond, and the waiter asks two after it.
    assert!(after.time() <= on.at_most(lease + ms(4)), "{:?}", after.time());
    on.until_clean().await;
}

async fn a_waiter_enters_right_after_a_fixed_lease_without_any_message(on: Fixture) {
    enters_after_death(on, secs(2), false).await;
}

// Dead before its first renewal, at a third of the lease.
async fn when_a_holder_dies_the_lock_is_free_within_its_lease(on: Fixture) {
    enters_after_death(on, secs(2), true).await;
}

// Renewed every 2 s, last at 10 s: the 6 s count from there, and so does the waiter. One that
// counted from the first request, or from the death, would enter at 6 s or at 17 s.
async fn a_dead_holders_lease_counts_from_its_last_renewal(on: Fixture) {
    let start = Stopwatch::start();
    let holder = hold(&on, "a", secs(6), true).await;
    start.sleep_until(ms(10_500)).await;
    let waiter = waiter(&on).await;
    start.sleep_until(secs(11)).await;
    holder.die();
    waiter.await.unwrap();
    let entered = start.time();
    assert!(entered >= secs(10) + trusted(secs(6)) && entered <= ms(16_004), "{entered:?}");
}

// Ten times the lease of 2 s, while one voter takes 0 to 30 ms longer to answer, changing forty
// times. Somebody else tries once per lease, and the owner enters again and leaves once per lease.
async fn a_renewed_lock_outlives_ten_leases_with_jitter_and_re_entry(mut on: Fixture) {
    on.make_way_longer(0).await;
    let (ours, theirs) = (on.client_with_lease(secs(2)).await, on.client().await);
    let guard = ours.mutex("a").lock().await.unwrap();
    let start = Stopwatch::start();
    for step in 0..40 {
        on.delay(0, ms(u64::from(step) * 7 % 31));
        start.sleep_until(ms(500) * step).await;
        assert!(guard.is_held(), "lost after {:?}: {}", start.time(), guard.lost().await);
        match step % 4 {
            1 => match guard.reenter().await {
                Ok(inner) => {
                    assert_eq!(guard.count(), 2);
                    on.release(inner.release()).await;
                }
                Err(error) => assert!(on.is_real() && error.is_not_entered(), "{error}"),
            },
            3 => assert!(theirs.mutex("a").try_lock().await.unwrap().is_none()),
            _ => {}
        }
    }
    assert_eq!(guard.count(), 1);
    let holder = theirs.mutex("a").inspect().await.unwrap().holders.remove(0);
    assert_eq!(&holder.hold, guard.hold());
    on.release(guard.release()).await;
    on.until_clean().await;
}
