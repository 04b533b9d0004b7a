//! Each hold has a lease of its own.

use quorate::Owner;

use crate::semaphore::waiting::{HELD, until_waiting, wait};
use quorate_tests::{
    claims,
    doomed::Doomed,
    fixture::{Fixture, Stopwatch, ms, secs},
};

claims!(everywhere:
    a_dead_holders_permits_come_back_at_its_own_deadline_although_others_renew,
    a_lease_can_be_extended,
    who_enters_again_for_a_shorter_time_shortens_nothing,
);

async fn a_dead_holders_permits_come_back_at_its_own_deadline_although_others_renew(on: Fixture) {
    let lease = secs(3);
    let watch = Stopwatch::start();
    let dead = Doomed::take(&on, lease, async move |client| {
        let semaphore = client.semaphore("a", 3).lease_fixed(lease);
        semaphore.acquire_many(2).await.expect("they are free")
    })
    .await;
    let after = Stopwatch::start();
    let client = on.client_with_lease(secs(3)).await;
    let live = client.semaphore("a", 3).acquire().await.unwrap();
    let waiting = wait(&client, 3, 2);
    until_waiting(&client, 1).await;
    dead.die();
    let next = waiting.await.unwrap();
    assert!(watch.time() >= lease, "{:?}", watch.time());
    assert!(after.time() <= on.at_most(lease + ms(20)), "{:?}", after.time());
    assert!(live.is_held() && next.is_held());
    on.release(next.release()).await;
    on.until_only(HELD).await;
    on.release(live.release()).await;
    on.until_clean().await;
}

async fn a_lease_can_be_extended(on: Fixture) {
    let client = on.client().await;
    let guard = client.semaphore("a", 2).lease_fixed(secs(8)).acquire_many(2).await.unwrap();
    guard.extend(secs(20)).await.unwrap();
    assert!(guard.remaining() > secs(15), "{:?}", guard.remaining());
    let slots = guard.slots();
    let again = guard.reenter().await.unwrap();
    assert_eq!(again.slots(), slots);
    drop(guard);
    again.keep_for(secs(8)).await.unwrap();
    on.must_be_refused(client.semaphore("a", 2).try_acquire().await);
}

async fn who_enters_again_for_a_shorter_time_shortens_nothing(on: Fixture) {
    let client = on.client().await;
    let semaphore = client.semaphore("a", 2).owner(&Owner::new());
    let long = semaphore.clone().lease_fixed(secs(25)).acquire_many(2).await.unwrap();
    let short = semaphore.lease_fixed(secs(8)).acquire_many(2).await.unwrap();
    assert_eq!(short.hold(), long.hold());
    let seen = client.semaphore("a", 2).inspect().await.unwrap();
    for view in &seen.voters {
        let Ok(state) = &view.state else { continue };
        assert!(state.holders.iter().all(|held| held.ttl > Some(secs(15))), "{seen:?}");
    }
    assert_eq!(seen.holders.len(), 1, "a majority said it");
}
