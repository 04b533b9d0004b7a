//! A hundred readers and five writers of one lock while voters are killed, stopped and cut off; a
//! checker reads who trusted to hold it, and in which order the writers came.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

use futures::future::{join, join_all};
use quorate::{Error, Preference, Quorate, ReadGuard, RwLock, WriteGuard};
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use tokio::{
    runtime,
    time::{sleep, timeout},
};

use crate::faults::{
    harm::{harm, network, nodes},
    order::{FIXED, Look, Turn, inversion, standing},
};
use quorate_support::{eventually, eventually_async};
use quorate_tests::{
    failures::Failures,
    history::{History, overlap},
    scene::{Ending, MS, are_empty, connect, knob, now},
};

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

/// What all share.
#[derive(Debug, Default)]
struct Crowd {
    history: History,
    looks: Mutex<Vec<Look>>,
    turns: Mutex<Vec<Turn>>,
    over: AtomicBool,
    reads: AtomicU64,
    writes: AtomicU64,
    failures: Failures,
}

/// `QUORATE_FAULT_SECONDS` makes it longer, `QUORATE_FAULT_SEED` repeats the choices of a run.
#[test]
fn a_writer_is_alone_and_in_its_turn_and_everybody_gets_through() {
    let seed = knob("QUORATE_FAULT_SEED", rand::random());
    let length = Duration::from_secs(knob("QUORATE_FAULT_SECONDS", 10));
    println!(
        "QUORATE_FAULT_SEED={seed} QUORATE_FAULT_SECONDS={} \
         tests/run servers faults::readers --nocapture",
        length.as_secs()
    );
    let network = network();
    let mut voters = network.block_on(nodes());
    let through: Vec<String> = voters.iter().map(|voter| voter.proxy.url()).collect();
    let past: Vec<String> = voters.iter().map(|voter| voter.server.url()).collect();
    let crowd = Crowd::default();
    thread::scope(|scope| {
        let _ending = Ending(&crowd.over);
        scope.spawn(|| look_on(&past, &crowd));
        for client in 0..CLIENTS {
            let (urls, crowd) = (&through, &crowd);
            let chance = StdRng::seed_from_u64(seed.wrapping_add(1 + client));
            scope.spawn(move || live(urls, crowd, chance));
        }
        network.block_on(harm(&mut voters, length, StdRng::seed_from_u64(seed)));
        // A busy machine may have let too few through to judge by.
        eventually("there are enough holds to judge by", || {
            let (reads, writes) = (crowd.reads.load(SeqCst), crowd.writes.load(SeqCst));
            reads + writes > 5 * length.as_secs() && writes > length.as_secs() / 2
        });
    });
    judge(crowd);
    eventually("no key is left", || are_empty(voters.iter().map(|voter| &voter.server)));
}

fn judge(crowd: Crowd) {
    let Crowd { history, reads, writes, failures, .. } = crowd;
    let (looks, turns) = (crowd.looks.into_inner().unwrap(), crowd.turns.into_inner().unwrap());
    let waited = turns.iter().filter(|turn| turn.entered > turn.asked + FIXED).count();
    println!(
        "{reads:?} reads, {writes:?} writes, {waited} of them waited for long, {failures}, \
         {} looks",
        looks.len()
    );
    let spans = history.into_spans();
    if let Some((one, other)) = overlap(spans) {
        panic!("two holders at the same moment, and one writes: {one:?} and {other:?}");
    }
    if let Some((earlier, later)) = inversion(&standing(&looks), &turns) {
        panic!("{later:?} passed {earlier:?}");
    }
}

/// Looks at the queue again and again, past all proxies.
fn look_on(urls: &[String], crowd: &Crowd) {
    let own = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    own.block_on(async {
        let quorum = connect(Quorate::builder().voters(urls)).await;
        while !crowd.over.load(SeqCst) {
            // A voter that is down says nothing, and the others decide.
            if let Ok(seen) = quorum.rw_lock("a").inspect().await {
                let places = seen.waiting_writers().into_iter();
                let places = places.map(|waiting| (waiting.place.to_string(), waiting.ticket));
                crowd.looks.lock().unwrap().push((now(), places.collect()));
            }
            sleep(MS(5)).await;
        }
    });
}

/// One client, with a runtime of its own.
fn live(urls: &[String], crowd: &Crowd, mut chance: StdRng) {
    let own = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    own.block_on(async {
        let quorum = connect(Quorate::builder().voters(urls)).await;
        let lock = quorum.rw_lock("a");
        let writing = keep_writing(&lock, crowd, StdRng::from_rng(&mut chance));
        let readers = (0..READERS).map(|_| StdRng::from_rng(&mut chance));
        let reading = readers.map(|chance| keep_reading(&lock, crowd, chance));
        join(writing, join_all(reading)).await;
        quorum.close().await;
    });
}

async fn keep_reading(lock: &RwLock, crowd: &Crowd, mut chance: StdRng) {
    while !crowd.over.load(SeqCst) {
        let preference = *PREFERENCES.choose(&mut chance).expect("there are some");
        let lock = lock.clone().preference(preference);
        let patience = if preference == Preference::Writers { LEASE } else { MS(60_000) };
        let turn = timeout(patience, read_once(lock, crowd, &mut chance)).await;
        crowd.failures.note(turn.unwrap_or(Ok(())));
        sleep(MS(chance.random_range(0..1000))).await;
    }
    eventually_async("a reader gets through", async || {
        lock.read().await.is_ok_and(|guard| guard.is_held())
    })
    .await;
}

async fn keep_writing(lock: &RwLock, crowd: &Crowd, mut chance: StdRng) {
    while !crowd.over.load(SeqCst) {
        crowd.failures.note(write_once(lock, crowd, &mut chance).await);
        sleep(MS(chance.random_range(0..100))).await;
    }
    eventually_async("a writer gets through", async || {
        lock.write().await.is_ok_and(|guard| guard.is_held())
    })
    .await;
}

/// Reads once, in one of the ways in which users do.
async fn read_once(lock: RwLock, crowd: &Crowd, chance: &mut StdRng) -> Result<(), Error> {
    let short = MS(chance.random_range(0..20));
    let entered = |guard: ReadGuard| {
        crowd.reads.fetch_add(1, SeqCst);
        guard
    };
    match chance.random_range(0..200) {
        0 => {
            // Renewed a few times.
            let guard = entered(lock.lease(LEASE).read().await?);
            crowd.history.trust(&guard, MS(chance.random_range(300..1500))).await;
            guard.release().await
        }
        1 => {
            // Kept beyond its end.
            let guard = entered(lock.lease_fixed(LEASE / 2).read().await?);
            crowd.history.trust(&guard, 2 * LEASE).await;
            drop(guard.release().await.expect_err("it was lost"));
            Ok(())
        }
        2..32 => {
            // Given up, unless it is very quick.
            let Ok(locked) = timeout(2 * short, lock.read()).await else { return Ok(()) };
            crowd.history.trust(&entered(locked?), short).await;
            Ok(())
        }
        _ => {
            let guard = entered(lock.read().await?);
            crowd.history.trust(&guard, short).await;
            guard.release().await
        }
    }
}

/// Writes once, likewise.
async fn write_once(lock: &RwLock, crowd: &Crowd, chance: &mut StdRng) -> Result<(), Error> {
    let short = MS(chance.random_range(0..30));
    let asked = now();
    let entered = |guard: WriteGuard| {
        crowd.writes.fetch_add(1, SeqCst);
        guard
    };
    let in_turn = |guard: WriteGuard| {
        // Without a place it did not wait.
        if let Some((place, _)) = guard.hold().as_str().rsplit_once('.') {
            let turn = Turn { place: place.to_owned(), asked, entered: now() };
            crowd.turns.lock().unwrap().push(turn);
        }
        entered(guard)
    };
    match chance.random_range(0..24) {
        0 => {
            // Kept beyond its end. A place with so short a lease does not outlive all trouble.
            let guard = entered(lock.clone().lease_fixed(LEASE / 2).write().await?);
            crowd.history.trust(&guard, LEASE).await;
            drop(guard.release().await.expect_err("it was lost"));
            Ok(())
        }
        1..5 => {
            let guard = in_turn(lock.write().await?);
            crowd.history.trust(&guard, short).await;
            let guard = guard.downgrade().await?;
            crowd.history.trust(&guard, short).await;
            guard.release().await
        }
        5 | 6 => {
            let guard = in_turn(lock.write().await?);
            let read = guard.read().await?;
            join(crowd.history.trust(&guard, short), crowd.history.trust(&read, 3 * short)).await;
            guard.release().await?;
            crowd.history.trust(&read, short).await;
            read.release().await
        }
        7..11 => {
            let Ok(locked) = timeout(4 * short, lock.write()).await else { return Ok(()) };
            crowd.history.trust(&in_turn(locked?), short).await;
            Ok(())
        }
        _ => {
            let guard = in_turn(lock.write().await?);
            crowd.history.trust(&guard, short).await;
            guard.release().await
        }
    }
}

#[test]
fn whoever_has_another_ticket_later_did_not_stand_with_the_first() {
    let look = |ended, places: &[(&str, u64)]| -> Look {
        (MS(ended), places.iter().map(|(place, ticket)| ((*place).to_owned(), *ticket)).collect())
    };
    let looks = vec![look(1, &[("a", 4), ("b", 5)]), look(2, &[("a", 6)]), look(3, &[("a", 6)])];
    let standing: Vec<Vec<String>> =
        standing(&looks).into_iter().map(|sight| sight.places.into_iter().collect()).collect();
    assert_eq!(standing, [vec!["b"], vec!["a"], vec!["a"]]);
}
