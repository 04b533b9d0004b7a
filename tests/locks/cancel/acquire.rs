//! Whatever asks for a lock, given up at every await: no vote is left, no place in a queue, and no
//! listener.

use quorate_tests::prelude::*;

use crate::cancel::{
    kinds::{
        Access::{self, BothPermits, FairLock, FairRead, Lead, Lock, Permit, Read, Several, Write},
        LIMIT_MS,
    },
    scene::{
        Rivals::{self, Holds, InLine, InQueue, Nobody},
        every,
    },
};

/// Waits for it, tries, and waits for a shorter time than others have it, beside each rival.
fn ask_for(access: Access, rivals: &[Rivals]) {
    let holders: Vec<_> = rivals.iter().copied().filter(|it| matches!(it, Holds(_))).collect();
    for (how, rivals) in
        [(How::Wait, rivals), (How::Try, rivals), (How::Within(LIMIT_MS), &holders)]
    {
        ask_by(how, access, rivals);
    }
}

fn ask_by(how: How, access: Access, rivals: &[Rivals]) {
    every((access, how), rivals, async |mut scene| {
        let rival = scene.rivals().await;
        let trouble = scene.inflict();
        let completed = scene.give_up(access.ask(scene.client(), how, None)).await;
        scene.leave_if_told();
        scene.expect_nothing(rival, trouble).await.map(|()| completed)
    });
}

#[test]
fn a_lock_given_up_at_any_await_leaves_nothing() {
    ask_for(Lock, &[Nobody, Holds(Lock), InLine(Lock)]);
}

#[test]
fn a_fair_lock_given_up_at_any_await_leaves_nothing() {
    ask_for(FairLock, &[Nobody, Holds(Lock), InLine(Lock), InQueue(Lock, FairLock)]);
    ask_by(How::Within(LIMIT_MS), FairLock, &[InQueue(Lock, FairLock)]);
}

#[test]
fn several_locks_given_up_at_any_await_leave_nothing() {
    ask_for(Several, &[Nobody, Holds(Lock), InQueue(Lock, FairLock)]);
}

// Whom a reader waits for, and whom it does not.
#[test]
fn a_read_given_up_at_any_await_leaves_nothing() {
    ask_for(Read, &[Nobody, Holds(Write), InQueue(Read, Write), InQueue(Write, FairRead)]);
}

#[test]
fn a_write_given_up_at_any_await_leaves_nothing() {
    let in_queue = [InQueue(Read, Write), InQueue(Write, FairRead)];
    ask_for(Write, &[&[Nobody, Holds(Read), Holds(Write)], &in_queue[..]].concat());
}

#[test]
fn a_permit_given_up_at_any_await_leaves_nothing() {
    ask_for(Permit, &[Nobody, Holds(BothPermits), InQueue(BothPermits, Permit)]);
}

#[test]
fn all_permits_given_up_at_any_await_leave_nothing() {
    ask_by(How::Wait, BothPermits, &[Nobody, Holds(BothPermits), InQueue(BothPermits, Permit)]);
}

#[test]
fn a_campaign_given_up_at_any_await_leaves_nothing() {
    ask_for(Lead, &[Nobody, Holds(Lead), InQueue(Lead, Lead)]);
}
