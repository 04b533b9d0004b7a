//! An acquire that nobody contends takes one round trip to the fastest majority, and so does a
//! release; neither waits for the rest. A second one tells a token that voters differ about. A
//! waiter has the lock at once after a release.

use std::time::Duration;

use quorate::{Error, MutexGuard, Quorate, embedded::InFlight};
use rand::RngExt;
use tokio::{task::JoinHandle, time::sleep};

use super::{
    Law,
    calm::{Calm, LEASE_MS},
};
use crate::sim::voters::chance;

const LOCK: &str = "trips";
const KEY: &str = "quorate:{trips}";

pub(crate) async fn measure(calm: &Calm<'_>) {
    // One in many is enough, and finds no bug before the law of tokens does.
    if calm.world.plan.seed % 16 == 15 {
        counted_apart(calm).await;
    }
    // Each ends with the guard of the next.
    let Some(guard) = uncontended(calm).await else { return };
    let Some(guard) = called(calm, guard).await else { return };
    let Some(guard) = called_in_vain(calm, guard).await else { return };
    let Some(guard) = released_meanwhile(calm, guard).await else { return };
    behind_the_dead(calm, guard).await;
}

/// One voter has counted further than the others: what it says is the token, and is told to a
/// majority before anybody has the guard.
async fn counted_apart(calm: &Calm<'_>) {
    let ahead = &calm.world.voters[calm.reachable[0]];
    // Ahead of every wall clock, until the next hold has a token that is as far ahead.
    let (further, key) = ("5000000000000000", "quorate:{apart}:fence");
    ahead.command(&["SET", key, further]).expect("it can be reached");
    ahead.command(&["PEXPIRE", key, "600000"]).expect("it can be reached");
    let mutex = calm.holder.mutex("apart");
    let started_ms = calm.world.now_ms();
    let Ok(guard) = mutex.lock().await else {
        return breach(calm, "a free lock fails whose voters have counted apart".into());
    };
    let took = calm.since(started_ms);
    let heard = u64::from(guard.token()) == 5_000_000_000_000_001;
    // Where it is the only voter that is needed, or was not heard, there is nothing to tell.
    let trips = if heard && calm.world.plan.quorum() > 1 { 2 } else { 1 };
    if took > trips * calm.fastest || took < calm.fastest || trips == 2 && took == calm.fastest {
        let fastest = calm.fastest;
        let what = format!("{trips} trips of {fastest:?} took {took:?}, with a token to tell");
        breach(calm, what);
    }
    drop(guard);
    sleep(2 * calm.slowest + Duration::from_millis(1)).await;
}

async fn uncontended(calm: &Calm<'_>) -> Option<MutexGuard> {
    let before = runs(calm);
    let started_ms = calm.world.now_ms();
    let guard = lock(calm, &calm.holder).await?;
    expect(calm, "a free lock", started_ms);
    // By now everybody has answered, and nobody is asked twice.
    sleep(2 * calm.slowest).await;
    if runs(calm).into_iter().zip(before).any(|(now, before)| now > before + 1) {
        breach(calm, "an acquire asked a voter twice".into());
    }
    Some(guard)
}

/// A release calls the waiter.
async fn called(calm: &Calm<'_>, guard: MutexGuard) -> Option<MutexGuard> {
    let before = runs(calm);
    let waiting = wait(calm, &calm.waiter).await;
    // Those who stand behind it in the same client ask for nothing.
    let behind: Vec<Waiting> = (0..2).map(|_| spawn(&calm.waiter)).collect();
    sleep(4 * calm.slowest).await;
    behind.iter().for_each(JoinHandle::abort);
    let started_ms = calm.world.now_ms();
    if let Err(error) = guard.release().await {
        breach(calm, format!("a release fails: {error}"));
    }
    expect(calm, "a release", started_ms);
    // There with the release, back with the call, and a round trip; each by the slowest way.
    let guard = handed(calm, waiting, started_ms, 3 * calm.slowest).await?;
    // Before it listens, when it listens, and when it was called.
    if runs(calm).into_iter().zip(before).any(|(now, before)| now > before + 3) {
        breach(calm, "a waiter asked a voter more than three times for one hand-off".into());
    }
    Some(guard)
}

/// What calls the waiter is lost with its connections.
async fn called_in_vain(calm: &Calm<'_>, guard: MutexGuard) -> Option<MutexGuard> {
    let waiting = wait(calm, &calm.holder).await;
    let started_ms = calm.world.now_ms();
    let releasing = tokio::spawn(guard.release());
    sleep(calm.longest_there).await;
    for voter in &calm.world.voters {
        voter.cut(InFlight::Arrives);
    }
    let most = calm.longest_there + 2 * calm.slowest + Duration::from_millis(20);
    let guard = handed(calm, waiting, started_ms, most).await?;
    // Cut off from the answers, it may say that it does not know.
    drop(releasing.await);
    Some(guard)
}

/// The release falls anywhere between the first question and the listening.
async fn released_meanwhile(calm: &Calm<'_>, guard: MutexGuard) -> Option<MutexGuard> {
    let mut chance = chance(&calm.world.plan, 5_000);
    let waiting = spawn(&calm.waiter);
    sleep(calm.slowest.mul_f64(chance.random_range(0.0..4.0))).await;
    let started_ms = calm.world.now_ms();
    drop(guard);
    // Votes that are half given back are a split, in which the silent are waited for once.
    let most = 8 * calm.slowest + Duration::from_secs(2);
    drop(handed(calm, waiting, started_ms, most).await?);
    sleep(2 * calm.slowest).await;
    lock(calm, &calm.holder).await
}

/// Whoever has it dies; nobody calls when its votes end.
async fn behind_the_dead(calm: &Calm<'_>, dead: MutexGuard) {
    let world = calm.world;
    sleep(2 * calm.slowest).await;
    let waiting = wait(calm, &calm.waiter).await;
    let granted_ms = world.now_ms();
    calm.holders_machine.kill();
    // One voter more than needed keeps its vote for long: nobody waits for that.
    if calm.reachable.len() > world.plan.quorum() {
        let kept = world.voters[calm.reachable[0]].command(&["PEXPIRE", KEY, "600000"]);
        kept.expect("it can be reached");
    }
    // Clocks that differ let it ask a little early, and then wait for the silent once; the poll
    // interval is much longer.
    let most = Duration::from_millis(LEASE_MS * 101 / 100) + Duration::from_secs(3);
    if let Some(guard) = handed(calm, waiting, granted_ms, most).await
        && let Err(error) = guard.release().await
    {
        breach(calm, format!("a release fails: {error}"));
    }
    drop(dead);
    for voter in &calm.reachable {
        world.voters[*voter].command(&["DEL", KEY]).expect("it can be reached");
        world.unsteady(*voter);
    }
}

async fn lock(calm: &Calm<'_>, client: &Quorate) -> Option<MutexGuard> {
    match client.mutex(LOCK).lock().await {
        Ok(guard) => Some(guard),
        Err(error) => {
            breach(calm, format!("a free lock fails: {error}"));
            None
        }
    }
}

type Waiting = JoinHandle<Result<MutexGuard, Error>>;

fn spawn(client: &Quorate) -> Waiting {
    let client = client.clone();
    tokio::spawn(async move { client.mutex(LOCK).lock().await })
}

/// Has somebody wait for the lock, until it has asked, listens, and has asked again.
async fn wait(calm: &Calm<'_>, client: &Quorate) -> Waiting {
    let waiting = spawn(client);
    sleep(10 * calm.slowest + Duration::from_millis(50)).await;
    waiting
}

async fn handed(
    calm: &Calm<'_>,
    waiting: Waiting,
    started_ms: u64,
    most: Duration,
) -> Option<MutexGuard> {
    let handed = waiting.await;
    let took = calm.since(started_ms);
    let most = most + Duration::from_millis(3);
    if took > most || !matches!(handed, Ok(Ok(_))) {
        breach(calm, format!("a hand-off took {took:?}, {most:?} are the most: {handed:?}"));
    }
    handed.ok()?.ok()
}

fn runs(calm: &Calm<'_>) -> Vec<u64> {
    calm.world.voters.iter().map(|voter| voter.runs("mutex/acquire")).collect()
}

fn expect(calm: &Calm<'_>, what: &str, started_ms: u64) {
    let (took, expected) = (calm.since(started_ms), calm.fastest);
    if took != expected {
        breach(calm, format!("{what} took {took:?}, the fastest majority {expected:?}"));
    }
}

fn breach(calm: &Calm<'_>, what: String) {
    calm.world.breach(Law::FewestTrips, None, what);
}
