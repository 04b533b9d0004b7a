//! What asks about locks, ends them by force or closes the client, given up at every await.

use quorate_tests::prelude::*;

use crate::cancel::{
    check,
    kinds::Access::{Lead, Lock},
    scene::{
        LEASE, Rivals,
        Rivals::{Holds, Nobody, Waits},
        every, text,
    },
};

/// Asks a question, where nobody has the lock and where somebody has it.
fn question<T>(rivals: [Rivals; 2], ask: &impl AsyncFn(&Quorate) -> T) {
    every("question", &rivals, async |mut scene| {
        let rival = scene.rivals().await;
        let trouble = scene.inflict();
        let completed = scene.give_up(ask(scene.client())).await;
        scene.leave_if_told();
        scene.expect_nothing(rival, trouble).await.map(|()| completed)
    });
}

#[test]
fn a_question_given_up_at_any_await_changes_nothing_and_leaves_no_listener() {
    question([Nobody, Holds(Lock)], &async |client| client.mutex("a").inspect().await);
    question([Nobody, Holds(Lead)], &async |client| client.election("a").leader().await);
    question([Nobody, Holds(Lead)], &async |client| client.election("a").observe().next().await);
}

/// It may have worked or not. What it left has an expiry, the holder learns of it in time, and to
/// call it again finishes it.
#[test]
fn a_forced_release_given_up_at_any_await_is_finished_by_the_next() {
    every("force", &[Nobody], async |scene| {
        let held = Lock.have(&scene.other, None).await;
        let trouble = scene.inflict();
        let (admin, hold) = (scene.client().admin(), held.hold());
        let completed = scene.give_up(admin.end(LockKind::Mutex, "a", hold)).await;
        sleep(scene.case.trouble.round_trip()).await;
        trouble.heal().await;
        // What a stopped voter has to catch up with, and what is on its way.
        sleep(Duration::from_secs(1)).await;
        match admin.end(LockKind::Mutex, "a", hold).await {
            Err(error) if error.is_not_holding() => {}
            ended => drop(ended.map_err(text)?),
        }
        check::only(&scene.voters, None)?;
        check::all_expire(&scene.voters)?;
        let lost = timeout(LEASE / 3, held.mutex().lost()).await;
        lost.map_err(|_| "the holder is not told by its next renewal")?;
        // The marks of ended holds go with the longest lease they guard against.
        check::within(5 * LEASE, || check::nothing(&scene.voters)).await?;
        drop((held, admin));
        let nobody = scene.rivals().await;
        scene.expect_end(nobody).await.map(|()| completed)
    });
}

#[test]
fn a_close_given_up_at_any_await_leaves_nothing() {
    every("close", &[Nobody, Waits(Lock)], async |scene| {
        let held = Lock.have(scene.client(), None).await;
        let rival = scene.rivals().await;
        let trouble = scene.inflict();
        let completed = scene.give_up(scene.client().close()).await;
        if held.is_held() != (scene.case.polls == 0) {
            return Err(format!("after closing is_held() is {}", held.is_held()));
        }
        drop(held);
        trouble.heal().await;
        // What is closed does not repeat what a voter missed: there the lease ends it.
        check::within(LEASE, || check::nothing(&scene.voters)).await?;
        scene.expect_end(rival).await.map(|()| completed)
    });
}
