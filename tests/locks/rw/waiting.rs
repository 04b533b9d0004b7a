//! Waiting for a condition on the lock `a`, and giving up.

use quorate::{HolderKind, LockView, Quorate, ReadGuard, WriteGuard};
use tokio::task::JoinHandle;

use quorate_support::eventually_async;
use quorate_tests::{
    claims,
    fixture::{Fixture, Stopwatch, ms},
    force::waiting,
};

claims!(everywhere:
    whoever_is_dropped_while_waiting_leaves_nothing,
);

/// The keys of a lock that is only read, or only written.
pub(crate) const READERS: &[&str] = &["quorate:{a}:rw:readers"];
pub(crate) const WRITER: &[&str] = &["quorate:{a}:rw:writer"];

/// Waits until a majority says this about the lock.
pub(crate) async fn until(client: &Quorate, what: &str, says: impl Fn(&LockView) -> bool) {
    eventually_async(what, async || {
        client.rw_lock("a").inspect().await.is_ok_and(|seen| says(&seen))
    })
    .await;
}

/// Waits until so many wait to write and to read.
pub(crate) async fn until_waiting(client: &Quorate, writers: usize, readers: usize) {
    until(client, &format!("{writers} wait to write and {readers} to read"), |seen| {
        let waiting = [HolderKind::Write, HolderKind::Read].map(|kind| waiting(seen, kind));
        waiting == [writers, readers]
    })
    .await;
}

pub(crate) fn read(client: &Quorate) -> JoinHandle<ReadGuard> {
    let asks = client.rw_lock("a").read();
    tokio::spawn(async { asks.await.expect("a majority answers") })
}

pub(crate) fn write(client: &Quorate) -> JoinHandle<WriteGuard> {
    let lock = client.rw_lock("a");
    tokio::spawn(async move { lock.write().await.expect("a majority answers") })
}

// The reader behind the writer that was dropped is called; it enters though the first one reads on.
async fn whoever_is_dropped_while_waiting_leaves_nothing(on: Fixture) {
    let (ours, theirs, last) = (on.client().await, on.client().await, on.client().await);
    let reading = ours.rw_lock("a").read().await.unwrap();
    let writer = write(&theirs);
    until_waiting(&ours, 1, 0).await;
    let reader = read(&last);
    until_waiting(&ours, 1, 1).await;
    let watch = Stopwatch::start();
    writer.abort();
    let second = reader.await.unwrap();
    assert!(watch.time() <= on.at_most(ms(20)), "{:?}", watch.time());
    on.until_clean_but_for_places(READERS).await;
    on.release(second.release()).await;
    on.release(reading.release()).await;
    on.until_clean().await;
}
