//! What a guard can do, given up at every await; and its drop.

use std::{cell::Cell, time::Duration};

use quorate::{Error, HoldId, MutexGuard, Owner, PermitGuard, Quorate, ReadGuard, WriteGuard};
use tokio::time::sleep;

use crate::cancel::{
    check,
    scene::{LEASE, Rivals, Scene, every, held},
    trouble::Troubled,
};

#[test]
fn a_release_given_up_at_any_await_releases_all_the_same() {
    every(&[Rivals::Nobody, Rivals::Waiter], async |mut scene| {
        let guard = held(&scene).await;
        let rival = scene.waiter().await;
        let trouble = scene.inflict();
        // Never polled, it drops the guard: that is the drop of a guard as well.
        let completed = scene.give_up(guard.release()).await;
        scene.leave_if_told();
        scene.expect_nothing(rival, trouble).await.map(|()| completed)
    });
}

#[test]
fn a_reentry_given_up_at_any_await_leaves_the_count_as_it_was() {
    every(&[Rivals::Nobody], async |scene| {
        let guard = held(&scene).await;
        let trouble = scene.inflict();
        let completed = scene.give_up(guard.reenter()).await;
        expect_held_once(scene, guard, trouble).await.map(|()| completed)
    });
}

#[test]
fn a_lock_by_the_owner_given_up_at_any_await_leaves_the_count_as_it_was() {
    every(&[Rivals::Nobody], async |scene| {
        let mutex = scene.mutex().owner(&Owner::new());
        let guard = mutex.lock().await.map_err(|error| error.to_string())?;
        let trouble = scene.inflict();
        let completed = scene.give_up(mutex.lock()).await;
        drop(mutex);
        expect_held_once(scene, guard, trouble).await.map(|()| completed)
    });
}

#[test]
fn waiting_for_the_loss_can_be_given_up_at_any_await() {
    every(&[Rivals::Nobody], async |scene| {
        let guard = held(&scene).await;
        let trouble = scene.inflict();
        let lost = scene.give_up(guard.lost()).await;
        // Without a loss it never completes: a few polls are all there are.
        let completed = lost || scene.case.polls > 3;
        if guard.is_held() {
            return expect_held_once(scene, guard, trouble).await.map(|()| completed);
        }
        drop(guard);
        let nobody = scene.waiter().await;
        scene.expect_nothing(nobody, trouble).await.map(|()| completed)
    });
}

#[test]
fn work_given_up_at_any_await_is_dropped_and_the_lock_stays_held() {
    every(&[Rivals::Nobody], async |scene| {
        let guard = held(&scene).await;
        let trouble = scene.inflict();
        let dropped = Cell::new(false);
        let flag = OnDrop(&dropped);
        let work = async move {
            let _flag = flag;
            for _ in 0..3 {
                sleep(Duration::from_millis(20)).await;
            }
        };
        let completed = scene.give_up(guard.while_held(work)).await;
        if !dropped.get() {
            return Err("the work was not dropped".into());
        }
        expect_held_once(scene, guard, trouble).await.map(|()| completed)
    });
}

struct OnDrop<'a>(&'a Cell<bool>);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.set(true);
    }
}

/// What the guards have in common.
pub(crate) trait Guard: Sized {
    fn hold(&self) -> &HoldId;
    fn count(&self) -> u32;
    fn is_held(&self) -> bool;
    async fn release(self) -> Result<(), Error>;
    /// Whether another client can have the lock for itself.
    async fn lets_in(client: &Quorate) -> Result<bool, Error>;
}

macro_rules! guard {
    ($name:ident, $lock:ident.$try:ident) => {
        impl Guard for $name {
            fn hold(&self) -> &HoldId {
                Self::hold(self)
            }

            fn count(&self) -> u32 {
                Self::count(self)
            }

            fn is_held(&self) -> bool {
                Self::is_held(self)
            }

            async fn release(self) -> Result<(), Error> {
                Self::release(self).await
            }

            async fn lets_in(client: &Quorate) -> Result<bool, Error> {
                client.$lock("a").$try().await.map(|entered| entered.is_some())
            }
        }
    };
}
guard!(MutexGuard, mutex.try_lock);
guard!(ReadGuard, rw_lock.try_write);
guard!(WriteGuard, rw_lock.try_write);

impl Guard for PermitGuard {
    fn hold(&self) -> &HoldId {
        Self::hold(self)
    }

    fn count(&self) -> u32 {
        Self::count(self)
    }

    fn is_held(&self) -> bool {
        Self::is_held(self)
    }

    async fn release(self) -> Result<(), Error> {
        Self::release(self).await
    }

    async fn lets_in(client: &Quorate) -> Result<bool, Error> {
        client.semaphore("a", 2).try_acquire_many(2).await.map(|entered| entered.is_some())
    }
}

/// One round trip later, and everywhere at the next renewal after the trouble, the voters know the
/// hold with a count of one. Nobody else enters before a release, and that leaves nothing.
pub(crate) async fn expect_held_once<G: Guard>(
    mut scene: Scene,
    guard: G,
    trouble: Troubled,
) -> Result<(), String> {
    if guard.count() != 1 {
        return Err(format!("the count is {}", guard.count()));
    }
    sleep(scene.case.trouble.round_trip()).await;
    check::counts(scene.obedient(), guard.hold(), 1)?;
    trouble.heal().await;
    check::within(LEASE / 2, || check::counts(&scene.voters, guard.hold(), 1)).await?;
    if !guard.is_held() {
        return Err("the lock is lost".into());
    }
    match G::lets_in(&scene.other).await {
        Ok(false) => {}
        other => return Err(format!("another client is let in: {other:?}")),
    }
    scene.leave_if_told();
    guard.release().await.map_err(|error| error.to_string())?;
    let nobody = scene.waiter().await;
    scene.expect_end(nobody).await
}
