//! In order: a free lock costs one round trip, a hand-over a message and a round trip; whoever
//! comes first is first, nobody passes, and a dead waiter is passed over when its place has ended.

use std::time::Duration;

use quorate::{Error, MutexGuard, Quorate, embedded::Machine};
use rand::{RngExt, rngs::StdRng};
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::{
    Law,
    calm::{self, Calm, WAITER_DEADLINE_MS},
    order::place_of,
    traces::expect_none,
};
use crate::sim::{voters::chance, world::locked};

const LOCK: &str = "turns";
const WAITERS: usize = 5;
const MS: Duration = Duration::from_millis(1);

/// A waiter's place is told again so long after its last bid, and not before.
const REFRESH_MS: u64 = WAITER_DEADLINE_MS / 3;

pub(crate) async fn measure(calm: &Calm<'_>) {
    let Some(guard) = uncontended(calm).await else { return };
    let mut chance = chance(&calm.world.plan, 6_000);
    // One of them: together they take a quarter of a whole schedule.
    match chance.random_range(0..4) {
        0 | 1 => one_by_one(calm, guard).await,
        2 => left_by_the_first(calm, guard, &mut chance).await,
        _ => behind_the_dead(calm, guard).await,
    }
}

async fn uncontended(calm: &Calm<'_>) -> Option<MutexGuard> {
    let started_ms = calm.world.now_ms();
    let guard = lock(calm).await?;
    let took = calm.since(started_ms);
    if took != calm.fastest {
        let fastest = calm.fastest;
        costs(calm, &format!("a free lock took {took:?}, the fastest majority {fastest:?}"));
    }
    // By now everybody has answered, and nobody is asked twice.
    sleep(2 * calm.slowest).await;
    let runs = bids(calm, started_ms).len();
    if runs > calm.reachable.len() {
        costs(calm, &format!("a free lock was asked for {runs} times"));
    }
    Some(guard)
}

async fn one_by_one(calm: &Calm<'_>, mut guard: MutexGuard) {
    let mut line = Vec::new();
    for number in 0..WAITERS {
        line.push(wait(if number % 2 == 0 { &calm.waiter } else { &calm.holder }));
        sleep(settling(calm)).await;
    }
    for (number, mut waiting) in line.into_iter().enumerate() {
        let started_ms = calm.world.now_ms();
        let releasing = tokio::spawn(guard.release());
        // Right behind the release, when the voters are free and the first has only been called.
        let passing = calm.holder.mutex(LOCK);
        let passing = tokio::spawn(async move {
            sleep(MS).await;
            passing.try_lock().await
        });
        let longest = 10 * calm.slowest + Duration::from_millis(50);
        let Ok(Ok(Ok(next))) = timeout(longest, &mut waiting).await else {
            let what = format!("waiter {number} is not the next after {longest:?}");
            return calm.world.breach(Law::FairOrder, None, what);
        };
        let took = calm.since(started_ms);
        sleep(2 * calm.slowest).await;
        check_bids(calm, started_ms, next.hold().as_str(), took);
        if let Ok(Ok(Some(passed))) = passing.await {
            let what = format!("{} passed those who waited in order", passed.hold());
            calm.world.breach(Law::FairOrder, None, what);
        }
        if let Ok(Err(error)) = releasing.await {
            costs(calm, &format!("a release fails: {error}"));
        }
        guard = next;
    }
    drop(guard);
    expect_none(calm, "a lock that was handed over").await;
}

/// Those who are not called bid only to tell their places again.
fn check_bids(calm: &Calm<'_>, since_ms: u64, hold: &str, took: Duration) {
    let winner = place_of(hold).unwrap_or_default();
    let mut expected = call(calm) + calm.fastest;
    let all = bids(calm, 0);
    let mut bids_of_winner = vec![0; calm.ways.len()];
    for (at_ms, voter, place) in all.iter().filter(|(at_ms, ..)| *at_ms > since_ms) {
        let before = all.iter().filter(|(one, other_voter, other)| {
            one < at_ms && other_voter == voter && other == place
        });
        let last_ms = before.map(|(at_ms, ..)| *at_ms).max().unwrap_or(0);
        if at_ms - last_ms >= REFRESH_MS {
            continue;
        }
        bids_of_winner[*voter] += 1;
        if place != winner || bids_of_winner[*voter] > 1 {
            let what = format!("{place} asked voter {voter} again, and {winner} was called");
            costs(calm, &what);
        }
    }
    let window_ms = u64::try_from(2 * calm.slowest.as_millis()).unwrap_or(u64::MAX);
    let refreshed = all.iter().filter(|(at_ms, _, place)| {
        place == winner && *at_ms + window_ms > since_ms && *at_ms < since_ms + window_ms
    });
    if refreshed.count() > calm.reachable.len() {
        // It was just telling its place, and heard out the answers first.
        expected += calm.slowest;
    }
    // Less, where it was telling its place when the release came.
    if took > expected {
        costs(calm, &format!("a hand-over took {took:?}, {expected:?} are the most"));
    }
}

/// What calls take until a majority is possible; the first is enough for five milliseconds.
fn call(calm: &Calm<'_>) -> Duration {
    let mut trips: Vec<Duration> =
        calm.ways.iter().flatten().map(|(there, back)| *there + *back).collect();
    trips.sort_unstable();
    let silent = calm.ways.len() - trips.len();
    let needed = calm.world.plan.quorum().saturating_sub(silent).max(1);
    trips[needed - 1].min(trips[0] + 5 * MS)
}

/// The first in the queue gives up while it is called.
async fn left_by_the_first(calm: &Calm<'_>, guard: MutexGuard, chance: &mut StdRng) {
    let first = wait(&calm.holder);
    sleep(settling(calm)).await;
    let second = wait(&calm.waiter);
    sleep(settling(calm)).await;
    let releasing = tokio::spawn(guard.release());
    sleep((2 * calm.slowest).mul_f64(chance.random_range(0.0..1.0))).await;
    first.abort();
    drop(first.await);
    // There with its leaving, back with the call, and a round trip; perhaps after the answers to a
    // bid that came too early. Calls that do not come are waited for a little.
    let most = 3 * calm.slowest + 10 * MS;
    match timeout(most, second).await {
        Ok(Ok(Ok(guard))) => drop(guard),
        other => costs(calm, &format!("behind one that gave up {other:?} after {most:?}")),
    }
    drop(releasing.await);
    expect_none(calm, "a waiter that gave up").await;
}

/// The first in the queue dies.
async fn behind_the_dead(calm: &Calm<'_>, guard: MutexGuard) {
    let machine = Machine::new("third");
    let Ok(third) = calm::connect(calm.world, &machine, 4_002).await else {
        return costs(calm, "nobody can connect");
    };
    let dying = third.fair_mutex(LOCK);
    let dead = tokio::spawn(machine.run(async move { dying.lock().await }));
    sleep(settling(calm)).await;
    let waiting = wait(&calm.waiter);
    sleep(settling(calm)).await;
    machine.kill();
    let died_ms = calm.world.now_ms();
    if let Err(error) = guard.release().await {
        costs(calm, &format!("a release fails: {error}"));
    }
    // Its last bid may still have been on the way. Clocks that differ let the next one ask a little
    // early, and once more.
    let deadline = Duration::from_millis(WAITER_DEADLINE_MS * 101 / 100);
    let most = deadline + 2 * calm.slowest + 2 * calm.fastest + 20 * MS;
    match timeout(most, waiting).await {
        Ok(Ok(Ok(guard))) => drop(guard),
        other => {
            let took = calm.since(died_ms);
            costs(calm, &format!("behind a dead waiter {other:?} after {took:?}"));
        }
    }
    drop((dead, third));
    sleep(deadline).await;
    expect_none(calm, "a waiter that died").await;
}

async fn lock(calm: &Calm<'_>) -> Option<MutexGuard> {
    match calm.holder.fair_mutex(LOCK).lock().await {
        Ok(guard) => Some(guard),
        Err(error) => {
            costs(calm, &format!("a free lock fails: {error}"));
            None
        }
    }
}

fn wait(client: &Quorate) -> JoinHandle<Result<MutexGuard, Error>> {
    let mutex = client.fair_mutex(LOCK);
    tokio::spawn(async move { mutex.lock().await })
}

/// Until a waiter has its ticket on all voters, and hears when it is called.
fn settling(calm: &Calm<'_>) -> Duration {
    6 * calm.slowest + 10 * MS
}

fn bids(calm: &Calm<'_>, since_ms: u64) -> Vec<(u64, usize, String)> {
    let queues = locked(&calm.world.queues);
    queues.bids.iter().filter(|(at_ms, ..)| *at_ms > since_ms).cloned().collect()
}

fn costs(calm: &Calm<'_>, what: &str) {
    calm.world.breach(Law::FewestTrips, None, format!("in order: {what}"));
}
