//! A caller that wants to know who has the lock, and when to come again.

use quorate_tests::prelude::*;

use crate::rw::until_waiting;

claims!(everywhere of both:
    a_lock_that_is_free_or_becomes_free_in_time_is_given,
);
claims!(everywhere:
    whoever_stands_in_line_is_told_who_has_the_lock,
    a_newcomer_is_told_of_a_waiter_that_comes_first,
);

// The client asks the voters for its first caller only. The others learn what that one heard, and
// from one that got the lock that it has it.
async fn whoever_stands_in_line_is_told_who_has_the_lock(on: Fixture) {
    let client = on.client().await;
    let guard = on.client().await.mutex("a").lock().await.unwrap();
    let waiting = join_all((0..3).map(|_| client.mutex("a").lock_or_busy(ms(300))));
    for refused in waiting.await {
        let error = refused.unwrap_err();
        assert_eq!(error.holder(), Some(guard.hold()), "{error}");
    }
    guard.release().await.unwrap();
    let guard = client.mutex("a").lock_or_busy(secs(10)).await.unwrap();
    let error = client.mutex("a").lock_or_busy(Duration::ZERO).await.unwrap_err();
    assert_eq!(error.holder(), Some(guard.hold()), "{error}");
    guard.release().await.unwrap();
    on.until_clean().await;
}

async fn a_lock_that_is_free_or_becomes_free_in_time_is_given(on: Fixture) {
    let (ours, theirs) = (on.client().await.mutex("a"), on.client().await.mutex("a"));
    let guard = ours.lock_or_busy(Duration::ZERO).await.unwrap();
    let waiter = tokio::spawn(theirs.lock_or_busy(secs(30)));
    tokio::time::sleep(ms(50)).await;
    guard.release().await.unwrap();
    waiter.await.unwrap().unwrap().release().await.unwrap();
    on.until_clean().await;
}

// The reader would get the lock, which others read: a writer that waits comes before it.
async fn a_newcomer_is_told_of_a_waiter_that_comes_first(on: Fixture) {
    let client = on.client().await;
    let ours = client.rw_lock("a");
    let read = ours.read().await.unwrap();
    let writer = tokio::spawn(on.client().await.rw_lock("a").write());
    until_waiting(&client, 1, 0).await;
    let place = ours.inspect().await.unwrap().waiting.remove(0).place;
    let error = ours.read_or_busy(Duration::ZERO).await.unwrap_err();
    assert_eq!(error.holder_kind(), Some(HolderKind::Waiting), "{error}");
    assert_eq!(error.holder(), Some(&place), "{error}");
    read.release().await.unwrap();
    // A read that came from the queue is one too.
    let write = writer.await.unwrap().unwrap();
    // Its place is in the queue still.
    let error = ours.read_or_busy(Duration::ZERO).await.unwrap_err();
    let told = (error.holder(), error.holder_kind());
    assert_eq!(told, (Some(write.hold()), Some(HolderKind::Write)), "{error}");
    let reader = tokio::spawn(ours.read());
    until_waiting(&client, 0, 1).await;
    write.release().await.unwrap();
    let read = reader.await.unwrap().unwrap();
    let error = ours.write_or_busy(Duration::ZERO).await.unwrap_err();
    let told = (error.holder(), error.holder_kind());
    assert_eq!(told, (Some(read.hold()), Some(HolderKind::Read)), "{error}");
    read.release().await.unwrap();
    on.until_clean().await;
}
