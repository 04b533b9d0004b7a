//! Waiters that die.

use quorate::{Quorate, embedded::Machine};
use tokio::time::sleep;

use crate::fair::queue::{Waiters, release, until_waiting};
use quorate_tests::{
    fixture::{Fixture, Stopwatch, ms, secs},
    kind::{Client, Kind},
};

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
