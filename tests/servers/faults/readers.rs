//! A hundred readers and five writers of one lock while voters are killed, stopped and cut off.

use std::time::Duration;

use futures::future::{join, join_all};
use quorate::{Error, HolderKind, Preference, Quorate, RwLock, WriteGuard};
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use tokio::time::{sleep, timeout};

use crate::faults::trial::{Places, Trial, Turn, try_under_harm};
use quorate_support::eventually_async;
use quorate_tests::scene::{MS, now};

/// Each is one writer and so many readers.
const CLIENTS: u64 = 5;
const READERS: u64 = 20;
/// Of a few holds. Most have the default, so that their places outlive all trouble: only for places
/// that stand the order is promised. And whoever waits for a short lease asks often: a hundred that
/// do so are too much for a small machine.
const LEASE: Duration = Duration::from_secs(1);
/// Most readers are fair. Of those who pass all waiting writers there are so few that often none of
/// them reads: else a writer might wait for ever. Those who let all writers pass soon give up: as
/// long as five writers go on they might wait for ever.
const PREFERENCES: [Preference; 10] = {
    let mut preferences = [Preference::Fair; 10];
    preferences[0] = Preference::Readers;
    preferences[1] = Preference::Writers;
    preferences[2] = Preference::Writers;
    preferences
};

#[test]
fn a_writer_is_alone_and_in_its_turn_and_everybody_gets_through() {
    try_under_harm(
        CLIENTS,
        |builder| builder,
        async |quorum, trial, mut chance| {
            let lock = quorum.rw_lock("a");
            let writing = keep_writing(&lock, trial, StdRng::from_rng(&mut chance));
            let readers = (0..READERS).map(|_| StdRng::from_rng(&mut chance));
            let reading = readers.map(|chance| keep_reading(&lock, trial, chance));
            join(writing, join_all(reading)).await;
        },
        waiting_writers,
        |trial, seconds| {
            let [all, writes] = [trial.history.len(), trial.history.alone()].map(|it| it as u64);
            all > 5 * seconds && writes > seconds / 2
        },
    );
}

async fn waiting_writers(quorum: &Quorate) -> Option<Places> {
    let seen = quorum.rw_lock("a").inspect().await.ok()?;
    let places = seen.waiting.into_iter().filter(|waiting| waiting.kind == HolderKind::Write);
    Some(places.map(|waiting| (waiting.place.to_string(), waiting.ticket)).collect())
}

async fn keep_reading(lock: &RwLock, trial: &Trial, mut chance: StdRng) {
    while !trial.is_over() {
        let preference = *PREFERENCES.choose(&mut chance).expect("there are some");
        let lock = lock.clone().preference(preference);
        let patience = if preference == Preference::Writers { LEASE } else { MS(60_000) };
        let turn = timeout(patience, read_once(lock, trial, &mut chance)).await;
        trial.failures.note(turn.unwrap_or(Ok(())));
        sleep(MS(chance.random_range(0..1000))).await;
    }
    eventually_async("a reader gets through", async || {
        lock.read().await.is_ok_and(|guard| guard.is_held())
    })
    .await;
}

async fn keep_writing(lock: &RwLock, trial: &Trial, mut chance: StdRng) {
    while !trial.is_over() {
        trial.failures.note(write_once(lock, trial, &mut chance).await);
        sleep(MS(chance.random_range(0..100))).await;
    }
    eventually_async("a writer gets through", async || {
        lock.write().await.is_ok_and(|guard| guard.is_held())
    })
    .await;
}

/// Reads once, in one of the ways in which users do.
async fn read_once(lock: RwLock, trial: &Trial, chance: &mut StdRng) -> Result<(), Error> {
    let short = MS(chance.random_range(0..20));
    match chance.random_range(0..200) {
        0 => {
            // Renewed a few times.
            let guard = lock.lease(LEASE).read().await?;
            trial.history.trust(&guard, MS(chance.random_range(300..1500))).await;
            guard.release().await
        }
        1 => {
            // Kept beyond its end.
            let guard = lock.lease_fixed(LEASE / 2).read().await?;
            trial.history.trust(&guard, 2 * LEASE).await;
            drop(guard.release().await.expect_err("it was lost"));
            Ok(())
        }
        2..32 => {
            // Given up, unless it is very quick.
            let Ok(locked) = timeout(2 * short, lock.read()).await else { return Ok(()) };
            trial.history.trust(&locked?, short).await;
            Ok(())
        }
        _ => {
            let guard = lock.read().await?;
            trial.history.trust(&guard, short).await;
            guard.release().await
        }
    }
}

/// Writes once, likewise.
async fn write_once(lock: &RwLock, trial: &Trial, chance: &mut StdRng) -> Result<(), Error> {
    let (short, way) = (MS(chance.random_range(0..30)), chance.random_range(0..24));
    if way == 0 {
        // Kept beyond its end. A place with so short a lease does not outlive all trouble.
        let guard = lock.clone().lease_fixed(LEASE / 2).write().await?;
        trial.history.trust(&guard, LEASE).await;
        drop(guard.release().await.expect_err("it was lost"));
        return Ok(());
    }
    let asked = now();
    let patience = if (7..11).contains(&way) { 4 * short } else { Duration::MAX };
    let Ok(locked) = timeout(patience, lock.write()).await else { return Ok(()) };
    let guard = locked?;
    note_turn(&guard, asked, trial);
    match way {
        1..5 => {
            trial.history.trust(&guard, short).await;
            let guard = guard.downgrade().await?;
            trial.history.trust(&guard, short).await;
            guard.release().await
        }
        5 | 6 => {
            let read = guard.read().await?;
            join(trial.history.trust(&guard, short), trial.history.trust(&read, 3 * short)).await;
            guard.release().await?;
            trial.history.trust(&read, short).await;
            read.release().await
        }
        7..11 => {
            trial.history.trust(&guard, short).await;
            Ok(())
        }
        _ => {
            trial.history.trust(&guard, short).await;
            guard.release().await
        }
    }
}

/// Without a place it did not wait.
fn note_turn(guard: &WriteGuard, asked: Duration, trial: &Trial) {
    if let Some((place, _)) = guard.hold().as_str().rsplit_once('.') {
        let turn = Turn { place: place.to_owned(), asked, entered: now() };
        trial.turns.lock().unwrap().push(turn);
    }
}
