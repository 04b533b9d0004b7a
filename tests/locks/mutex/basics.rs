//! Taking, holding, giving back.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio::task::{JoinSet, yield_now};

use quorate_tests::{
    claims,
    fixture::{Fixture, Stopwatch, ms, secs},
    kind::{Client, Lock},
};

claims!(everywhere of both:
    a_lock_can_be_taken_and_released_again_and_again,
    sixteen_clients_take_a_hundred_turns_each_and_never_two_at_once,
    a_hundred_clients_all_get_their_turn,
    a_lease_that_was_given_once_does_not_leak_into_the_next_acquire,
    dropping_a_guard_releases_the_lock,
    after_a_drop_the_same_client_can_take_the_lock_at_once,
    locks_of_different_names_do_not_meet,
);
claims!(inside of both: a_fixed_lease_before_does_not_end_the_next_renewal);

// Each hold has an id of its own, and none of ten finds the one before it in its way.
async fn a_lock_can_be_taken_and_released_again_and_again(on: Fixture) {
    let mutex = on.client().await.mutex("a");
    let mut holds = std::collections::HashSet::new();
    for _ in 0..10 {
        let guard = mutex.try_lock().await.unwrap().expect("it was released");
        assert!(guard.is_held());
        assert!(holds.insert(guard.hold().clone()), "an id was used twice");
        guard.release().await.unwrap();
    }
    on.until_clean().await;
}

/// Reads, gives way, and writes: two at once lose an increment.
async fn take_turns(on: Arc<Fixture>, mutex: Lock, rounds: u64, counter: Arc<AtomicU64>) {
    for _ in 0..rounds {
        let guard = mutex.lock().await.unwrap();
        let count = counter.load(Ordering::Relaxed);
        yield_now().await;
        counter.store(count + 1, Ordering::Relaxed);
        on.release(guard).await;
    }
}

async fn all_take_turns(on: Fixture, clients: u64, rounds: u64) {
    let (on, counter) = (Arc::new(on), Arc::new(AtomicU64::new(0)));
    let mut tasks = JoinSet::new();
    let mut parties: Vec<Client> = Vec::new();
    for _ in 0..clients {
        parties.push(on.client().await);
    }
    for client in &parties {
        tasks.spawn(take_turns(Arc::clone(&on), client.mutex("a"), rounds, Arc::clone(&counter)));
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert_eq!(counter.load(Ordering::Relaxed), clients * rounds);
    on.until_clean().await;
}

// The counter is read and written apart, with a chance for others in between: it comes out exact
// only if no two were ever inside together.
async fn sixteen_clients_take_a_hundred_turns_each_and_never_two_at_once(on: Fixture) {
    let rounds = on.rounds(100, (10, 10));
    all_take_turns(on, 16, rounds).await;
}

// As above, where every client is new to the lock. A server counts two connections per client.
async fn a_hundred_clients_all_get_their_turn(on: Fixture) {
    let clients = if on.is_real() && on.voters() > 1 { on.rounds(100, (100, 20)) } else { 100 };
    all_take_turns(on, clients, 1).await;
}

// The lease of a fresh hold is what its own call asked for: neither the 29 s nor the 10 s that the
// same client, and the same owner, had before it. Time left can only be less than the lease, and
// by no more than the time since before the call and the
// millisecond that a voter's times are rounded to.
async fn a_lease_that_was_given_once_does_not_leak_into_the_next_acquire(on: Fixture) {
    let client = on.client().await;
    let owner = quorate::Owner::new();
    let default = client.mutex("a").owner(&owner);
    for other in [default.clone().lease(secs(29)), default.clone().lease_fixed(secs(10))] {
        let guard = other.lock().await.unwrap();
        guard.release().await.unwrap();
        let watch = Stopwatch::start();
        let guard = default.lock().await.unwrap();
        let ttl = default.inspect().await.unwrap().holder().unwrap().ttl.unwrap();
        assert!(ttl <= secs(30) && ttl + ms(1) + watch.time() >= secs(30), "{ttl:?}");
        guard.release().await.unwrap();
    }
    on.until_clean().await;
}

// 95 s is over three leases of 30 s: a hold that had inherited the end of the fixed lease, or its
// lack of renewal, would be lost by then.
async fn a_fixed_lease_before_does_not_end_the_next_renewal(on: Fixture) {
    let client = on.client().await;
    let guard = client.mutex("a").lease_fixed(secs(10)).lock().await.unwrap();
    guard.release().await.unwrap();
    let guard = client.mutex("a").lock().await.unwrap();
    tokio::time::sleep(secs(95)).await;
    assert!(guard.is_held());
    guard.release().await.unwrap();
    on.until_clean().await;
}

// The lease is 30 s, and renewed: only the drop can have freed it before.
async fn dropping_a_guard_releases_the_lock(on: Fixture) {
    let (ours, theirs) = (on.client().await.mutex("a"), on.client().await.mutex("a"));
    let watch = Stopwatch::start();
    drop(ours.lock().await.unwrap());
    let guard = theirs.lock().await.unwrap();
    assert!(watch.time() < secs(30) / 2);
    guard.release().await.unwrap();
    on.until_clean().await;
}

// What a client sends arrives in the order of sending: its release before its next try.
async fn after_a_drop_the_same_client_can_take_the_lock_at_once(on: Fixture) {
    let mutex = on.client().await.mutex("a");
    for _ in 0..20 {
        let guard = mutex.try_lock().await.unwrap().expect("the drop came before");
        drop(guard);
    }
    on.until_clean().await;
}

async fn locks_of_different_names_do_not_meet(on: Fixture) {
    let (ours, theirs) = (on.client().await, on.client().await);
    let one = ours.mutex("a").try_lock().await.unwrap().expect("it is free");
    let other = theirs.mutex("b").try_lock().await.unwrap().expect("so is the other");
    assert!(one.is_held() && other.is_held());
    one.release().await.unwrap();
    other.release().await.unwrap();
    on.until_clean().await;
}
