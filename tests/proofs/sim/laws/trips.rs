//! An acquire that nobody contends takes one round trip to the fastest majority, and so does a
//! release; neither waits for the rest. A second one tells a token that voters differ about. A
//! waiter has the lock at once after a release.

use quorate::embedded::InFlight;

use crate::sim::prelude::*;

const LOCK: &str = "trips";
const KEY: &str = "quorate:{trips}";
const ACQUIRE: &str = "mutex/acquire";

pub(crate) async fn measure(calm: &Calm<'_>) -> Result<(), Told> {
    // One in many is enough, and finds no bug before the law of tokens does.
    if calm.world.plan.seed % 16 == 15 {
        counted_apart(calm).await;
    }
    // Each ends with the guard of the next.
    let guard = uncontended(calm).await?;
    let guard = called(calm, guard).await?;
    let guard = called_in_vain(calm, guard).await?;
    let guard = released_meanwhile(calm, guard).await?;
    behind_the_dead(calm, guard).await
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
        return calm.costs("a free lock fails whose voters have counted apart".into());
    };
    let took = calm.since(started_ms);
    let heard = u64::from(guard.token()) == 5_000_000_000_000_064;
    // Where it is the only voter that is needed, or was not heard, there is nothing to tell.
    let trips = if heard && calm.world.plan.quorum() > 1 { 2 } else { 1 };
    if took > trips * calm.fastest || took < calm.fastest || trips == 2 && took == calm.fastest {
        let fastest = calm.fastest;
        let what = format!("{trips} trips of {fastest:?} took {took:?}, with a token to tell");
        calm.costs(what);
    }
    drop(guard);
    sleep(2 * calm.slowest + MS).await;
}

async fn uncontended(calm: &Calm<'_>) -> Result<Guard, Told> {
    let runs = calm.runs(ACQUIRE);
    let free = asking(&calm.holder);
    let guard = calm.in_one_trip("a free lock", free.lock()).await?;
    // By now everybody has answered, and nobody is asked twice.
    sleep(2 * calm.slowest).await;
    calm.expect_runs(ACQUIRE, runs, 1);
    Ok(guard)
}

/// A release calls the waiter.
async fn called(calm: &Calm<'_>, guard: Guard) -> Result<Guard, Told> {
    let runs = calm.runs(ACQUIRE);
    let waiting = wait(calm, &calm.waiter).await;
    // Those who stand behind it in the same client ask for nothing.
    let behind: Vec<Waiting> = (0..2).map(|_| asking(&calm.waiter).wait()).collect();
    sleep(4 * calm.slowest).await;
    behind.iter().for_each(JoinHandle::abort);
    calm.in_one_trip("a release", guard.release()).await?;
    // There with the release, back with the call, and a round trip; each by the slowest way.
    let most = (3 * calm.slowest).saturating_sub(calm.fastest) + 3 * MS;
    let guard = calm.handed("who was called", waiting, most).await?;
    // When it came, and when it was called.
    calm.expect_runs(ACQUIRE, runs, 2);
    Ok(guard)
}

/// What calls the waiter is lost with its connections.
async fn called_in_vain(calm: &Calm<'_>, guard: Guard) -> Result<Guard, Told> {
    let waiting = wait(calm, &calm.holder).await;
    let releasing = tokio::spawn(guard.release());
    sleep(calm.longest_there).await;
    for voter in &calm.world.voters {
        voter.cut(InFlight::Arrives);
    }
    let most = 2 * calm.slowest + 23 * MS;
    let guard = calm.handed("who was called in vain", waiting, most).await?;
    // Cut off from the answers, it may say that it does not know.
    drop(releasing.await);
    Ok(guard)
}

/// The release falls anywhere into the time in which the waiter asks.
async fn released_meanwhile(calm: &Calm<'_>, guard: Guard) -> Result<Guard, Told> {
    let mut chance = chance(&calm.world.plan, 5_000);
    let waiting = asking(&calm.waiter).wait();
    sleep(calm.slowest.mul_f64(chance.random_range(0.0..4.0))).await;
    drop(guard);
    // Votes that are half given back are a split, in which the silent are waited for once.
    let most = 8 * calm.slowest + Duration::from_secs(2);
    drop(calm.handed("who asked meanwhile", waiting, most).await?);
    sleep(2 * calm.slowest).await;
    let again = asking(&calm.holder).lock().await;
    again.map_err(|error| calm.stops(format!("a free lock fails: {error}")))
}

/// Whoever has it dies; nobody calls when its votes end.
async fn behind_the_dead(calm: &Calm<'_>, dead: Guard) -> Result<(), Told> {
    let world = calm.world;
    sleep(2 * calm.slowest).await;
    let waiting = wait(calm, &calm.waiter).await;
    calm.holders_machine.kill();
    // One voter more than needed keeps its vote for long: nobody waits for that.
    if calm.reachable.len() > world.plan.quorum() {
        let kept = world.voters[calm.reachable[0]].command(&["PEXPIRE", KEY, "600000"]);
        kept.expect("it can be reached");
    }
    // Clocks that differ let it ask a little early, and then wait for the silent once; the poll
    // interval is much longer.
    let most = Duration::from_millis(LEASE_MS * 101 / 100) + Duration::from_secs(3);
    if let Ok(guard) = calm.handed("behind the dead", waiting, most).await
        && let Err(error) = guard.release().await
    {
        calm.costs(format!("a release fails: {error}"));
    }
    drop(dead);
    for voter in &calm.reachable {
        world.voters[*voter].command(&["DEL", KEY]).expect("it can be reached");
        world.unsteady(*voter);
    }
    Ok(())
}

fn asking(client: &Quorate) -> Asking {
    Asking::of(client, LOCK, Kind::Plain)
}

/// Has somebody wait for the lock, until it is refused.
async fn wait(calm: &Calm<'_>, client: &Quorate) -> Waiting {
    let waiting = asking(client).wait();
    sleep(10 * calm.slowest + 50 * MS).await;
    waiting
}
