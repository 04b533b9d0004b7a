//! The order of a fair mutex while voters are killed, stopped and cut off, as seen from outside.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

use quorate::{FairMutex, Quorate};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use tokio::{
    runtime,
    time::{sleep, timeout},
};

use crate::faults::harm::{harm, network, nodes};
use quorate_support::eventually;
use quorate_tests::scene::{Ending, MS, are_empty, connect, knob, now};

const CLIENTS: u64 = 8;
/// What is seen in the queue has a fixed ticket when the voters' deadline of 200 ms has passed: by
/// then its first request has been answered or given up. As long again for a busy machine.
pub(crate) const FIXED: Duration = Duration::from_millis(400);

/// What an onlooker saw standing on a majority, in an inspection that had ended at this time.
#[derive(Clone, Debug)]
pub(crate) struct Sight {
    pub(crate) ended: Duration,
    pub(crate) places: BTreeSet<String>,
}

/// The places that stood on a majority with the same ticket, each with that, in an inspection that
/// had ended at this time.
pub(crate) type Look = (Duration, BTreeMap<String, u64>);

/// Who stood with a fixed ticket: that is the last one it was seen with.
pub(crate) fn standing(looks: &[Look]) -> Vec<Sight> {
    let last: BTreeMap<&String, u64> =
        looks.iter().flat_map(|(_, places)| places).map(|(place, at)| (place, *at)).collect();
    let is_fixed = |(place, ticket): &(&String, &u64)| last[place] == **ticket;
    let sight = |(ended, places): &Look| Sight {
        ended: *ended,
        places: places.iter().filter(is_fixed).map(|(place, _)| place.clone()).collect(),
    };
    looks.iter().map(sight).collect()
}

/// One call of `lock` that was granted.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    pub(crate) place: String,
    pub(crate) asked: Duration,
    pub(crate) entered: Duration,
}

#[derive(Debug, Default)]
struct Diary {
    looks: Mutex<Vec<Look>>,
    turns: Mutex<Vec<Turn>>,
    over: AtomicBool,
}

/// The first two of which one stood in the queue for long before the other asked, and entered after
/// it.
pub(crate) fn inversion(sights: &[Sight], turns: &[Turn]) -> Option<(Turn, Turn)> {
    let mut first_seen: BTreeMap<&str, Duration> = BTreeMap::new();
    for Sight { ended, places } in sights {
        for place in places {
            first_seen.entry(place).or_insert(*ended);
        }
    }
    for later in turns {
        let passed = |turn: &&Turn| {
            let seen = first_seen.get(&*turn.place);
            let stood = seen.is_some_and(|seen| *seen + FIXED <= later.asked);
            stood && turn.entered > later.entered
        };
        if let Some(earlier) = turns.iter().find(passed) {
            return Some((earlier.clone(), later.clone()));
        }
    }
    None
}

// Eight clients wait all the time, some give up; up to two of five voters are in trouble, never for
// as long as a place counts without a sign of life. So who has stood on a majority goes on standing
// on one, and enters before all who ask later.
/// `QUORATE_FAULT_SECONDS` makes it longer, `QUORATE_FAULT_SEED` repeats the choices of a run.
#[test]
fn nobody_enters_before_one_who_stood_in_the_queue_when_he_asked() {
    let seed = knob("QUORATE_FAULT_SEED", rand::random());
    let length = Duration::from_secs(knob("QUORATE_FAULT_SECONDS", 10));
    println!("QUORATE_FAULT_SEED={seed} QUORATE_FAULT_SECONDS={}", length.as_secs());
    let network = network();
    let mut voters = network.block_on(nodes());
    let through: Vec<String> = voters.iter().map(|voter| voter.proxy.url()).collect();
    let past: Vec<String> = voters.iter().map(|voter| voter.server.url()).collect();
    let diary = Diary::default();
    thread::scope(|scope| {
        let _ending = Ending(&diary.over);
        scope.spawn(|| look_on(&past, &diary));
        for client in 0..CLIENTS {
            let (urls, diary) = (&through, &diary);
            let chance = StdRng::seed_from_u64(seed.wrapping_add(1 + client));
            scope.spawn(move || take_turns(urls, diary, chance));
        }
        network.block_on(harm(&mut voters, length, StdRng::seed_from_u64(seed)));
        // A busy machine may have let too few through to judge by.
        eventually("there are enough turns to judge by", || {
            let (looks, turns) = (diary.looks.lock().unwrap(), diary.turns.lock().unwrap());
            seen_waiting(&standing(&looks), &turns) as u64 > length.as_secs()
        });
    });
    let sights = standing(&diary.looks.into_inner().unwrap());
    let turns = diary.turns.into_inner().unwrap();
    println!(
        "{} turns, {} of them seen waiting for long, {} looks",
        turns.len(),
        seen_waiting(&sights, &turns),
        sights.len()
    );
    if let Some((earlier, later)) = inversion(&sights, &turns) {
        panic!("{later:?} passed {earlier:?}");
    }
    eventually("no key is left", || are_empty(voters.iter().map(|voter| &voter.server)));
}

/// How many have waited for long, and were seen in the queue.
fn seen_waiting(sights: &[Sight], turns: &[Turn]) -> usize {
    let seen: BTreeSet<&String> = sights.iter().flat_map(|sight| &sight.places).collect();
    let long = |turn: &&Turn| turn.entered > turn.asked + FIXED && seen.contains(&turn.place);
    turns.iter().filter(long).count()
}

/// Looks at the queue again and again, past all proxies.
fn look_on(urls: &[String], diary: &Diary) {
    let own = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    own.block_on(async {
        let quorum = connect(Quorate::builder().voters(urls)).await;
        while !diary.over.load(SeqCst) {
            // A voter that is down says nothing, and the others decide.
            if let Ok(seen) = quorum.fair_mutex("a").inspect().await {
                let places = seen.queue().into_iter();
                let places = places.map(|waiting| (waiting.place.to_string(), waiting.ticket));
                diary.looks.lock().unwrap().push((now(), places.collect()));
            }
            sleep(MS(1)).await;
        }
    });
}

fn take_turns(urls: &[String], diary: &Diary, mut chance: StdRng) {
    let own = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    own.block_on(async {
        let quorum = connect(Quorate::builder().voters(urls)).await;
        while !diary.over.load(SeqCst) {
            take_a_turn(&quorum.fair_mutex("a"), diary, &mut chance).await;
            sleep(MS(chance.random_range(0..10))).await;
        }
        quorum.close().await;
    });
}

async fn take_a_turn(mutex: &FairMutex, diary: &Diary, chance: &mut StdRng) {
    let patience =
        if chance.random_ratio(1, 8) { MS(chance.random_range(0..100)) } else { MS(30_000) };
    let asked = now();
    let locked = timeout(patience, mutex.lock()).await;
    let entered = now();
    let Ok(locked) = locked else { return };
    let guard = locked.expect("a majority is always well");
    let (place, _) = guard.hold().as_str().rsplit_once('.').expect("it is an attempt");
    let turn = Turn { place: place.to_owned(), asked, entered };
    diary.turns.lock().unwrap().push(turn);
    sleep(MS(chance.random_range(0..150))).await;
    // Told too late by some voters, perhaps: the rest goes on by itself.
    drop(guard.release().await);
}

#[test]
fn an_inversion_is_found_and_a_tie_is_none() {
    let turn = |place: &str, asked, entered| Turn {
        place: place.to_owned(),
        asked: MS(asked),
        entered: MS(entered),
    };
    let sight = |ended, places: &[&str]| Sight {
        ended: MS(ended),
        places: places.iter().map(|place| (*place).to_owned()).collect(),
    };
    let sights = [sight(500, &[]), sight(1_500, &["a"]), sight(2_500, &["a", "b"])];
    let in_order = [turn("a", 1_000, 3_000), turn("b", 2_000, 4_000)];
    assert!(inversion(&sights, &in_order).is_none());
    assert!(inversion(&sights, &[turn("a", 1_000, 4_000), turn("b", 2_000, 3_000)]).is_some());
    // When b asked, nobody had seen a standing, or not for long enough.
    assert!(inversion(&sights, &[turn("a", 1_000, 4_000), turn("b", 1_400, 3_000)]).is_none());
    assert!(inversion(&sights, &[turn("a", 1_000, 4_000), turn("b", 1_700, 3_000)]).is_none());
}
