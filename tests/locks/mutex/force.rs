//! Ending a hold by force.

use tokio::time::{sleep, timeout};

use quorate_support::eventually_async;
use quorate_tests::{
    claims,
    fixture::{Fixture, Stopwatch, ms, secs, trusted},
};

claims!(everywhere of both:
    force_release_frees_the_lock_whoever_holds_it,
    force_release_wakes_a_waiter_and_the_holder_learns_of_its_loss,
    one_hold_is_ended_by_its_id_and_no_other,
    one_mark_is_enough_to_end_a_hold,
    renewals_do_not_bring_back_what_was_ended_by_force,
);

// The first has the lock with a count of two, and for 30 s to come; nobody has given it back.
async fn force_release_frees_the_lock_whoever_holds_it(on: Fixture) {
    let (ours, theirs) = (on.client().await.mutex("a"), on.client().await.mutex("a"));
    assert!(!theirs.force_release().await.unwrap(), "nobody holds it");
    let outer = ours.lock().await.unwrap();
    let inner = outer.reenter().await.unwrap();
    assert!(theirs.force_release().await.unwrap());
    assert!(theirs.inspect().await.unwrap().is_free());
    let next = theirs.try_lock().await.unwrap().expect("it was freed");
    assert!(theirs.try_lock().await.unwrap().is_none());
    // The former holder's release touches nothing of the next one's.
    assert!(inner.release().await.unwrap_err().is_lost() && !outer.is_held());
    drop(outer);
    assert_eq!(&theirs.inspect().await.unwrap().holder().unwrap().hold, next.hold());
    next.release().await.unwrap();
}

// The holder renews at 2 s and would trust its lease until 5.938 s: it is told in between, and the
// waiter, that does not poll, has entered before 6 s have passed.
async fn force_release_wakes_a_waiter_and_the_holder_learns_of_its_loss(on: Fixture) {
    let lease = secs(6);
    let watch = Stopwatch::start();
    let guard = on.client_with_lease(lease).await.mutex("a").lock().await.unwrap();
    let quorum = on.connect(on.builder().poll_interval(secs(600))).await;
    let waiter = tokio::spawn(async move { quorum.mutex("a").lock().await });
    on.until_listening().await;
    sleep(ms(100)).await;
    assert!(on.client().await.mutex("a").force_release().await.unwrap());
    let next = timeout(secs(4), waiter).await.expect("it was woken").unwrap().unwrap();
    let why = guard.lost().await;
    let told = watch.time();
    assert!(why.is_lost() && why.to_string().contains("ended by force"), "{why}");
    assert!(told >= lease / 3 && told < trusted(lease), "told after {told:?}");
    assert!(!guard.is_held() && next.is_held());
    assert!(guard.release().await.unwrap_err().is_lost());
    next.release().await.unwrap();
}

// An operator who saw the first hold ends the first one: the second has the lock by then.
async fn one_hold_is_ended_by_its_id_and_no_other(on: Fixture) {
    let (ours, theirs) = (on.client().await.mutex("a"), on.client().await.mutex("a"));
    let first = ours.lock().await.unwrap();
    let seen = first.hold().clone();
    theirs.force_release_hold(&seen).await.unwrap();
    let second = ours.lock().await.unwrap();
    let error = theirs.force_release_hold(&seen).await.unwrap_err();
    assert!(error.is_not_holding(), "{error}");
    assert_eq!((error.lock(), error.hold()), (Some("a"), Some(&seen)));
    assert!(error.to_string().contains(second.hold().as_str()), "{error}");
    let third = ours.inspect().await.unwrap();
    assert_eq!(&third.holder().unwrap().hold, second.hold());
    assert_eq!(third.token(), Some(second.token()));
    second.release().await.unwrap();
    let error = theirs.force_release_hold(&seen).await.unwrap_err();
    assert!(error.is_not_holding() && error.to_string().contains("held by nobody"), "{error}");
    assert!(first.release().await.unwrap_err().is_lost());
}

// Of the voters that were told one may restart without its data, and one may have been away: the
// mark that is left ends the hold, whatever the others grant. That may come between any renewals,
// and before the vote, so that this stands beside the mark at the first renewal.
async fn one_mark_is_enough_to_end_a_hold(on: Fixture) {
    let client = on.client_with_lease(secs(6)).await;
    for after in [ms(0), ms(3000)] {
        let guard = client.mutex("a").lock().await.unwrap();
        sleep(after).await;
        let told = on.voters() - 1;
        on.command(told, &["HSET", "quorate:{a}:revoked", guard.hold().as_str(), "1"]);
        if !after.is_zero() {
            on.command(told, &["DEL", "quorate:{a}"]);
        }
        let error = timeout(secs(4), guard.lost()).await.expect("it is told at the next renewal");
        assert!(error.is_lost() && error.to_string().contains("ended by force"), "{error}");
        assert!(!guard.is_held());
    }
}

// Only the mark of the ended hold is left, through the time of several renewals: a renewal that
// took the free vote again would have made the record anew.
async fn renewals_do_not_bring_back_what_was_ended_by_force(on: Fixture) {
    let guard = on.client_with_lease(secs(3)).await.mutex("a").lock().await.unwrap();
    let operator = on.client_with_lease(secs(3)).await.mutex("a");
    assert!(operator.force_release().await.unwrap());
    let watch = Stopwatch::start();
    while watch.time() < ms(4500) {
        assert!(on.keys().iter().all(|keys| keys == &["quorate:{a}:revoked"]), "{:?}", on.keys());
        sleep(ms(20)).await;
    }
    assert!(!guard.is_held());
    // Four times what was left of the lease, at most.
    eventually_async("the mark has an end too", async || on.keys().iter().all(Vec::is_empty)).await;
}
