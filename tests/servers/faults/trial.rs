//! Clients that contend for one lock while voters are in trouble; and who trusted to hold it, and
//! who passed whom, as seen from outside.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

use quorate::{Builder, Quorate};
use rand::{SeedableRng, rngs::StdRng};
use tokio::{runtime, time::sleep};

use crate::faults::harm::{harm, network, nodes};
use quorate_support::eventually;
use quorate_tests::{
    failures::Failures,
    history::{History, overlap},
    scene::{Ending, MS, are_empty, connect, knob, now},
};

/// What is seen in the queue has a fixed ticket when the voters' deadline of 200 ms has passed: by
/// then its first request has been answered or given up. As long again for a busy machine.
const FIXED: Duration = Duration::from_millis(400);

/// Places in the queue, each with its ticket.
pub(super) type Places = BTreeMap<String, u64>;

/// The places that stood on a majority with the same ticket, in an inspection that had ended at this
/// time.
type Look = (Duration, Places);

/// A lock that was granted to a place.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    pub(super) place: String,
    pub(super) asked: Duration,
    pub(super) entered: Duration,
}

/// What all share.
#[derive(Debug, Default)]
pub(super) struct Trial {
    pub(super) history: History,
    pub(super) failures: Failures,
    pub(super) turns: Mutex<Vec<Turn>>,
    looks: Mutex<Vec<Look>>,
    over: AtomicBool,
}

impl Trial {
    pub(super) fn is_over(&self) -> bool {
        self.over.load(SeqCst)
    }

    /// How many turns were seen in the queue, and waited there for long.
    pub(super) fn seen_waiting(&self) -> u64 {
        let (looks, turns) = (self.looks.lock().unwrap(), self.turns.lock().unwrap());
        let seen = first_seen(&looks);
        let long = |turn: &&Turn| turn.entered > turn.asked + FIXED;
        turns.iter().filter(long).filter(|turn| seen.contains_key(&*turn.place)).count() as u64
    }

    /// Looks at the queue again and again, past all proxies.
    async fn look_on(&self, urls: &[String], look: impl AsyncFn(&Quorate) -> Option<Places>) {
        let quorum = connect(Quorate::builder().voters(urls)).await;
        while !self.is_over() {
            // A voter that is down says nothing, and the others decide.
            if let Some(places) = look(&quorum).await {
                self.looks.lock().unwrap().push((now(), places));
            }
            sleep(MS(5)).await;
        }
    }

    fn judge(self) {
        let (looks, turns) = (self.looks.into_inner().unwrap(), self.turns.into_inner().unwrap());
        let spans = self.history.into_spans();
        println!("{} holds, {} looks, {}", spans.len(), looks.len(), self.failures);
        if let Some((one, other)) = overlap(spans) {
            panic!("two holders at the same moment: {one:?} and {other:?}");
        }
        if let Some((earlier, later)) = inversion(&first_seen(&looks), &turns) {
            panic!("{later:?} passed {earlier:?}");
        }
    }
}

/// So many clients live, each with a runtime of its own, while voters are in trouble and an onlooker
/// looks at the queue; until there is enough to judge by. A busy machine may take its time.
///
/// `QUORATE_FAULT_SECONDS` makes it longer, `QUORATE_FAULT_SEED` repeats the choices of a run.
pub(super) fn try_under_harm(
    clients: u64,
    settings: fn(Builder) -> Builder,
    live: impl AsyncFn(&Quorate, &Trial, StdRng) + Sync,
    look: impl AsyncFn(&Quorate) -> Option<Places> + Sync,
    is_enough: impl Fn(&Trial, u64) -> bool,
) {
    let seed = knob("QUORATE_FAULT_SEED", rand::random());
    let seconds = knob("QUORATE_FAULT_SECONDS", 10);
    println!("QUORATE_FAULT_SEED={seed} QUORATE_FAULT_SECONDS={seconds}");
    let network = network();
    let mut voters = network.block_on(nodes());
    let through: Vec<String> = voters.iter().map(|voter| voter.proxy.url()).collect();
    let past: Vec<String> = voters.iter().map(|voter| voter.server.url()).collect();
    let trial = Trial::default();
    let own = || runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    thread::scope(|scope| {
        let _ending = Ending(&trial.over);
        scope.spawn(|| own().block_on(trial.look_on(&past, &look)));
        for client in 0..clients {
            let (through, trial, live) = (&through, &trial, &live);
            let chance = StdRng::seed_from_u64(seed.wrapping_add(1 + client));
            scope.spawn(move || {
                own().block_on(async {
                    let quorum = connect(settings(Quorate::builder().voters(through))).await;
                    live(&quorum, trial, chance).await;
                    quorum.close().await;
                });
            });
        }
        let length = Duration::from_secs(seconds);
        network.block_on(harm(&mut voters, length, StdRng::seed_from_u64(seed)));
        eventually("there is enough to judge by", || is_enough(&trial, seconds));
    });
    trial.judge();
    eventually("no key is left", || are_empty(voters.iter().map(|voter| &voter.server)));
}

/// When each place was first seen with a fixed ticket: that is the last one it was seen with.
fn first_seen(looks: &[Look]) -> BTreeMap<&str, Duration> {
    let all = || looks.iter().flat_map(|(ended, places)| places.iter().map(move |it| (*ended, it)));
    let last: BTreeMap<&str, u64> = all().map(|(_, (place, at))| (&**place, *at)).collect();
    let mut first = BTreeMap::new();
    for (ended, (place, ticket)) in all() {
        if last[&**place] == *ticket {
            first.entry(&**place).or_insert(ended);
        }
    }
    first
}

/// The first two of which one stood in the queue for long before the other asked, and entered after
/// it.
fn inversion(first_seen: &BTreeMap<&str, Duration>, turns: &[Turn]) -> Option<(Turn, Turn)> {
    turns.iter().find_map(|later| {
        let passed = |turn: &&Turn| {
            let seen = first_seen.get(&*turn.place);
            let stood = seen.is_some_and(|seen| *seen + FIXED <= later.asked);
            stood && turn.entered > later.entered
        };
        turns.iter().find(passed).map(|earlier| (earlier.clone(), later.clone()))
    })
}

#[test]
fn an_inversion_is_found_and_a_tie_is_none() {
    let turn = |place: &str, asked, entered| Turn {
        place: place.to_owned(),
        asked: MS(asked),
        entered: MS(entered),
    };
    let look = |ended, places: &[(&str, u64)]| -> Look {
        (MS(ended), places.iter().map(|(place, ticket)| ((*place).to_owned(), *ticket)).collect())
    };
    // Whoever has another ticket later did not stand with the first.
    let looks =
        [look(500, &[("a", 4)]), look(1_500, &[("a", 6)]), look(2_500, &[("a", 6), ("b", 7)])];
    let seen = first_seen(&looks);
    assert_eq!(seen, BTreeMap::from([("a", MS(1_500)), ("b", MS(2_500))]));
    let in_order = [turn("a", 1_000, 3_000), turn("b", 2_000, 4_000)];
    assert!(inversion(&seen, &in_order).is_none());
    assert!(inversion(&seen, &[turn("a", 1_000, 4_000), turn("b", 2_000, 3_000)]).is_some());
    // When b asked, nobody had seen a standing, or not for long enough.
    assert!(inversion(&seen, &[turn("a", 1_000, 4_000), turn("b", 1_400, 3_000)]).is_none());
    assert!(inversion(&seen, &[turn("a", 1_000, 4_000), turn("b", 1_700, 3_000)]).is_none());
}
