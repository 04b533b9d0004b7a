//! What a guard can do, given up at every await; and its drop.

use std::cell::Cell;

use quorate_tests::prelude::*;

use crate::cancel::{
    check,
    kinds::Access::{self, BothPermits, Lead, Lock, Permit, Read, Several, Write},
    scene::{
        LEASE, Rivals,
        Rivals::{Nobody, Waits},
        Scene, every, text,
    },
    trouble::Troubled,
};

/// Ends what is held, beside each of the rivals.
fn end<T>(access: Access, rivals: &[Rivals], end: impl AsyncFn(Guard) -> T) {
    every(access, rivals, async |mut scene| {
        let held = access.have(scene.client(), None).await;
        let rival = scene.rivals().await;
        let trouble = scene.inflict();
        // Never polled, it drops the guard: that is the drop of a guard as well.
        let completed = scene.give_up(end(held)).await;
        scene.leave_if_told();
        scene.expect_nothing(rival, trouble).await.map(|()| completed)
    });
}

#[test]
fn a_release_given_up_at_any_await_releases_all_the_same() {
    for (access, rivals) in [
        (Lock, [Nobody, Waits(Lock)]),
        (Read, [Nobody, Waits(Write)]),
        (Write, [Waits(Read), Waits(Write)]),
        (BothPermits, [Nobody, Waits(Permit)]),
        (Lead, [Nobody, Waits(Lead)]),
        (Several, [Nobody, Waits(Lock)]),
    ] {
        end(access, &rivals, Guard::release);
    }
}

// Given up half way it has both, and gives both back.
#[test]
fn a_downgrade_given_up_at_any_await_leaves_nothing() {
    let rivals = [Nobody, Waits(Read), Waits(Write)];
    end(Write, &rivals, Guard::downgrade);
}

/// Begins something with what is held, or as its owner: it stays as it was.
fn begin<T>(access: Access, owner: Option<&Owner>, begin: &impl AsyncFn(&Quorate, &Guard) -> T) {
    every(access, &[Nobody], async |scene| {
        let held = access.have(scene.client(), owner).await;
        let trouble = scene.inflict();
        let completed = scene.give_up(begin(scene.client(), &held)).await;
        expect_held_once(scene, access, held, trouble).await.map(|()| completed)
    });
}

#[test]
fn a_further_entry_given_up_at_any_await_leaves_the_count_as_it_was() {
    begin(Lock, None, &async |_, held| held.mutex().reenter().await);
    begin(Write, None, &async |_, held| held.read().await);
}

#[test]
fn what_an_owner_asks_for_again_and_gives_up_at_any_await_leaves_the_count_as_it_was() {
    let owner = Owner::new();
    for (has, wants) in [(Lock, Lock), (Read, Read), (Write, Read), (Permit, Permit)] {
        begin(has, Some(&owner), &async |client, _| {
            wants.ask(client, How::Wait, Some(&owner)).await
        });
    }
}

#[test]
fn work_given_up_at_any_await_is_dropped_and_the_lock_stays_held() {
    struct OnDrop<'a>(&'a Cell<bool>);

    impl Drop for OnDrop<'_> {
        fn drop(&mut self) {
            self.0.set(true);
        }
    }

    every("work", &[Nobody], async |scene| {
        let held = Lock.have(scene.client(), None).await;
        let trouble = scene.inflict();
        let dropped = Cell::new(false);
        let flag = OnDrop(&dropped);
        let work = async move {
            let _flag = flag;
            for _ in 0..3 {
                sleep(Duration::from_millis(20)).await;
            }
        };
        let completed = scene.give_up(held.mutex().while_held(work)).await;
        if !dropped.get() {
            return Err("the work was not dropped".into());
        }
        expect_held_once(scene, Lock, held, trouble).await.map(|()| completed)
    });
}

#[test]
fn a_proclamation_given_up_at_any_await_leaves_the_lead_with_one_value_on_all_voters() {
    every("proclamation", &[Nobody], async |mut scene| {
        let held = Lead.have(scene.client(), None).await;
        let Guard::Lead(leadership) = &held else { unreachable!("it leads") };
        let trouble = scene.inflict();
        let completed = scene.give_up(leadership.proclaim("new")).await;
        sleep(scene.case.trouble.round_trip()).await;
        trouble.heal().await;
        let said = if scene.case.polls == 0 { "0" } else { "new" };
        check::within(LEASE / 2, || check::says(&scene.voters, held.hold(), said)).await?;
        if !held.is_held() {
            return Err("the lead is lost".into());
        }
        scene.leave_if_told();
        held.release().await.map_err(text)?;
        let nobody = scene.rivals().await;
        scene.expect_end(nobody).await.map(|()| completed)
    });
}

/// One round trip later, and everywhere at the next renewal after the trouble, the voters know the
/// hold with a count of one. Nobody else enters before a release, and that leaves nothing.
async fn expect_held_once(
    mut scene: Scene,
    access: Access,
    held: Guard,
    trouble: Troubled,
) -> Result<(), String> {
    if held.count() != 1 {
        return Err(format!("the count is {}", held.count()));
    }
    sleep(scene.case.trouble.round_trip()).await;
    check::counts(scene.obedient(), held.hold(), 1)?;
    trouble.heal().await;
    check::within(LEASE / 2, || check::counts(&scene.voters, held.hold(), 1)).await?;
    if !held.is_held() {
        return Err("the lock is lost".into());
    }
    match access.excludes().ask(&scene.other, How::Try, None).await {
        Ok(None) => {}
        other => return Err(format!("another client is let in: {other:?}")),
    }
    scene.leave_if_told();
    held.release().await.map_err(text)?;
    let nobody = scene.rivals().await;
    scene.expect_end(nobody).await
}
