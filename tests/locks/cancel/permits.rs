//! The semaphore, given up at every await: no slot is left, and no place in the queue.

use std::time::Duration;

use quorate::{Error, Owner, PermitGuard, Semaphore};

use crate::cancel::{
    check,
    guard::expect_held_once,
    scene::{Completed, Rivals, Scene, every},
};

const RIVALS: [Rivals; 3] = [Rivals::Nobody, Rivals::Permits, Rivals::PermitsInQueue];
/// Shorter than the rival has its permits.
const LIMIT: Duration = Duration::from_millis(30);

async fn acquire<A>(mut scene: Scene, acquire: impl Fn(Semaphore) -> A) -> Result<Completed, String>
where
    A: Future<Output = Result<Option<PermitGuard>, Error>>,
{
    let rival = scene.rivals().await;
    let trouble = scene.inflict();
    let completed = scene.give_up(acquire(scene.semaphore())).await;
    scene.leave_if_told();
    tokio::time::sleep(scene.case.trouble.round_trip()).await;
    if scene.case.rivals != Rivals::PermitsInQueue {
        check::nobody_waits(scene.obedient())?;
    }
    scene.expect_nothing(rival, trouble).await.map(|()| completed)
}

#[test]
fn an_acquire_given_up_at_any_await_leaves_nothing() {
    every(&RIVALS, |scene| acquire(scene, async |it| it.acquire().await.map(Some)));
}

#[test]
fn an_acquire_of_all_given_up_at_any_await_leaves_nothing() {
    every(&RIVALS, |scene| acquire(scene, async |it| it.acquire_many(2).await.map(Some)));
}

#[test]
fn a_try_acquire_given_up_at_any_await_leaves_nothing() {
    every(&RIVALS, |scene| acquire(scene, async |it| it.try_acquire().await));
}

#[test]
fn an_acquire_within_given_up_at_any_await_leaves_nothing() {
    every(&[Rivals::Permits], |scene| acquire(scene, async |it| it.acquire_within(LIMIT).await));
}

#[test]
fn a_release_of_permits_given_up_at_any_await_releases_all_the_same() {
    every(&[Rivals::Nobody, Rivals::WaitingForPermits], async |mut scene| {
        let guard = scene.semaphore().acquire_many(2).await.expect("nobody else is there");
        let rival = scene.waiter().await;
        let trouble = scene.inflict();
        let completed = scene.give_up(guard.release()).await;
        scene.leave_if_told();
        scene.expect_nothing(rival, trouble).await.map(|()| completed)
    });
}

#[test]
fn an_acquire_by_the_owner_given_up_at_any_await_leaves_the_count_as_it_was() {
    every(&[Rivals::Nobody], async |scene| {
        let semaphore = scene.semaphore().owner(&Owner::new());
        let guard = semaphore.acquire().await.map_err(|error| error.to_string())?;
        let trouble = scene.inflict();
        let completed = scene.give_up(semaphore.acquire()).await;
        drop(semaphore);
        expect_held_once(scene, guard, trouble).await.map(|()| completed)
    });
}
