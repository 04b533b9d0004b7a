//! What is given up leaves no trace: not on a voter that can be reached, once what was sent has
//! arrived there; not in a channel.

use super::leaks::CALLS;
use crate::sim::{prelude::*, world::claims};

const LOCK: &str = "traces";

/// While nothing goes wrong at a voter: it has no vote and no place of a client that has and asks
/// for nothing.
pub(crate) fn check(world: &World, look: &Look) {
    if world.plan.mood == Mood::Chaos {
        return;
    }
    // What was given up may still be on its way, and so may what gives it back.
    let settled_ms = 2 * world.plan.network.usual_ms + 5;
    for lock in world.locks.iter().copied() {
        let keys = &lock.claims;
        for (voter, records) in look.records.iter().enumerate() {
            if world.plan.voters[voter].troubled {
                continue;
            }
            let holds = records.iter().filter(|record| keys.contains(&record.key));
            for (hold, _) in holds.flat_map(|record| &record.fields) {
                if world.has_nothing_to_do_with(hold, lock, settled_ms) {
                    let what = format!("voter {voter} has {hold}, which nobody has or wants");
                    world.breach(Law::NothingLeaks, None, what);
                }
            }
        }
    }
}

/// Gives up in the middle of everything.
pub(crate) async fn give_up(calm: &Calm<'_>) {
    let mut chance = chance(&calm.world.plan, 3_000);
    let mut within = |longest: Duration| longest.mul_f64(chance.random_range(0.0..1.0));
    let slowest = calm.slowest;
    let reading = Kind::Read(Preference::Writers);
    let permits = Kind::Permits { wanted: 2, of: 2 };
    let kinds = [Kind::Plain, Kind::Fair, reading, Kind::Write, permits, Kind::Election];
    for kind in kinds {
        let lock = Asking::of(&calm.holder, LOCK, kind);
        drop(timeout(within(2 * slowest), lock.lock()).await);
        expect_none(calm, "a lock() that was given up").await;
    }
    let (mutex, writing) = (calm.holder.mutex(LOCK), calm.holder.rw_lock(LOCK));
    let has_permits = Asking::of(&calm.holder, LOCK, permits).lock().await;
    let leads = calm.holder.election(LOCK).campaign("x").await;
    let (Ok(guard), Ok(writing), Ok(has_permits), Ok(leads)) =
        (mutex.lock().await, writing.write().await, has_permits, leads)
    else {
        return calm.world.breach(Law::NothingLeaks, None, "a free lock cannot be had".into());
    };
    for kind in kinds {
        let lock = Asking::of(&calm.waiter, LOCK, kind);
        drop(timeout(within(6 * slowest), lock.lock()).await);
        sleep(2 * slowest + MS).await;
        for voter in calm.reachable.iter().map(|voter| &calm.world.voters[*voter]) {
            // By the other channels clients are called, for as long as they live.
            let listens = |channel: &String| !channel.starts_with(CALLS);
            if voter.subscriptions().iter().any(listens) {
                let what = "a waiter that gave up is still listening".into();
                calm.world.breach(Law::NothingLeaks, None, what);
            }
            let waits = |record: &Record| {
                record.key.ends_with(":queue") || record.key.ends_with(":writers")
            };
            if voter.records().iter().any(waits) {
                let what = "a waiter that gave up is still in the queue".into();
                calm.world.breach(Law::NothingLeaks, None, what);
            }
        }
    }
    drop(timeout(within(slowest), leads.proclaim("y")).await);
    drop(leads);
    drop(timeout(within(slowest), guard.reenter()).await);
    drop(guard);
    drop(timeout(within(slowest), has_permits.reenter()).await);
    drop(has_permits);
    drop(timeout(within(2 * slowest), writing.read()).await);
    drop(timeout(within(3 * slowest), writing.downgrade()).await);
    expect_none(calm, "a guard that was dropped").await;
}

/// A voter that does not answer for a while is told all the same, long before the lease ends.
pub(crate) async fn reach_late(calm: &Calm<'_>, ways: &Ways) {
    let late = calm.reachable[0];
    let cut_off = |is_so: bool| {
        if let Some(fixed) = &mut *locked(&ways.fixed) {
            fixed[late] = calm.ways[late].filter(|_| !is_so);
        }
    };
    let Ok(guard) = calm.holder.mutex(LOCK).lock().await else {
        return calm.world.breach(Law::NothingLeaks, None, "a free lock cannot be had".into());
    };
    // All have granted, as far as they can be reached.
    sleep(calm.slowest).await;
    cut_off(true);
    drop(guard);
    sleep(Duration::from_secs(3)).await;
    cut_off(false);
    // It is asked once a second or so, and has a second to answer.
    sleep(Duration::from_secs(4)).await;
    expect_none(calm, "a release that did not arrive at first").await;
    // The same with a caller who gives up: what it asked for arrives, what takes it back does not.
    let mutex = calm.waiter.mutex(LOCK);
    let mut asking = Box::pin(mutex.lock());
    assert!(futures::poll!(&mut asking).is_pending(), "the ways are a millisecond at least");
    // The voters' tasks send it before any time passes.
    sleep(MS).await;
    cut_off(true);
    drop(asking);
    sleep(Duration::from_secs(3)).await;
    cut_off(false);
    sleep(Duration::from_secs(4)).await;
    expect_none(calm, "an undo that did not arrive at first").await;
}

/// A client that is closed leaves nothing either, and what it had is lost.
pub(crate) async fn close(calm: &Calm<'_>) {
    let Ok(guard) = calm.waiter.mutex(LOCK).lock().await else {
        return calm.world.breach(Law::NothingLeaks, None, "a free lock cannot be had".into());
    };
    drop(calm.waiter.close().await);
    if guard.is_held() {
        calm.world.breach(Law::TrustEndsEarly, None, "a closed client holds a lock".into());
    }
    expect_none(calm, "a client that was closed").await;
}

pub(crate) async fn expect_none(calm: &Calm<'_>, what: &str) {
    sleep(2 * calm.slowest + Duration::from_millis(1)).await;
    for voter in &calm.reachable {
        for record in claims(&calm.world.voters[*voter]) {
            let what = format!("{what} left {record:?} on voter {voter}");
            calm.world.breach(Law::NothingLeaks, None, what);
        }
    }
}
