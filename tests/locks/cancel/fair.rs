//! The fair mutex, given up at every await: also the place in the queue is left.

use std::time::Duration;

use quorate::{Error, FairMutex, MutexGuard};

use crate::cancel::{
    check,
    scene::{Completed, Rivals, Scene, every},
};

const RIVALS: [Rivals; 4] = [Rivals::Nobody, Rivals::Holder, Rivals::InLine, Rivals::InQueue];

async fn acquire<A>(mut scene: Scene, acquire: impl Fn(FairMutex) -> A) -> Result<Completed, String>
where
    A: Future<Output = Result<Option<MutexGuard>, Error>>,
{
    let rival = scene.rivals().await;
    let trouble = scene.inflict();
    let completed = scene.give_up(acquire(scene.fair_mutex())).await;
    scene.leave_if_told();
    tokio::time::sleep(scene.case.trouble.round_trip()).await;
    match scene.case.rivals {
        Rivals::InQueue => {}
        // By then the rival has lost a race for the lock.
        Rivals::InLine => check::nobody_waits_in_order(scene.obedient())?,
        _ => check::nobody_waits(scene.obedient())?,
    }
    scene.expect_nothing(rival, trouble).await.map(|()| completed)
}

#[test]
fn a_fair_lock_given_up_at_any_await_leaves_nothing() {
    every(&RIVALS, |scene| acquire(scene, |mutex| async move { mutex.lock().await.map(Some) }));
}

#[test]
fn a_fair_try_lock_given_up_at_any_await_leaves_nothing() {
    every(&RIVALS, |scene| acquire(scene, |mutex| async move { mutex.try_lock().await }));
}

#[test]
fn a_fair_lock_within_given_up_at_any_await_leaves_nothing() {
    // Shorter than the rival holds the lock.
    let limit = Duration::from_millis(30);
    every(&[Rivals::Holder, Rivals::InQueue], |scene| {
        acquire(scene, move |mutex| async move { mutex.lock_within(limit).await })
    });
}
