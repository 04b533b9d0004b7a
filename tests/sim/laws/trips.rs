//! An acquire that nobody contends takes one round trip to the fastest majority, and so does a
//! release; neither waits for the rest. A waiter has the lock at once after a release.

use std::time::Duration;

use tokio::time::sleep;

use super::{Law, calm::Calm};

const LOCK: &str = "trips";

pub(crate) async fn measure(calm: &Calm<'_>) {
    let world = calm.world;
    let before = runs(calm);
    let started_ms = world.now_ms();
    let guard = match calm.holder.mutex(LOCK).lock().await {
        Ok(guard) => guard,
        Err(error) => return breach(calm, format!("a free lock fails: {error}")),
    };
    expect(calm, "a free lock", started_ms);
    // By now everybody has answered, and nobody is asked twice.
    sleep(2 * calm.slowest).await;
    if runs(calm).into_iter().zip(before).any(|(now, before)| now > before + 1) {
        breach(calm, "an acquire asked a voter twice".into());
    }
    let waiter = calm.waiter.clone();
    let waiting = tokio::spawn(async move { waiter.mutex(LOCK).lock().await });
    // Until it has asked, listens, and has asked again.
    sleep(10 * calm.slowest + Duration::from_millis(50)).await;
    let started_ms = world.now_ms();
    if let Err(error) = guard.release().await {
        breach(calm, format!("a release fails: {error}"));
    }
    expect(calm, "a release", started_ms);
    let handed = waiting.await;
    let took = calm.since(started_ms);
    // There with the release, back with the call, and a round trip; each by the slowest way.
    let most = 3 * calm.slowest + Duration::from_millis(3);
    if took > most || !matches!(handed, Ok(Ok(_))) {
        breach(calm, format!("a hand-off took {took:?}, {most:?} are the most: {handed:?}"));
    }
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
