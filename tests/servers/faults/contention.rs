//! Clients contend for one lock while voters are killed, stopped and cut off: by a mutex or by a
//! fair one as it comes, and by fair ones alone, whose order is looked at from outside.

use std::time::Duration;

use quorate::{Error, FairMutex, Quorate};
use rand::{RngExt, rngs::StdRng};
use tokio::time::{sleep, timeout};

use crate::faults::trial::{Places, Trial, Turn, try_under_harm};
use quorate_tests::{
    kind::{Client, Kind, Lock},
    scene::{MS, now},
};

const CLIENTS: u64 = 8;
const LEASE: Duration = Duration::from_secs(4);
/// Of a hold that is not renewed.
const FIXED: Duration = Duration::from_secs(1);

#[test]
fn nobody_ever_trusts_a_lock_that_another_one_trusts() {
    try_under_harm(
        CLIENTS,
        |builder| builder.lease(LEASE).voter_deadline(LEASE / 10),
        async |quorum, trial, mut chance| {
            while !trial.is_over() {
                let kind = if chance.random() { Kind::FairMutex } else { Kind::Mutex };
                let lock = Client::new(quorum.clone(), kind).mutex("a");
                trial.failures.note(hold_once(lock, trial, &mut chance).await);
            }
        },
        async |_| None,
        |trial, seconds| trial.history.len() as u64 > seconds,
    );
}

/// Holds the lock once, in one of the ways in which users do.
async fn hold_once(mutex: Lock, trial: &Trial, chance: &mut StdRng) -> Result<(), Error> {
    let (short, way) = (MS(chance.random_range(0..8)), chance.random_range(0..16));
    if way == 0 {
        // Kept beyond its end.
        let guard = mutex.lease_fixed(FIXED).lock().await?;
        trial.history.trust(&guard, 3 * FIXED).await;
        drop(guard.release().await.expect_err("it was lost"));
        return Ok(());
    }
    // Given up, unless it is very quick.
    let patience = if (7..10).contains(&way) { 4 * short } else { Duration::MAX };
    let Ok(locked) = timeout(patience, mutex.lock()).await else { return Ok(()) };
    let guard = locked?;
    // Renewed a few times.
    let length = if way == 1 { MS(chance.random_range(300..3000)) } else { short };
    trial.history.trust(&guard, length).await;
    match way {
        2..5 | 7..10 => {
            drop(guard);
            Ok(())
        }
        5 | 6 => {
            let again = guard.reenter().await?;
            guard.release().await?;
            trial.history.trust(&again, short).await;
            again.release().await
        }
        _ => guard.release().await,
    }
}

// Eight clients wait all the time, some give up; up to two of five voters are in trouble, never for
// as long as a place counts without a sign of life. So who has stood on a majority goes on standing
// on one, and enters before all who ask later.
#[test]
fn nobody_enters_before_one_who_stood_in_the_queue_when_he_asked() {
    try_under_harm(
        CLIENTS,
        |builder| builder,
        async |quorum, trial, mut chance| {
            while !trial.is_over() {
                take_a_turn(&quorum.fair_mutex("a"), trial, &mut chance).await;
                sleep(MS(chance.random_range(0..10))).await;
            }
        },
        queue_of_mutex,
        |trial, seconds| trial.seen_waiting() > seconds,
    );
}

async fn queue_of_mutex(quorum: &Quorate) -> Option<Places> {
    let seen = quorum.fair_mutex("a").inspect().await.ok()?;
    let places = seen.waiting.into_iter();
    Some(places.map(|waiting| (waiting.place.to_string(), waiting.ticket)).collect())
}

async fn take_a_turn(mutex: &FairMutex, trial: &Trial, chance: &mut StdRng) {
    let patience =
        if chance.random_ratio(1, 8) { MS(chance.random_range(0..100)) } else { MS(30_000) };
    let asked = now();
    let locked = timeout(patience, mutex.lock()).await;
    let entered = now();
    let Ok(locked) = locked else { return };
    let guard = locked.expect("a majority is always well");
    let (place, _) = guard.hold().as_str().rsplit_once('.').expect("it is an attempt");
    trial.turns.lock().unwrap().push(Turn { place: place.to_owned(), asked, entered });
    trial.history.trust(&guard, MS(chance.random_range(0..150))).await;
    // Told too late by some voters, perhaps: the rest goes on by itself.
    drop(guard.release().await);
}
