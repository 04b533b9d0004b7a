//! Several locks at once, given up at every await: none stays held, and no place is left.

use std::time::Duration;

use quorate::{AllGuard, Error, LockAll, Quorate};
use tokio::time::sleep;

use crate::cancel::{
    check,
    scene::{Completed, Rivals, Scene, every},
};

const RIVALS: [Rivals; 3] = [Rivals::Nobody, Rivals::Holder, Rivals::InQueue];

/// The lock of the rivals, between two others.
fn three(quorum: &Quorate) -> LockAll {
    quorum.lock_all(["b", "a", "c"].map(|name| quorum.mutex(name)))
}

async fn acquire<A>(mut scene: Scene, acquire: impl Fn(LockAll) -> A) -> Result<Completed, String>
where
    A: Future<Output = Result<Option<AllGuard>, Error>>,
{
    let rival = scene.rivals().await;
    let trouble = scene.inflict();
    let completed = scene.give_up(acquire(three(scene.client()))).await;
    scene.leave_if_told();
    sleep(scene.case.trouble.round_trip()).await;
    if scene.case.rivals != Rivals::InQueue {
        check::nobody_waits(scene.obedient())?;
    }
    scene.expect_nothing(rival, trouble).await.map(|()| completed)
}

#[test]
fn several_locks_given_up_at_any_await_leave_nothing() {
    every(&RIVALS, |scene| acquire(scene, |all| async move { all.lock().await.map(Some) }));
}

#[test]
fn a_try_of_several_given_up_at_any_await_leaves_nothing() {
    every(&RIVALS, |scene| acquire(scene, |all| async move { all.try_lock().await }));
    // Shorter than the rival holds the lock.
    let limit = Duration::from_millis(30);
    every(&[Rivals::Holder], |scene| {
        acquire(scene, move |all| async move { all.lock_within(limit).await })
    });
}

#[test]
fn a_release_of_several_given_up_at_any_await_releases_all_the_same() {
    every(&[Rivals::Nobody, Rivals::Waiter], async |mut scene| {
        let guard = three(scene.client()).lock().await.map_err(|error| error.to_string())?;
        let rival = scene.waiter().await;
        let trouble = scene.inflict();
        // Never polled, it drops the guard: that is the drop of one as well.
        let completed = scene.give_up(guard.release()).await;
        scene.leave_if_told();
        scene.expect_nothing(rival, trouble).await.map(|()| completed)
    });
}
