//! More waiters of one client than stand in the queue at the same time.

use std::{
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use quorate::{
    Error, FairMutex, Preference, Quorate, ReadGuard,
    embedded::{self, EmbeddedVoter, Fault},
};
use tokio::{
    task::{JoinSet, yield_now},
    time::{sleep, timeout},
};

use crate::fair::queue::until_waiting;
use quorate_tests::{
    fixture::{Stopwatch, ms, secs},
    inside::all,
};

/// As `docs/protocol.md` says.
const PLACES: usize = 512;
const BEHIND: usize = 20;

/// A client with a patience of 2 s.
async fn client(voters: &[EmbeddedVoter]) -> Quorate {
    let builder = Quorate::builder().embedded(voters).quorum_timeout(secs(2));
    builder.voter_deadline(ms(200)).connect().await.expect("all voters answer")
}

/// Who entered, in this order.
type Entered = Arc<Mutex<Vec<usize>>>;

/// Come one after the other, enter, and leave.
async fn come(tasks: &mut JoinSet<()>, lock: &FairMutex, entered: &Entered, who: Range<usize>) {
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
    let voters = embedded::voters(3);
    let (client, other) = (client(&voters).await, client(&voters).await);
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
    let voters = embedded::voters(3);
    let client = client(&voters).await;
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
    let voters = embedded::voters(3);
    let client = client(&voters).await;
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
    let voters = embedded::voters(3);
    let client = client(&voters).await;
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
    let voters = embedded::voters(3);
    let client = client(&voters).await;
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
    let voters = embedded::voters(3);
    let client = client(&voters).await;
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
    let voters = embedded::voters(3);
    let client = client(&voters).await;
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
