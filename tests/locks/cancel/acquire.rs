//! `lock`, `try_lock` and `lock_within`, given up at every await.

use std::time::Duration;

use quorate::{Error, Mutex, MutexGuard};

use crate::cancel::scene::{Completed, Rivals, Scene, every};

const RIVALS: [Rivals; 3] = [Rivals::Nobody, Rivals::Holder, Rivals::InLine];

async fn acquire<A>(mut scene: Scene, acquire: impl Fn(Mutex) -> A) -> Result<Completed, String>
where
    A: Future<Output = Result<Option<MutexGuard>, Error>>,
{
    let rival = scene.rivals().await;
    let trouble = scene.inflict();
    let completed = scene.give_up(acquire(scene.mutex())).await;
    scene.leave_if_told();
    scene.expect_nothing(rival, trouble).await.map(|()| completed)
}

#[test]
fn a_lock_given_up_at_any_await_leaves_nothing() {
    every(&RIVALS, |scene| acquire(scene, |mutex| async move { mutex.lock().await.map(Some) }));
}

#[test]
fn a_try_lock_given_up_at_any_await_leaves_nothing() {
    every(&RIVALS, |scene| acquire(scene, |mutex| async move { mutex.try_lock().await }));
}

#[test]
fn a_lock_within_given_up_at_any_await_leaves_nothing() {
    // Shorter than the rival holds the lock.
    let limit = Duration::from_millis(30);
    every(&[Rivals::Holder], |scene| {
        acquire(scene, move |mutex| async move { mutex.lock_within(limit).await })
    });
}
