//! Semaphores: free permits cost one round trip, whoever is called has its own soon after, nobody
//! passes who wants fewer, and what the dead had comes back when their leases end.

use std::time::Duration;

use quorate::{Error, Quorate, embedded::Machine};
use rand::RngExt;
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::{
    Law,
    calm::{self, Calm},
    traces::expect_none,
};
use crate::sim::{
    asking::{Asking, Guard, Kind},
    voters::chance,
};

const SEMAPHORE: &str = "permits";
const PERMITS: u32 = 4;
const MS: Duration = Duration::from_millis(1);

/// What stops a measurement: it has been told.
struct Told;

pub(crate) async fn measure(calm: &Calm<'_>) {
    if uncontended(calm).await.is_err() {
        return;
    }
    // One of them: each costs as much as a good part of a schedule.
    let measured = match chance(&calm.world.plan, 8_000).random_range(0..3) {
        0 => handed_on(calm).await,
        1 => many_before_few(calm).await,
        _ => behind_the_dead(calm).await,
    };
    if measured.is_ok() {
        expect_none(calm, "a semaphore").await;
    }
}

/// Each permit takes a round trip, and asks each voter once, however many are taken.
async fn uncontended(calm: &Calm<'_>) -> Result<(), Told> {
    let asked = runs(calm);
    let mut guards = Vec::new();
    for client in [&calm.holder, &calm.waiter, &calm.holder, &calm.waiter] {
        guards.push(in_one_trip(calm, "a free permit", asking(client, 1).lock()).await?);
        sleep(2 * calm.slowest).await;
    }
    if runs(calm).into_iter().zip(asked).any(|(now, before)| now > before + 4) {
        costs(calm, "a free permit asked a voter twice");
    }
    let tried = asking(&calm.waiter, 1).try_lock().await;
    if !matches!(tried, Ok(None)) {
        costs(calm, &format!("with all permits taken another is {tried:?}"));
    }
    for guard in guards {
        in_one_trip(calm, "a release", guard.release()).await?;
    }
    sleep(2 * calm.slowest).await;
    Ok(())
}

/// One gives all back: as many enter as that is enough for, in order, each called by the one before
/// it.
async fn handed_on(calm: &Calm<'_>) -> Result<(), Told> {
    let all = in_one_trip(calm, "all permits", asking(&calm.holder, PERMITS).lock()).await?;
    let mut waiting = Vec::new();
    for (client, wanted) in [(&calm.waiter, 1), (&calm.holder, 2), (&calm.waiter, 1)] {
        waiting.push(wait(calm, client, wanted).await);
    }
    let mut last = wait(calm, &calm.waiter, 1).await;
    drop(all);
    let mut guards = Vec::new();
    for waiting in waiting {
        guards.push(handed(calm, waiting, "a waiter for a permit").await?);
    }
    sleep(2 * calm.slowest).await;
    waits(calm, &mut last, "one for whom there is no permit");
    drop(guards.pop());
    guards.push(handed(calm, last, "the last waiter for a permit").await?);
    Ok(())
}

/// Who wants all is not passed by who wants one, though one is free, and lets it in by giving up.
async fn many_before_few(calm: &Calm<'_>) -> Result<(), Told> {
    let mut guards = Vec::new();
    for _ in 1..PERMITS {
        guards.push(in_one_trip(calm, "a free permit", asking(&calm.holder, 1).lock()).await?);
        sleep(2 * calm.slowest).await;
    }
    let mut all = wait(calm, &calm.waiter, PERMITS).await;
    let mut one = wait(calm, &calm.holder, 1).await;
    drop(guards.pop());
    sleep(6 * calm.slowest).await;
    waits(calm, &mut all, "one who wants all permits");
    waits(calm, &mut one, "one behind one who wants all permits");
    if chance(&calm.world.plan, 8_001).random_bool(0.5) {
        all.abort();
        drop(all.await);
        drop(handed(calm, one, "a waiter behind one that gave up").await?);
    } else {
        guards.clear();
        drop(handed(calm, all, "one who wants all permits").await?);
        drop(handed(calm, one, "one behind one who wanted all permits").await?);
    }
    Ok(())
}

/// A dead one's permits come back at its own deadline, though others go on.
async fn behind_the_dead(calm: &Calm<'_>) -> Result<(), Told> {
    let machine = Machine::new("third");
    let third = calm::connect(calm.world, &machine, 4_004).await.map_err(|error| {
        costs(calm, &format!("nobody can connect: {error}"));
        Told
    })?;
    let lease = Duration::from_secs(15);
    let dying = third.semaphore(SEMAPHORE, PERMITS).lease(lease);
    let dead = machine.run(async move { dying.acquire_many(2).await }).await;
    let living = calm.holder.semaphore(SEMAPHORE, PERMITS).lease(lease).acquire().await;
    machine.kill();
    let waiting = wait(calm, &calm.waiter, 3).await;
    sleep(lease * 101 / 100 + calm.slowest).await;
    if !matches!(&living, Ok(guard) if guard.is_held()) {
        costs(calm, &format!("beside the dead {living:?} is not held"));
    }
    drop(handed(calm, waiting, "a waiter behind a dead holder").await?);
    drop((living, dead, third));
    Ok(())
}

fn asking(client: &Quorate, wanted: u32) -> Asking {
    Asking::of(client, SEMAPHORE, Kind::Permits { wanted, of: PERMITS })
}

async fn in_one_trip<T>(
    calm: &Calm<'_>,
    what: &str,
    asked: impl Future<Output = Result<T, Error>>,
) -> Result<T, Told> {
    let started_ms = calm.world.now_ms();
    let outcome = asked.await;
    let (took, fastest) = (calm.since(started_ms), calm.fastest);
    if took != fastest {
        costs(calm, &format!("{what} took {took:?}, the fastest majority {fastest:?}"));
    }
    outcome.map_err(|error| {
        costs(calm, &format!("{what} fails: {error}"));
        Told
    })
}

type Waiting = JoinHandle<Result<Guard, Error>>;

/// Has somebody wait, until it has its ticket on all voters and hears when it is called.
async fn wait(calm: &Calm<'_>, client: &Quorate, wanted: u32) -> Waiting {
    let semaphore = asking(client, wanted);
    let waiting = tokio::spawn(async move { semaphore.lock().await });
    sleep(6 * calm.slowest + 10 * MS).await;
    waiting
}

fn waits(calm: &Calm<'_>, waiting: &mut Waiting, who: &str) {
    if waiting.is_finished() {
        let what = format!("among permits: {who} enters before its turn");
        calm.world.breach(Law::FairOrder, None, what);
    }
}

async fn handed(calm: &Calm<'_>, waiting: Waiting, who: &str) -> Result<Guard, Told> {
    // There with the release, back with the call, and a round trip; perhaps after the answers to a
    // bid that just told the place again. Calls that do not come are waited for a little.
    let most = 4 * calm.slowest + 10 * MS;
    match timeout(most, waiting).await {
        Ok(Ok(Ok(guard))) => Ok(guard),
        other => {
            costs(calm, &format!("{who}: {other:?} after {most:?}"));
            Err(Told)
        }
    }
}

fn runs(calm: &Calm<'_>) -> Vec<u64> {
    calm.world.voters.iter().map(|voter| voter.runs("semaphore/acquire")).collect()
}

fn costs(calm: &Calm<'_>, what: &str) {
    calm.world.breach(Law::FewestTrips, None, format!("among permits: {what}"));
}
