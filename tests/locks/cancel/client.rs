//! `inspect`, `force_release` and `close`, given up at every await.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::cancel::{
    check,
    scene::{LEASE, Rivals, every, held},
};

#[test]
fn an_inspection_given_up_at_any_await_changes_nothing() {
    every(&[Rivals::Nobody, Rivals::Holder], async |mut scene| {
        let rival = scene.rivals().await;
        let trouble = scene.inflict();
        let mutex = scene.mutex();
        let completed = scene.give_up(mutex.inspect()).await;
        drop(mutex);
        scene.leave_if_told();
        scene.expect_nothing(rival, trouble).await.map(|()| completed)
    });
}

/// It may have worked or not. What it left has an expiry, the holder learns of it in time, and to
/// call it again finishes it.
#[test]
fn a_forced_release_given_up_at_any_await_is_finished_by_the_next() {
    every(&[Rivals::Nobody], async |scene| {
        let guard = scene.other.mutex("a").lock().await.map_err(|error| error.to_string())?;
        let trouble = scene.inflict();
        let mutex = scene.mutex();
        let completed = scene.give_up(mutex.force_release()).await;
        sleep(scene.case.trouble.round_trip()).await;
        trouble.heal().await;
        // What a stopped voter has to catch up with, and what is on its way.
        sleep(Duration::from_secs(1)).await;
        mutex.force_release().await.map_err(|error| error.to_string())?;
        check::only(&scene.voters, None)?;
        check::all_expire(&scene.voters)?;
        let lost = timeout(LEASE / 3, guard.lost()).await;
        lost.map_err(|_| "the holder is not told by its next renewal")?;
        // The marks of ended holds go with the longest lease they guard against.
        check::within(5 * LEASE, || check::nothing(&scene.voters)).await?;
        drop((guard, mutex));
        let nobody = scene.waiter().await;
        scene.expect_end(nobody).await.map(|()| completed)
    });
}

#[test]
fn a_close_given_up_at_any_await_leaves_nothing() {
    every(&[Rivals::Nobody, Rivals::Waiter], async |scene| {
        let guard = held(&scene).await;
        let rival = scene.waiter().await;
        let trouble = scene.inflict();
        let completed = scene.give_up(scene.client().close()).await;
        if guard.is_held() != (scene.case.polls == 0) {
            return Err(format!("after closing is_held() is {}", guard.is_held()));
        }
        drop(guard);
        trouble.heal().await;
        // What is closed does not repeat what a voter missed: there the lease ends it.
        check::within(LEASE, || check::nothing(&scene.voters)).await?;
        scene.expect_end(rival).await.map(|()| completed)
    });
}
