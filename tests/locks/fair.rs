//! What users of the fair mutex rely on. Each test's name is the claim; each claim is written once
//! and holds on voters inside the process (in paused time: fast and exact) and on real servers.
//!
//! What a mutex does a fair one does too: the claims about the mutex are run on it as well.

use std::{
    ops::Range,
    path::Path,
    sync::{Mutex, PoisonError},
};

use quorate_support::Worker;
use quorate_tests::{inside, prelude::*, standing};
use tokio::{sync::Notify, task::yield_now};

// Waiters that die.

/// A client on a machine that can be killed.
async fn client_on(on: &Fixture, machine: &Machine) -> Client {
    on.client_of(on.builder().machine(machine).connect().await.unwrap())
}

// The first of three dies right after a refresh. The lock is released a second later; the second
// enters when the dead one's place ends, and until then nobody asks more often than refreshes do:
// two waiters, once in a third of 5 s.
#[tokio::test(start_paused = true)]
async fn when_the_first_dies_the_next_enters_within_the_deadline_and_nobody_spins() {
    let on = Fixture::embedded(5).of_kind(Kind::FairMutex);
    let observer = on.client().await;
    let guard = observer.mutex("a").lock().await.unwrap();
    let machine = Machine::new("other");
    let dead = tokio::spawn(machine.run(client_on(&on, &machine).await.mutex("a").lock()));
    until_waiting(&observer, 1).await;
    let second = tokio::spawn(on.client().await.mutex("a").lock());
    until_waiting(&observer, 2).await;
    sleep(secs(20)).await;
    machine.kill();
    let watch = Stopwatch::start();
    let before = on.runs("mutex/acquire").unwrap();
    sleep(secs(1)).await;
    guard.release().await.unwrap();
    let guard = second.await.unwrap().unwrap();
    assert!(watch.time() <= secs(5) + ms(10), "{:?}", watch.time());
    for (now, before) in on.runs("mutex/acquire").unwrap().into_iter().zip(before) {
        // Refreshes, and the bids when the dead one's place ends and when its lock is free.
        assert!(now - before <= 5, "{}", now - before);
    }
    guard.release().await.unwrap();
    dead.abort();
    on.until_clean().await;
}

// Only the deadline tells a voter that the client of a fair waiter is gone. One that is not fair is
// taken out when nobody hears its call. Those who come later keep their order.
#[tokio::test(start_paused = true)]
async fn a_dead_client_with_many_places_holds_up_nobody_for_longer_than_one_deadline() {
    for (kind, most) in [(Kind::FairMutex, secs(5) + ms(10)), (Kind::Mutex, ms(10))] {
        let on = Fixture::embedded(3).of_kind(kind);
        let observer = on.client().await;
        let guard = observer.mutex("a").lock().await.unwrap();
        let machine = Machine::new("other");
        let fair = client_on(&on, &machine).await;
        for count in 1..=20 {
            // Another client has one place for all who ask.
            let doomed = match kind {
                Kind::FairMutex => fair.clone(),
                Kind::Mutex => client_on(&on, &machine).await,
            };
            drop(tokio::spawn(machine.run(doomed.mutex("a").lock())));
            until_waiting(&observer, count).await;
        }
        let next = tokio::spawn(on.client().await.mutex("a").lock());
        until_waiting(&observer, 21).await;
        machine.kill();
        guard.release().await.unwrap();
        let watch = Stopwatch::start();
        let next = next.await.unwrap().unwrap();
        assert!(watch.time() <= most, "{kind:?}: {:?}", watch.time());
        next.release().await.unwrap();
        let mut waiters = Waiters::of(&on).await;
        let guard = Quorate::mutex(&*on.client().await, "a").lock().await.unwrap();
        waiters.come(on.client().await.mutex("a"), release).await;
        guard.release().await.unwrap();
        waiters.must_enter_in_order().await;
    }
}

// More waiters of one client than stand in the queue at the same time.

/// As `docs/protocol.md` says.
const PLACES: usize = 512;
const BEHIND: usize = 20;

/// Who entered, in this order.
type Entered = Arc<Mutex<Vec<usize>>>;

/// Come one after the other, enter, and leave.
async fn come(
    tasks: &mut JoinSet<()>,
    lock: &quorate::Mutex,
    entered: &Entered,
    who: Range<usize>,
) {
    for number in who {
        let (lock, entered) = (lock.clone(), Arc::clone(entered));
        tasks.spawn(async move {
            let guard = lock.lock().await.expect("all voters answer");
            entered.lock().unwrap_or_else(PoisonError::into_inner).push(number);
            guard.release().await.expect("all voters answer");
        });
        yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn those_behind_follow_in_the_order_of_coming_and_another_client_is_not_behind_them() {
    let (voters, client) = impatient().await;
    let other = inside::client(&voters).await;
    let guard = other.fair_mutex("a").lock().await.expect("it is free");
    let (mut tasks, entered) = (JoinSet::new(), Entered::default());
    come(&mut tasks, &client.fair_mutex("a"), &entered, 0..PLACES + BEHIND).await;
    until_waiting(&other, PLACES).await;
    let stranger = PLACES + BEHIND;
    come(&mut tasks, &other.fair_mutex("a"), &entered, stranger..stranger + 1).await;
    until_waiting(&other, PLACES + 1).await;
    // Each refreshes its place every third of 5 s. Those behind ask for nothing.
    let before = voters[0].runs("mutex/acquire");
    sleep(secs(10)).await;
    let refreshed = voters[0].runs("mutex/acquire") - before;
    assert!(refreshed <= 7 * (PLACES as u64 + 1), "{refreshed} requests in ten seconds");
    guard.release().await.expect("it is held");
    tasks.join_all().await;
    let expected = (0..PLACES).chain([stranger]).chain(PLACES..stranger).collect::<Vec<_>>();
    assert_eq!(*entered.lock().unwrap(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_comes_behind_the_places_is_a_plain_no_and_leaves_nothing() {
    let (_voters, client) = impatient().await;
    let guard = client.fair_mutex("a").lock().await.expect("it is free");
    let (mut tasks, entered) = (JoinSet::new(), Entered::default());
    come(&mut tasks, &client.fair_mutex("a"), &entered, 0..PLACES).await;
    until_waiting(&client, PLACES).await;
    let watch = Stopwatch::start();
    let told = client.fair_mutex("a").lock_within(ms(300)).await.expect("all voters answer");
    assert!(told.is_none() && (ms(300)..ms(310)).contains(&watch.time()), "{:?}", watch.time());
    let seen = client.fair_mutex("a").inspect().await.expect("all voters answer");
    assert_eq!(seen.waiting.len(), PLACES);
    // Whoever only asks once is not in that line.
    let watch = Stopwatch::start();
    let told = client.fair_mutex("a").try_lock().await.expect("all voters answer");
    assert!(told.is_none() && watch.time() < ms(10), "{:?}", watch.time());
    let told = client.fair_mutex("a").lock_or_busy(ms(100)).await.expect_err("it is held");
    assert!(told.is_busy() && told.holder().is_some(), "{told}");
    guard.release().await.expect("it is held");
    tasks.join_all().await;
    assert_eq!(*entered.lock().unwrap(), (0..PLACES).collect::<Vec<_>>());
}

// What the first answers to those in the queue say is known behind them, and not only what they
// hear when they refresh their places. (The client hears its channel already, for which it would
// ask once more.)
#[tokio::test(start_paused = true)]
async fn who_comes_with_a_short_limit_knows_that_the_lock_is_held() {
    let (_voters, client) = impatient().await;
    for name in ["a", "b"] {
        let guard = client.fair_mutex(name).lock().await.expect("it is free");
        let (mut tasks, entered) = (JoinSet::new(), Entered::default());
        come(&mut tasks, &client.fair_mutex(name), &entered, 0..PLACES).await;
        sleep(ms(20)).await;
        let watch = Stopwatch::start();
        let told = client.fair_mutex(name).lock_within(ms(30)).await.expect("all voters answer");
        assert!(told.is_none() && watch.time() < ms(40), "{name}: {:?}", watch.time());
        guard.release().await.expect("it is held");
        tasks.join_all().await;
    }
}

// The places ask 128 at a time, each for 200 ms. So the last to be told hears of the attempt that
// begins within four such times, and a pause of up to 750 ms, after its patience has ended.
#[tokio::test(start_paused = true)]
async fn those_behind_are_told_of_silence_when_their_patience_ends() {
    let (voters, client) = impatient().await;
    let _silence = all(&voters, Fault::DropRequests);
    let mut tasks = JoinSet::<(Error, Duration)>::new();
    for _ in 0..PLACES + BEHIND {
        let (asks, watch) = (client.fair_mutex("a").lock(), Stopwatch::start());
        tasks.spawn(async move { (asks.await.expect_err("no voter answers"), watch.time()) });
    }
    for (error, after) in tasks.join_all().await {
        assert!(error.is_no_quorum() && error.voters().len() == 3, "{error}");
        assert!((ms(1_990)..ms(3_800)).contains(&after), "told after {after:?}");
    }
}

// Whoever is dropped lets the next one come to a place.
#[tokio::test(start_paused = true)]
async fn a_place_that_is_left_goes_to_the_next_in_line() {
    let (_voters, client) = impatient().await;
    let guard = client.fair_mutex("a").lock().await.expect("it is free");
    let (mut leaving, mut staying) = (JoinSet::new(), JoinSet::new());
    let entered = Entered::default();
    come(&mut leaving, &client.fair_mutex("a"), &entered, 0..PLACES).await;
    come(&mut staying, &client.fair_mutex("a"), &entered, PLACES..PLACES + BEHIND).await;
    until_waiting(&client, PLACES).await;
    leaving.shutdown().await;
    until_waiting(&client, BEHIND).await;
    guard.release().await.expect("it is held");
    staying.join_all().await;
    assert_eq!(*entered.lock().unwrap(), (PLACES..PLACES + BEHIND).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn readers_that_queue_and_waiters_for_permits_all_enter_too() {
    let (_voters, client) = impatient().await;
    let (lock, permits) = (client.rw_lock("a"), client.semaphore("b", 10));
    let lock = lock.preference(Preference::Fair);
    let write = lock.write().await.expect("it is free");
    let all = permits.acquire_many(10).await.expect("all are free");
    let (mut readers, mut takers) = (JoinSet::new(), JoinSet::new());
    for _ in 0..PLACES + BEHIND {
        readers.spawn(lock.read());
        let permits = permits.clone();
        takers.spawn(async move {
            let permit = permits.acquire().await.expect("all voters answer");
            permit.release().await.expect("all voters answer");
        });
    }
    sleep(secs(1)).await;
    write.release().await.expect("it is held");
    all.release().await.expect("they are held");
    let reads = readers.join_all().await;
    let is_held = |read: &Result<ReadGuard, _>| read.as_ref().is_ok_and(ReadGuard::is_held);
    assert!(reads.len() == PLACES + BEHIND && reads.iter().all(is_held));
    takers.join_all().await;
}

// Of the readers that let all writers pass more wait than have a place.
#[tokio::test(start_paused = true)]
async fn a_reader_that_lets_no_writer_pass_is_not_behind_those_that_do() {
    let (_voters, client) = impatient().await;
    let lock = client.rw_lock("a");
    let first = lock.clone().preference(Preference::Readers);
    let write = lock.write().await.expect("it is free");
    let mut readers = JoinSet::new();
    for _ in 0..PLACES + BEHIND {
        let lock = lock.clone();
        readers.spawn(async move { lock.read().await.map(drop).expect("all voters answer") });
    }
    let second = tokio::spawn(lock.write());
    sleep(secs(1)).await;
    let reader = tokio::spawn(first.read());
    sleep(secs(1)).await;
    write.release().await.expect("it is held");
    let read = timeout(secs(1), reader).await.expect("it waits for no writer");
    let read = read.expect("no panic").expect("all voters answer");
    assert!(read.is_held() && !second.is_finished());
    read.release().await.expect("it is held");
    let second = second.await.expect("no panic").expect("all voters answer");
    second.release().await.expect("it is held");
    readers.join_all().await;
}

// First come, first served.

claims!(everywhere of FairMutex:
    a_hold_longer_than_any_waiters_deadline_does_not_change_the_order,
    nobody_passes_those_who_wait_not_even_for_a_moment,
);
claims!(inside of FairMutex: a_hand_over_costs_the_same_however_many_wait);

// Three deadlines pass, and so do nine refreshes of each place.
async fn a_hold_longer_than_any_waiters_deadline_does_not_change_the_order(on: Fixture) {
    let client = async || {
        let (voters, waiters) = (ms(200), ms(1_000));
        on.connect(on.builder().voter_deadline(voters).waiter_deadline(waiters)).await
    };
    let guard = client().await.mutex("a").lock().await.unwrap();
    let mut waiters = Waiters::of(&on).await;
    for _ in 0..5 {
        waiters.come(client().await.mutex("a"), release).await;
    }
    sleep(secs(3)).await;
    on.release(guard.release()).await;
    waiters.must_enter_in_order().await;
    on.until_clean().await;
}

// Somebody tries all the time, while the lock goes through five hands. The last one lets go of it
// only when nobody tries any more.
async fn nobody_passes_those_who_wait_not_even_for_a_moment(on: Fixture) {
    let guard = on.client().await.mutex("a").lock().await.unwrap();
    let (last, over) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let mut waiters = Waiters::of(&on).await;
    for _ in 0..4 {
        waiters.come(on.client().await.mutex("a"), release).await;
    }
    let (entered, leave) = (Arc::clone(&last), Arc::clone(&over));
    let holds = async move |guard| {
        entered.notify_one();
        leave.notified().await;
        release(guard).await;
    };
    waiters.come(on.client().await.mutex("a"), holds).await;
    let theirs = on.client().await;
    let tries = async {
        loop {
            for tried in [theirs.mutex("a").try_lock().await, plain(&theirs).await] {
                assert!(tried.unwrap().is_none(), "somebody holds it, or waits");
            }
            sleep(ms(1)).await;
        }
    };
    let through = async {
        on.release(guard.release()).await;
        last.notified().await;
    };
    tokio::select! {
        () = tries => {}
        () = through => {}
    }
    over.notify_one();
    waiters.must_enter_in_order().await;
}

async fn plain(client: &Client) -> Result<Option<MutexGuard>, quorate::Error> {
    Quorate::mutex(client, "a").try_lock().await
}

/// How fast a client's clock runs; and it began to run at another time than the others.
const CLOCKS_PPM: [i32; 4] = [0, 1_000_000, -500_000, 300_000];

// No script is told a client's time. What differs is when clients refresh their places: twice as
// often as they should, or half as often, which is still in time. To such a client the clocks of
// all voters are wrong: with a restart guard it would never enter. One whose clock runs at half
// the rate finds with the grant that it has stood still for as long as a lease: that grant is too
// old for it, and it comes again behind all others.
#[tokio::test(start_paused = true)]
async fn a_client_with_a_wrong_clock_neither_jumps_the_queue_nor_empties_it() {
    let on = Fixture::embedded(5).of_kind(Kind::FairMutex);
    let guard = on.client().await.mutex("a").lock().await.unwrap();
    let mut waiters = Waiters::of(&on).await;
    for (number, ppm) in CLOCKS_PPM.into_iter().cycle().take(8).enumerate() {
        let machine = Machine::new("other");
        sleep(Duration::from_secs(3_600 * u64::from(number == 1))).await;
        machine.set_clock_rate(ppm);
        let builder = on.builder().machine(&machine).restart_guard(RestartGuard::Off);
        let client = Client::new(builder.connect().await.unwrap(), Kind::FairMutex);
        waiters.come(client.mutex("a"), release).await;
    }
    sleep(secs(60)).await;
    on.release(guard.release()).await;
    let entered = waiters.enter().await;
    let of = |slow: bool| -> Vec<usize> {
        let is_meant = |number: &usize| (CLOCKS_PPM[number % CLOCKS_PPM.len()] < 0) == slow;
        entered.iter().copied().filter(is_meant).collect()
    };
    assert_eq!((of(false), of(true)), (vec![0, 1, 3, 4, 5, 7], vec![2, 6]), "{entered:?}");
    on.until_clean().await;
}

// Ten deep or a hundred: the release, one bid of the next one, and nothing else. The waiters have
// just refreshed their places, and do so again a second later.
async fn a_hand_over_costs_the_same_however_many_wait(on: Fixture) {
    for crowd in [10, 100] {
        let client = on.client().await;
        let guard = client.mutex("a").lock().await.unwrap();
        let mut waiters = Waiters::of(&on).await;
        for _ in 0..crowd {
            waiters.come(client.mutex("a"), release).await;
        }
        let runs = |script: &str| on.runs(script).expect("they count");
        let before = runs("mutex/acquire");
        // In paused time the whole line passes before the next refresh is due.
        on.release(guard.release()).await;
        waiters.must_enter_in_order().await;
        for (voter, before) in before.into_iter().enumerate() {
            assert_eq!(runs("mutex/acquire")[voter] - before, crowd, "of {crowd}, voter {voter}");
        }
        on.until_clean().await;
    }
}

// Waiters in processes of their own, over real servers.

/// A process that waits for `a`.
fn worker(on: &Fixture) -> Worker {
    Worker::start(
        Path::new(env!("CARGO_BIN_EXE_turns")),
        ["a".to_owned()].into_iter().chain(on.urls()),
    )
}

/// So many processes, one behind the other.
async fn queue_up(on: &Fixture, client: &Client, count: usize) -> Vec<Worker> {
    let mut workers = Vec::new();
    for number in 1..=count {
        workers.push(worker(on));
        until_waiting(client, number).await;
    }
    workers
}

/// Lets each of them enter and leave; whoever is behind says nothing before.
fn must_enter_in_order(workers: Vec<Worker>) {
    let mut before = String::new();
    for mut worker in workers {
        let entered = worker.says();
        assert!(entered.starts_with("entered ") && entered != before, "{entered}");
        worker.leave();
        before = entered;
    }
}

// One voter after the other is killed and comes back empty, while they wait. A place stands on the
// other four, and is told to the empty one again; so is the hold, at once. The lock is given up
// when the processes count the grants of all voters again: the longest lease after the last of them
// has seen the last restart.
#[tokio::test(flavor = "multi_thread")]
async fn processes_keep_their_order_while_voters_restart_empty_one_by_one() {
    let mut on = Fixture::real(5).of_kind(Kind::FairMutex);
    let client = on.client().await;
    let guard = client.mutex("a").lease(secs(6)).lock().await.unwrap();
    let workers = queue_up(&on, &client, 5).await;
    for voter in 0..on.voters() {
        on.kill(voter);
        on.restart(voter);
        until!("all stand on every voter again", {
            let seen = client.mutex("a").inspect().await;
            let is_back = |view: &VoterView| {
                let Ok(state) = &view.state else { return false };
                let is_held = state.holders.iter().any(|held| held.hold == *guard.hold());
                is_held && state.waiting.len() == 5
            };
            seen.is_ok_and(|seen| seen.voters.iter().all(is_back))
        });
    }
    Stopwatch::start().sleep_until(secs(31)).await;
    assert!(guard.is_held());
    on.release(guard.release()).await;
    must_enter_in_order(workers);
    on.until_clean().await;
}

// What the tests of the queue share.

/// Waits until so many stand in the queue of `a` on a majority.
pub(crate) async fn until_waiting(client: &Quorate, count: usize) {
    standing::until_waiting(client, LockKind::Mutex, "a", count).await;
}

/// Waiters that came one after the other, and who has entered.
pub(crate) struct Waiters {
    observer: Client,
    tasks: JoinSet<()>,
    entered: Arc<Mutex<Vec<usize>>>,
}

impl Waiters {
    pub(crate) async fn of(on: &Fixture) -> Self {
        let observer = on.client().await;
        Self { observer, tasks: JoinSet::new(), entered: Arc::default() }
    }

    /// One more, behind those that stand there; `ends` is what it does when it has entered.
    pub(crate) async fn come<F: Future<Output = ()> + Send>(
        &mut self,
        lock: quorate::Mutex,
        ends: impl FnOnce(MutexGuard) -> F + Send + 'static,
    ) {
        let (number, entered) = (self.tasks.len(), Arc::clone(&self.entered));
        self.tasks.spawn(async move {
            let guard = lock.lock().await.expect("a majority answers");
            entered.lock().unwrap().push(number);
            ends(guard).await;
        });
        until_waiting(&self.observer, number + 1).await;
    }

    /// Waits for all, and checks that they entered in the order of coming.
    pub(crate) async fn must_enter_in_order(self) {
        let count = self.tasks.len();
        assert_eq!(self.enter().await, (0..count).collect::<Vec<_>>());
    }

    /// Waits for all; in which order they entered.
    pub(crate) async fn enter(self) -> Vec<usize> {
        self.tasks.join_all().await;
        self.entered.lock().unwrap().clone()
    }
}

/// What most do when they have entered. Servers on a busy machine may not confirm it in time: then
/// it goes on by itself.
pub(crate) async fn release(guard: MutexGuard) {
    if let Err(error) = guard.release().await {
        assert!(error.is_unconfirmed(), "{error}");
    }
}
