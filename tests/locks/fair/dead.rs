//! Waiters that give up, and waiters that die.

use quorate::{
    Quorate,
    embedded::{self, Fault, Machine},
};
use tokio::time::sleep;

use crate::fair::queue::{Waiters, release, until_waiting};
use quorate_tests::{
    claims,
    fixture::{Fixture, Stopwatch, ms, secs},
    kind::{Client, Kind},
};

claims!(everywhere of FairMutex:
    a_waiter_that_gives_up_leaves_no_entry_and_the_lock_can_be_taken_at_once,
    a_waiter_that_is_dropped_leaves_the_queue_and_the_next_one_is_called,
    a_client_that_is_closed_leaves_the_queue,
);

const RECORD: &str = "quorate:{a}";

async fn a_waiter_that_gives_up_leaves_no_entry_and_the_lock_can_be_taken_at_once(on: Fixture) {
    let (client, theirs) = (on.client().await, on.client().await);
    let guard = client.mutex("a").lock().await.unwrap();
    let watch = Stopwatch::start();
    assert!(theirs.mutex("a").lock_within(ms(200)).await.unwrap().is_none());
    let waited = watch.time();
    assert!(waited >= ms(200) && waited <= on.at_most(ms(202)), "{waited:?}");
    on.until_only(&[RECORD]).await;
    on.release(guard).await;
    let guard = theirs.mutex("a").try_lock().await.unwrap();
    on.release(guard.expect("nobody waits")).await;
    on.until_clean().await;
}

// The first in the queue goes while the lock is free for it and held by a voter that hears nobody.
async fn a_waiter_that_is_dropped_leaves_the_queue_and_the_next_one_is_called(on: Fixture) {
    let (client, theirs) = (on.client().await, on.client().await);
    let guard = client.mutex("a").lock().await.unwrap();
    let lock = theirs.mutex("a");
    let first = tokio::spawn(async move { lock.lock().await });
    until_waiting(&client, 1).await;
    let lock = on.client().await.mutex("a");
    let second = tokio::spawn(async move { lock.lock().await.unwrap() });
    until_waiting(&client, 2).await;
    first.abort();
    until_waiting(&client, 1).await;
    on.release(guard).await;
    on.release(second.await.unwrap()).await;
    on.until_clean().await;
}

async fn a_client_that_is_closed_leaves_the_queue(on: Fixture) {
    let (client, theirs) = (on.client().await, on.client().await);
    let guard = client.mutex("a").lock().await.unwrap();
    let lock = theirs.mutex("a");
    let waiting = tokio::spawn(async move { lock.lock().await });
    until_waiting(&client, 1).await;
    theirs.close().await;
    assert!(waiting.await.unwrap().unwrap_err().is_closed());
    on.until_only(&[RECORD]).await;
    on.release(guard).await;
}

/// A client on a machine that can be killed.
async fn client_on(on: &Fixture, machine: &Machine) -> Client {
    on.client_of(on.builder().machine(machine).connect().await.unwrap())
}

// The first of three dies right after a refresh. The lock is released a second later; the second
// enters when the dead one's place ends, and until then nobody asks more often than refreshes do:
// two waiters, once in a third of 5 s.
#[tokio::test(start_paused = true)]
async fn when_the_first_dies_the_next_enters_within_the_deadline_and_nobody_spins() {
    let voters = embedded::voters(5);
    let on = Fixture::of(&voters).of_kind(Kind::FairMutex);
    let guard = on.client().await.mutex("a").lock().await.unwrap();
    let machine = Machine::new("other");
    let doomed = client_on(&on, &machine).await.mutex("a");
    let dead = tokio::spawn(machine.run(async move { drop(doomed.lock().await) }));
    until_waiting(&on.client().await, 1).await;
    let lock = on.client().await.mutex("a");
    let second = tokio::spawn(async move { lock.lock().await.unwrap() });
    until_waiting(&on.client().await, 2).await;
    sleep(secs(20)).await;
    machine.kill();
    let watch = Stopwatch::start();
    let before = on.runs("mutex/acquire").unwrap();
    sleep(secs(1)).await;
    guard.release().await.unwrap();
    let guard = second.await.unwrap();
    assert!(watch.time() <= secs(5) + ms(10), "{:?}", watch.time());
    for (now, before) in on.runs("mutex/acquire").unwrap().into_iter().zip(before) {
        // Refreshes, and the bids when the dead one's place ends and when its lock is free.
        assert!(now - before <= 5, "{}", now - before);
    }
    guard.release().await.unwrap();
    dead.abort();
    on.until_clean().await;
}

// A holder that dies takes its own place with it: the next one enters when the lease ends.
#[tokio::test(start_paused = true)]
async fn when_the_holder_dies_the_first_enters_when_its_lease_ends() {
    for lease in [secs(1), secs(3), secs(30)] {
        let voters = embedded::voters(3);
        let on = Fixture::of(&voters).of_kind(Kind::FairMutex);
        let machine = Machine::new("other");
        let doomed = client_on(&on, &machine).await.mutex("a").lease_fixed(lease);
        let first = on.client().await.mutex("a").lock().await.unwrap();
        let held = tokio::spawn(machine.run(async move { doomed.lock().await.unwrap() }));
        until_waiting(&on.client().await, 1).await;
        first.release().await.unwrap();
        let guard = held.await.unwrap();
        let watch = Stopwatch::start();
        machine.kill();
        let next = on.client().await.mutex("a").lock().await.unwrap();
        assert!(watch.time() <= lease + ms(10), "{lease:?}: {:?}", watch.time());
        next.release().await.unwrap();
        drop(guard);
    }
}

// Nothing tells a voter that the client of the first is gone but the deadline; the others keep
// their order.
#[tokio::test(start_paused = true)]
async fn a_dead_client_with_many_places_holds_up_nobody_for_longer_than_one_deadline() {
    let voters = embedded::voters(3);
    let on = Fixture::of(&voters).of_kind(Kind::FairMutex);
    let guard = on.client().await.mutex("a").lock().await.unwrap();
    let machine = Machine::new("other");
    let doomed = client_on(&on, &machine).await;
    for count in 1..=20 {
        let lock = doomed.mutex("a");
        drop(tokio::spawn(machine.run(async move { drop(lock.lock().await) })));
        until_waiting(&on.client().await, count).await;
    }
    machine.kill();
    guard.release().await.unwrap();
    let watch = Stopwatch::start();
    let next = on.client().await.mutex("a").lock().await.unwrap();
    assert!(watch.time() <= secs(5) + ms(10), "{:?}", watch.time());
    next.release().await.unwrap();
    let mut waiters = Waiters::of(&on).await;
    let guard = Quorate::mutex(&*on.client().await, "a").lock().await.unwrap();
    waiters.come(on.client().await.mutex("a"), release).await;
    guard.release().await.unwrap();
    waiters.must_enter_in_order().await;
}

// As for the mutex: pauses from 1 ms, doubled up to half a second, and refreshes of the place.
#[tokio::test(start_paused = true)]
async fn a_voter_whose_connection_breaks_at_every_request_does_not_make_a_waiter_spin() {
    let voters = embedded::voters(3);
    let on = Fixture::of(&voters).of_kind(Kind::FairMutex);
    let guard = on.client().await.mutex("a").lock().await.unwrap();
    let waiter = on.client().await.mutex("a");
    let _fault = voters[0].fault(Fault::CutBeforeRun);
    assert!(waiter.lock_within(secs(10)).await.unwrap().is_none());
    let asked = voters[1].runs("mutex/acquire");
    assert!(asked < 40, "asked {asked} times in ten seconds");
    on.release(guard).await;
}
