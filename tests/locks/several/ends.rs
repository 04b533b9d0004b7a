//! They stand or fall together.

use tokio::time::{sleep, timeout};

use crate::several::client;
use quorate::{
    LockKind, Lockable, Quorate,
    embedded::{self, Fault},
};
use quorate_support::eventually_async;
use quorate_tests::{
    claims,
    fixture::{Fixture, Stopwatch, ms, secs, trusted},
    inside::{self, all},
};

claims!(everywhere: when_one_is_lost_all_are_and_the_guard_says_which);

async fn when_one_is_lost_all_are_and_the_guard_says_which(on: Fixture) {
    let (ours, theirs) = (on.client_with_lease(secs(6)).await, on.client_with_lease(secs(6)).await);
    let (quorum, theirs) = (Quorate::clone(&ours), Quorate::clone(&theirs));
    let all: [Lockable; 3] =
        [quorum.mutex("a").into(), quorum.mutex("b").into(), quorum.rw_lock("c").writing()];
    let guard = quorum.lock_all(all).lock().await.unwrap();
    let elsewhere = tokio::spawn(guard.lost().clone());
    assert!(theirs.admin().clear(LockKind::Mutex, "b").await.unwrap());
    let lost = timeout(secs(60), guard.lost()).await.expect("it is told");
    assert!(lost.is_lost() && lost.lock() == Some("b"), "{lost}");
    let told = timeout(secs(60), elsewhere).await.expect("it is told").unwrap();
    assert!(told.is_lost() && told.lock() == Some("b"), "{told}");
    assert!(!guard.is_held() && guard.remaining().is_zero());
    // The others are free, though nobody has released anything.
    let next = timeout(secs(60), theirs.mutex("a").lock()).await.unwrap().unwrap();
    let written = timeout(secs(60), theirs.rw_lock("c").write()).await.unwrap().unwrap();
    let refused = guard.while_held(sleep(secs(1))).await.unwrap_err();
    assert!(refused.is_lost() && refused.lock() == Some("b"), "{refused}");
    let released = guard.release().await.unwrap_err();
    assert!(released.is_lost() && released.lock() == Some("b"), "{released}");
    assert!(next.is_held() && written.is_held(), "they are the next holder's");
}

// Without a majority all are lost, at the earliest of their deadlines.
#[tokio::test(start_paused = true)]
async fn all_are_lost_at_the_earliest_deadline_and_work_is_dropped() {
    let on = Fixture::embedded(3);
    let quorum = client(&on).await;
    let leases = [("a", secs(20)), ("b", secs(5)), ("c", secs(30))];
    let locks = leases.map(|(name, lease)| quorum.mutex(name).lease_fixed(lease));
    let watch = Stopwatch::start();
    let guard = quorum.lock_all(locks).lock().await.unwrap();
    assert!(guard.remaining() <= trusted(secs(5)));
    let error = guard.while_held(std::future::pending::<()>()).await.unwrap_err();
    assert!(error.is_lost() && error.lock() == Some("b"), "{error}");
    assert!(watch.time() <= trusted(secs(5)) + ms(1), "{:?}", watch.time());
    // The others are given back at once, long before their leases end.
    eventually_async("nothing is left", async || on.keys().iter().all(Vec::is_empty)).await;
    assert!(watch.time() < secs(6));
    let why = guard.release().await.unwrap_err();
    assert_eq!(why.lock(), Some("b"));
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_a_loss_is_told_of_the_release() {
    let on = Fixture::embedded(3);
    let quorum = client(&on).await;
    let guard = quorum.lock_all(["a", "b"].map(|name| quorum.mutex(name))).lock().await.unwrap();
    let lost = guard.lost();
    guard.release().await.unwrap();
    assert!(lost.await.is_released());
    on.until_clean().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_closed_loses_all() {
    let on = Fixture::embedded(3);
    let quorum = client(&on).await;
    let all = quorum.lock_all([quorum.mutex("a"), quorum.mutex("b")]);
    let guard = all.lock().await.unwrap();
    let (theirs, waiting) = (client(&on).await, tokio::spawn(all.lock()));
    sleep(ms(10)).await;
    quorum.close().await;
    assert!(guard.lost().await.is_lost() && !guard.is_held());
    assert!(waiting.await.unwrap().unwrap_err().is_closed());
    assert!(all.try_lock().await.unwrap_err().is_closed());
    let again = theirs.lock_all(["a", "b"].map(|name| theirs.mutex(name))).lock().await.unwrap();
    on.release(again.release()).await;
    on.until_clean().await;
}

/// At the limit an attempt is under way: its result is waited for.
#[tokio::test(start_paused = true)]
async fn a_limit_that_comes_before_the_voters_have_answered_is_no_silence() {
    let voters = embedded::voters(3);
    let client = inside::client(&voters).await;
    let _slow = all(&voters, Fault::Delay { there: ms(0), back: ms(100) });
    let first = tokio::spawn(client.mutex("b").lock());
    sleep(ms(1)).await;
    let all = client.lock_all([client.mutex("a"), client.mutex("b")]);
    assert!(all.lock_within(ms(20)).await.expect("all voters answer").is_none());
    assert!(client.mutex("b").lock_within(ms(0)).await.expect("it is known").is_none());
    first.await.expect("no panic").expect("it is free").release().await.expect("it is confirmed");
}
