//! Clients contend for one lock while voters are killed, stopped and cut off, again and again.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
};

use quorate_tests::{
    failures::Failures,
    history::{History, overlap},
    prelude::*,
    scene::{DURABLE, Ending, knob},
};
use rand::{
    RngExt, SeedableRng,
    rngs::StdRng,
    seq::{IndexedRandom, SliceRandom},
};
use tokio::runtime::{self, Runtime};

// Clients contend for one lock while voters are killed, stopped and cut off: by a mutex or by a
// fair one as it comes, and by fair ones alone, whose order is looked at from outside.

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
async fn hold_once(mutex: quorate::Mutex, trial: &Trial, chance: &mut StdRng) -> Result<(), Error> {
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

async fn take_a_turn(mutex: &quorate::Mutex, trial: &Trial, chance: &mut StdRng) {
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

// Clients that contend for one lock while voters are in trouble; and who trusted to hold it, and
// who passed whom, as seen from outside.

/// What is seen in the queue has a fixed ticket when the voters' deadline of 200 ms has passed: by
/// then its first request has been answered or given up. As long again for a busy machine.
const SETTLED: Duration = Duration::from_millis(400);

/// Places in the queue, each with its ticket.
type Places = BTreeMap<String, u64>;

/// The places that stood on a majority with the same ticket, in an inspection that had ended at this
/// time.
type Look = (Duration, Places);

/// A lock that was granted to a place.
#[derive(Clone, Debug)]
struct Turn {
    place: String,
    asked: Duration,
    entered: Duration,
}

/// What all share.
#[derive(Debug, Default)]
struct Trial {
    history: History,
    failures: Failures,
    turns: Mutex<Vec<Turn>>,
    looks: Mutex<Vec<Look>>,
    over: AtomicBool,
}

impl Trial {
    fn is_over(&self) -> bool {
        self.over.load(SeqCst)
    }

    /// How many turns were seen in the queue, and waited there for long.
    fn seen_waiting(&self) -> u64 {
        let (looks, turns) = (self.looks.lock().unwrap(), self.turns.lock().unwrap());
        let seen = first_seen(&looks);
        let long = |turn: &&Turn| turn.entered > turn.asked + SETTLED;
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
fn try_under_harm(
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
                    drop(quorum.close().await);
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
            let stood = seen.is_some_and(|seen| *seen + SETTLED <= later.asked);
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

// Voters that are killed, stopped and cut off, again and again.

const VOTERS: usize = 5;
/// Of five: a majority is always left.
const TROUBLED: usize = 2;

/// Where the proxies live.
fn network() -> Runtime {
    let network = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    network.expect("a runtime")
}

/// Killed servers keep their data, as their clients were promised. Without it a voter would forget
/// whom it gave its vote to.
async fn nodes() -> Vec<Node> {
    let servers = servers_with(VOTERS, &DURABLE);
    let proxies = proxies(&servers).await;
    servers.into_iter().zip(proxies).map(|(server, proxy)| Node { server, proxy }).collect()
}

/// A server and the way to it.
struct Node {
    server: RedisServer,
    proxy: Proxy,
}

#[derive(Clone, Copy, Debug)]
enum Harm {
    Kill,
    Stop,
    Cut,
    Refuse,
    BlackHole,
    HoldReplies,
    Delay,
}

impl Harm {
    fn drawn(chance: &mut StdRng) -> Self {
        use Harm::{BlackHole, Cut, Delay, HoldReplies, Kill, Refuse, Stop};
        let all = [Kill, Stop, Cut, Refuse, BlackHole, HoldReplies, Delay];
        *all.choose(chance).expect("there are some")
    }
}

impl Node {
    async fn suffer(&mut self, harm: Harm) {
        match harm {
            Harm::Kill => self.server.kill(),
            Harm::Stop => self.server.stop(),
            Harm::Cut => self.proxy.cut().await,
            Harm::Refuse => {
                self.proxy.refuse().await;
                self.proxy.cut().await;
            }
            Harm::BlackHole => self.proxy.black_hole(),
            Harm::HoldReplies => self.proxy.hold_replies(),
            Harm::Delay => self.proxy.delay(MS(40), MS(40)),
        }
    }

    fn recover(&mut self, harm: Harm) {
        match harm {
            Harm::Kill => self.server.restart(),
            Harm::Stop => self.server.resume(),
            Harm::Cut => {}
            Harm::Refuse => self.proxy.accept(),
            Harm::BlackHole | Harm::HoldReplies | Harm::Delay => self.proxy.pass(),
        }
    }
}

/// Never more than a minority at a time, and each whole again before the next.
async fn harm(voters: &mut [Node], length: Duration, mut chance: StdRng) {
    let started = now();
    while since(started) < length {
        let mut places: Vec<usize> = (0..VOTERS).collect();
        places.shuffle(&mut chance);
        places.truncate(chance.random_range(1..=TROUBLED));
        let harms: Vec<_> =
            places.into_iter().map(|place| (place, Harm::drawn(&mut chance))).collect();
        for &(place, harm) in &harms {
            voters[place].suffer(harm).await;
        }
        sleep(MS(chance.random_range(20..700))).await;
        for (place, harm) in harms {
            voters[place].recover(harm);
        }
        sleep(MS(chance.random_range(0..300))).await;
    }
}
