//! An acquire that nobody contends takes one round trip to the fastest majority, and so does a
//! release; neither waits for the rest. A waiter has the lock at once after a release.

use std::{sync::Arc, time::Duration};

use quorate::{Quorate, embedded::Machine};
use rand::RngExt;
use tokio::time::sleep;

use super::Law;
use crate::{
    clients::builder,
    plan::Times,
    voters::{Way, Ways, chance},
    world::{World, locked},
};

const LOCK: &str = "trips";

/// Measures on the voters of a schedule that is over: each has a way of a fixed length now, and as
/// many as can be spared are silent.
pub(crate) async fn measure(world: &Arc<World>, ways: &Ways) {
    let (holder, waiter) = match (connect(world, "holds").await, connect(world, "waits").await) {
        (Ok(holder), Ok(waiter)) => (holder, waiter),
        (holder, waiter) => {
            let what = format!("nobody can connect to measure: {holder:?} {waiter:?}");
            return world.breach(Law::FewestTrips, None, what);
        }
    };
    let mut trips = fix(world, ways);
    trips.sort_unstable();
    let (expected, slowest) = (trips[world.plan.quorum() - 1], trips[trips.len() - 1]);
    let before = runs(world);
    let started_ms = world.now_ms();
    let guard = match holder.mutex(LOCK).lock().await {
        Ok(guard) => guard,
        Err(error) => {
            return world.breach(Law::FewestTrips, None, format!("a free lock fails: {error}"));
        }
    };
    expect(world, "a free lock", started_ms, expected);
    // By now everybody has answered, and nobody is asked twice.
    sleep(2 * slowest).await;
    let extra = runs(world).into_iter().zip(before).any(|(now, before)| now > before + 1);
    if extra {
        world.breach(Law::FewestTrips, None, "an acquire asked a voter twice".into());
    }
    let waiting = tokio::spawn(async move { waiter.mutex(LOCK).lock().await });
    // Until it has asked, listens, and has asked again.
    sleep(10 * slowest + Duration::from_millis(50)).await;
    let started_ms = world.now_ms();
    if let Err(error) = guard.release().await {
        world.breach(Law::FewestTrips, None, format!("a release fails: {error}"));
    }
    expect(world, "a release", started_ms, expected);
    let handed = waiting.await;
    let took = Duration::from_millis(world.now_ms() - started_ms);
    // There with the release, back with the call, and a round trip; each by the slowest way.
    let most = 3 * slowest + Duration::from_millis(3);
    if took > most || !matches!(handed, Ok(Ok(_))) {
        let what = format!("a hand-off took {took:?}, {most:?} are the most: {handed:?}");
        world.breach(Law::FewestTrips, None, what);
    }
}

async fn connect(world: &World, label: &str) -> Result<Quorate, quorate::Error> {
    // Nothing but a wake-up is soon enough.
    let times =
        Times { lease_ms: 60_000, voter_deadline_ms: 1_000, poll_ms: 20_000, patience_ms: 60_000 };
    let seed = chance(&world.plan, label.len()).random();
    let builder = builder(times).embedded(&world.voters).machine(&Machine::new(label));
    builder.seed(seed).connect().await
}

/// Gives every voter its way. Returns the round trips; the silent have the longest of all.
fn fix(world: &World, ways: &Ways) -> Vec<Duration> {
    let mut chance = chance(&world.plan, 2_000);
    let voters = world.voters.len();
    let spare = voters - world.plan.quorum();
    let silent = chance.random_range(0..=spare);
    let first = chance.random_range(0..voters);
    let mut way = || Duration::from_millis(chance.random_range(1..40));
    let fixed: Vec<Way> = (0..voters)
        .map(|voter| {
            let is_silent = (voter + voters - first) % voters < silent;
            (!is_silent).then(|| (way(), way()))
        })
        .collect();
    world.note("trips", || format!("the ways there and back: {fixed:?}"));
    let trips = fixed.iter().flatten().map(|(there, back)| *there + *back).collect();
    *locked(&ways.fixed) = Some(fixed);
    trips
}

fn runs(world: &World) -> Vec<u64> {
    world.voters.iter().map(|voter| voter.runs("mutex/acquire")).collect()
}

fn expect(world: &World, what: &str, started_ms: u64, expected: Duration) {
    let took = Duration::from_millis(world.now_ms() - started_ms);
    if took != expected {
        let what = format!("{what} took {took:?}, the fastest majority {expected:?}");
        world.breach(Law::FewestTrips, None, what);
    }
}
