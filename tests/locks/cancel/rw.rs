//! The read/write lock, given up at every await: no vote is left, and no place in the queue.

use std::time::Duration;

use quorate::{Error, Owner, RwLock, WriteGuard};

use crate::cancel::{
    check,
    guard::expect_held_once,
    scene::{Completed, Rivals, Scene, every},
};

/// Whom a reader waits for, and whom it does not.
const OF_A_READER: [Rivals; 4] =
    [Rivals::Nobody, Rivals::Writer, Rivals::WriterInQueue, Rivals::ReaderInQueue];
const OF_A_WRITER: [Rivals; 5] =
    [Rivals::Nobody, Rivals::Reader, Rivals::Writer, Rivals::WriterInQueue, Rivals::ReaderInQueue];
/// Those who hold the lock for longer than this is waited for.
const HOLDERS: [Rivals; 2] = [Rivals::Reader, Rivals::Writer];
const LIMIT: Duration = Duration::from_millis(30);

async fn acquire<A, G>(mut scene: Scene, acquire: impl Fn(RwLock) -> A) -> Result<Completed, String>
where
    A: Future<Output = Result<Option<G>, Error>>,
{
    let rival = scene.rivals().await;
    let trouble = scene.inflict();
    let completed = scene.give_up(acquire(scene.rw_lock())).await;
    scene.leave_if_told();
    tokio::time::sleep(scene.case.trouble.round_trip()).await;
    if !matches!(scene.case.rivals, Rivals::WriterInQueue | Rivals::ReaderInQueue) {
        check::nobody_waits(scene.obedient())?;
    }
    scene.expect_nothing(rival, trouble).await.map(|()| completed)
}

#[test]
fn a_read_given_up_at_any_await_leaves_nothing() {
    every(&OF_A_READER, |scene| acquire(scene, async |lock| lock.read().await.map(Some)));
}

#[test]
fn a_write_given_up_at_any_await_leaves_nothing() {
    every(&OF_A_WRITER, |scene| acquire(scene, async |lock| lock.write().await.map(Some)));
}

#[test]
fn a_try_to_read_or_to_write_given_up_at_any_await_leaves_nothing() {
    every(&OF_A_READER, |scene| acquire(scene, async |lock| lock.try_read().await));
    every(&OF_A_WRITER, |scene| acquire(scene, async |lock| lock.try_write().await));
}

#[test]
fn a_read_or_a_write_within_given_up_at_any_await_leaves_nothing() {
    every(&HOLDERS, |scene| acquire(scene, async |lock| lock.read_within(LIMIT).await));
    every(&HOLDERS, |scene| acquire(scene, async |lock| lock.write_within(LIMIT).await));
}

async fn written(scene: &Scene) -> WriteGuard {
    scene.rw_lock().write().await.expect("nobody else is there")
}

// Given up half way it has both, and gives both back.
#[test]
fn a_downgrade_given_up_at_any_await_leaves_nothing() {
    every(&[Rivals::Nobody, Rivals::WaitingReader, Rivals::WaitingWriter], async |mut scene| {
        let guard = written(&scene).await;
        let rival = scene.waiter().await;
        let trouble = scene.inflict();
        let completed = scene.give_up(guard.downgrade()).await;
        scene.leave_if_told();
        scene.expect_nothing(rival, trouble).await.map(|()| completed)
    });
}

#[test]
fn a_read_of_a_write_given_up_at_any_await_leaves_the_write_alone() {
    every(&[Rivals::Nobody], async |scene| {
        let guard = written(&scene).await;
        let trouble = scene.inflict();
        let completed = scene.give_up(guard.read()).await;
        expect_held_once(scene, guard, trouble).await.map(|()| completed)
    });
}

#[test]
fn a_read_by_the_owner_who_writes_given_up_at_any_await_leaves_the_write_alone() {
    every(&[Rivals::Nobody], async |scene| {
        let lock = scene.rw_lock().owner(&Owner::new());
        let guard = lock.write().await.map_err(|error| error.to_string())?;
        let trouble = scene.inflict();
        let completed = scene.give_up(lock.read()).await;
        drop(lock);
        expect_held_once(scene, guard, trouble).await.map(|()| completed)
    });
}

#[test]
fn a_read_by_the_owner_who_reads_given_up_at_any_await_leaves_the_count_as_it_was() {
    every(&[Rivals::Nobody], async |scene| {
        let lock = scene.rw_lock().owner(&Owner::new());
        let guard = lock.read().await.map_err(|error| error.to_string())?;
        let trouble = scene.inflict();
        let completed = scene.give_up(lock.read()).await;
        drop(lock);
        expect_held_once(scene, guard, trouble).await.map(|()| completed)
    });
}

#[test]
fn a_release_of_a_read_or_a_write_given_up_at_any_await_releases_all_the_same() {
    every(&[Rivals::Nobody, Rivals::WaitingWriter], async |mut scene| {
        let guard = scene.rw_lock().read().await.expect("nobody else is there");
        let rival = scene.waiter().await;
        let trouble = scene.inflict();
        let completed = scene.give_up(guard.release()).await;
        scene.leave_if_told();
        scene.expect_nothing(rival, trouble).await.map(|()| completed)
    });
    every(&[Rivals::WaitingReader, Rivals::WaitingWriter], async |mut scene| {
        let guard = written(&scene).await;
        let rival = scene.waiter().await;
        let trouble = scene.inflict();
        let completed = scene.give_up(guard.release()).await;
        scene.leave_if_told();
        scene.expect_nothing(rival, trouble).await.map(|()| completed)
    });
}
