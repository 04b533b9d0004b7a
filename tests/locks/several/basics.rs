//! All or none.

use quorate::{Error, Lockable, Owner};
use tokio::time::sleep;

use crate::several::client;
use quorate_support::eventually_async;
use quorate_tests::{
    claims,
    fixture::{Fixture, ms, secs},
};

claims!(everywhere:
    mutexes_and_sides_of_read_write_locks_are_held_as_one,
    where_one_is_taken_a_try_has_none_and_leaves_nothing,
    who_waits_for_one_holds_none_of_the_others,
);

async fn mutexes_and_sides_of_read_write_locks_are_held_as_one(on: Fixture) {
    let (quorum, theirs) = (client(&on).await, client(&on).await);
    let all: [Lockable; 4] = [
        quorum.mutex("a").into(),
        quorum.fair_mutex("b").into(),
        quorum.rw_lock("c").reading(),
        quorum.rw_lock("d").writing(),
    ];
    let guard = quorum.lock_all(all).lock().await.unwrap();
    assert!(guard.is_held() && guard.remaining() > secs(20));
    assert_eq!(guard.names().collect::<Vec<_>>(), ["a", "b", "c", "d"]);
    let has_token: Vec<_> = guard.tokens().map(|(name, token)| (name, token.is_some())).collect();
    assert_eq!(has_token, [("a", true), ("b", true), ("c", false), ("d", true)]);
    on.must_be_refused(theirs.mutex("a").try_lock().await);
    on.must_be_refused(theirs.mutex("b").try_lock().await);
    on.must_be_refused(theirs.rw_lock("c").try_write().await);
    on.must_be_refused(theirs.rw_lock("d").try_read().await);
    let beside = theirs.rw_lock("c").read().await.unwrap();
    let seen = theirs.mutex("a").inspect().await.unwrap().holders.remove(0);
    assert_eq!(Some(&seen.hold), guard.holds().next().map(|(_, hold)| hold));
    let tokens: Vec<_> = guard.tokens().filter_map(|(_, token)| token).collect();
    beside.release().await.unwrap();
    on.release(guard.release()).await;
    on.until_clean().await;
    let again = theirs.lock_all([theirs.mutex("a"), theirs.mutex("b")]).lock().await.unwrap();
    assert!(again.tokens().zip(tokens).all(|((_, token), before)| token > Some(before)));
    drop(again);
    on.until_clean().await;
}

const NAMES: [&str; 3] = ["a", "b", "c"];

async fn where_one_is_taken_a_try_has_none_and_leaves_nothing(on: Fixture) {
    let (quorum, theirs) = (client(&on).await, client(&on).await);
    let all = quorum.lock_all(NAMES.map(|name| quorum.mutex(name)));
    let taken = theirs.mutex("b").lock().await.unwrap();
    on.must_be_refused(all.try_lock().await);
    on.until_only(&["quorate:{b}"]).await;
    on.release(taken.release()).await;
    let guard = all.try_lock().await.unwrap().expect("all are free");
    assert!(all.try_lock().await.unwrap().is_none());
    on.release(guard.release()).await;
    on.until_clean().await;
}

// `b` is held by another client for a second; meanwhile `a` can be had again and again.
async fn who_waits_for_one_holds_none_of_the_others(on: Fixture) {
    let (quorum, theirs) = (client(&on).await, client(&on).await);
    let taken = theirs.mutex("b").lock().await.unwrap();
    let all = quorum.lock_all([quorum.mutex("a"), quorum.mutex("b")]);
    let waits = tokio::spawn(all.lock());
    on.until_queued().await;
    for _ in 0..10 {
        let guard = theirs.mutex("a").lock().await.unwrap();
        sleep(ms(10)).await;
        on.release(guard.release()).await;
    }
    on.release(taken.release()).await;
    let guard = waits.await.unwrap().unwrap();
    assert!(guard.is_held());
    on.release(guard.release()).await;
    on.until_clean().await;
}

// Each server counts the calls. Until the client has heard that a server has a script, it is sent
// with its source, by another command.
#[tokio::test]
async fn all_that_are_free_are_had_by_one_call_to_each_voter() {
    let on = Fixture::real(3);
    let quorum = client(&on).await;
    let all = || quorum.lock_all((0..20).map(|number| quorum.mutex(number.to_string())));
    eventually_async("each has the scripts", async || {
        let before = on.scripts_run();
        all().lock().await.unwrap().release().await.unwrap();
        eventually_async("nothing is left", async || on.keys().iter().all(Vec::is_empty)).await;
        on.scripts_run() == before + 6
    })
    .await;
    let before = on.scripts_run();
    let guard = all().lock().await.unwrap();
    assert_eq!(guard.names().count(), 20);
    eventually_async("each has answered", async || on.scripts_run() >= before + 3).await;
    assert_eq!(on.scripts_run(), before + 3);
    guard.release().await.unwrap();
    eventually_async("each has answered", async || on.scripts_run() >= before + 6).await;
    assert_eq!(on.scripts_run(), before + 6);
}

#[track_caller]
fn assert_invalid(error: &Error, message: &str) {
    assert!(error.is_invalid() && error.to_string().contains(message), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_cannot_work_is_refused_and_nothing_is_sent() {
    let on = Fixture::embedded(3);
    let (quorum, theirs) = (client(&on).await, client(&on).await);
    let asked = on.runs("mutex/acquire").unwrap();
    let (ours, mutex) = (quorum.mutex("a"), |name: &str| Lockable::from(quorum.mutex(name)));
    let (rw, fair) = (quorum.rw_lock("a"), quorum.fair_mutex("a"));
    let (other, twice) = (theirs.mutex("a"), "the lock `a` is in the list twice");
    let lists: [(Vec<Lockable>, &str); 8] = [
        (vec![], "there is no lock in the list of those to be locked"),
        (vec![mutex("a"), mutex("a")], twice),
        (vec![mutex("a"), fair.into()], twice),
        (vec![rw.reading(), rw.writing()], twice),
        (vec![ours.owner(&Owner::new()).into()], "the lock `a` has an owner"),
        (vec![other.clone().into()], "the lock `a` is of another client"),
        (vec![mutex("a"), other.into()], "the lock `a` is of another client"),
        (vec![mutex("a"), mutex("")], "empty"),
    ];
    for (list, message) in lists {
        let all = quorum.lock_all(list);
        assert_invalid(&all.lock().await.unwrap_err(), message);
        assert_invalid(&all.try_lock().await.unwrap_err(), message);
        assert_invalid(&all.lock_within(secs(1)).await.unwrap_err(), message);
    }
    assert_eq!(on.runs("mutex/acquire").unwrap(), asked);
    // A mutex and a read/write lock of one name are two locks.
    let both = quorum.lock_all([quorum.mutex("a").into(), quorum.rw_lock("a").writing()]);
    both.lock().await.unwrap().release().await.unwrap();
    eventually_async("nothing is left", async || on.keys().iter().all(Vec::is_empty)).await;
}
