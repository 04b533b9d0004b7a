//! A mutex and a fair mutex of the same name are one lock.

use quorate::Quorate;

use crate::fair::queue::until_waiting;
use quorate_tests::{
    claims,
    fixture::{Fixture, Stopwatch, ms, secs},
};

claims!(everywhere of FairMutex:
    a_mutex_and_a_fair_mutex_of_the_same_name_exclude_each_other,
    each_kind_wakes_the_waiters_of_the_other,
    who_waits_in_order_is_not_passed_by_who_asks_later_for_the_mutex,
);

async fn a_mutex_and_a_fair_mutex_of_the_same_name_exclude_each_other(on: Fixture) {
    let (client, theirs) = (on.client().await, on.client().await);
    let fair = client.mutex("a").lock().await.unwrap();
    assert!(Quorate::mutex(&theirs, "a").try_lock().await.unwrap().is_none());
    fair.release().await.unwrap();
    let plain = Quorate::mutex(&theirs, "a").lock().await.unwrap();
    assert!(client.mutex("a").try_lock().await.unwrap().is_none());
    on.must_be_refused(client.mutex("a").lock_within(ms(50)).await);
    plain.release().await.unwrap();
    on.until_clean().await;
}

// All bids follow each other after four minutes: only the message is sooner.
async fn each_kind_wakes_the_waiters_of_the_other(on: Fixture) {
    let client = async || {
        let builder = on.builder().voter_deadline(secs(180)).minimum_validity(secs(1));
        let builder = builder.lease(secs(1800)).longest_lease(secs(1800));
        on.connect(builder).await
    };
    let (client, theirs) = (client().await, client().await);
    let plain = Quorate::mutex(&client, "a").lock().await.unwrap();
    let lock = theirs.mutex("a");
    let fair = tokio::spawn(async move { lock.lock().await.unwrap() });
    until_waiting(&client, 1).await;
    // Long enough for the second bid, after which the waiter sleeps.
    tokio::time::sleep(ms(200)).await;
    let watch = Stopwatch::start();
    plain.release().await.unwrap();
    let fair = fair.await.unwrap();
    assert!(watch.time() <= on.at_most(ms(1)), "{:?}", watch.time());

    let lock = Quorate::mutex(&client, "a");
    let plain = tokio::spawn(async move { lock.lock().await.unwrap() });
    on.until_listening().await;
    tokio::time::sleep(ms(200)).await;
    let watch = Stopwatch::start();
    fair.release().await.unwrap();
    plain.await.unwrap().release().await.unwrap();
    assert!(watch.time() <= on.at_most(ms(1)), "{:?}", watch.time());
    on.until_clean().await;
}

async fn who_waits_in_order_is_not_passed_by_who_asks_later_for_the_mutex(on: Fixture) {
    let client = on.client().await;
    let guard = client.mutex("a").lock().await.unwrap();
    let lock = on.client().await.mutex("a");
    let fair = tokio::spawn(async move { lock.lock().await.unwrap() });
    until_waiting(&client, 1).await;
    let lock = Quorate::mutex(&*on.client().await, "a");
    let plain = tokio::spawn(async move { lock.lock().await.unwrap() });
    until_waiting(&client, 2).await;
    guard.release().await.unwrap();
    let fair = fair.await.unwrap();
    assert!(!plain.is_finished());
    fair.release().await.unwrap();
    plain.await.unwrap().release().await.unwrap();
    on.until_clean().await;
}
