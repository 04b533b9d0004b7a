//! Taking, holding, giving back.

use std::sync::atomic::{AtomicU64, Ordering};

use quorate_tests::prelude::*;
use tokio::task::yield_now;

claims!(everywhere of both:
    a_hundred_clients_all_get_their_turn,
    a_lease_that_was_given_once_does_not_leak_into_the_next_acquire,
    after_a_drop_the_same_client_can_take_the_lock_at_once,
);
claims!(inside of both: a_fixed_lease_before_does_not_end_the_next_renewal);

// The counter is read and written apart, with a chance for others in between: it comes out exact
// only if no two were ever inside together. A server counts two connections per client.
async fn a_hundred_clients_all_get_their_turn(on: Fixture) {
    let clients = if on.is_real() && on.voters() > 1 { on.rounds(100, (100, 20)) } else { 100 };
    let (on, counter) = (Arc::new(on), Arc::new(AtomicU64::new(0)));
    let mut parties = Vec::new();
    for _ in 0..clients {
        parties.push(on.client().await);
    }
    let mut tasks = JoinSet::new();
    for client in &parties {
        let (on, mutex, counter) = (Arc::clone(&on), client.mutex("a"), Arc::clone(&counter));
        tasks.spawn(async move {
            let guard = mutex.lock().await.unwrap();
            let count = counter.load(Ordering::Relaxed);
            yield_now().await;
            counter.store(count + 1, Ordering::Relaxed);
            on.release(guard.release()).await;
        });
    }
    tasks.join_all().await;
    assert_eq!(counter.load(Ordering::Relaxed), clients);
    on.until_clean().await;
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

// What a client sends arrives in the order of sending: its release before its next try.
async fn after_a_drop_the_same_client_can_take_the_lock_at_once(on: Fixture) {
    let mutex = on.client().await.mutex("a");
    for _ in 0..20 {
        let guard = mutex.try_lock().await.unwrap().expect("the drop came before");
        drop(guard);
    }
    on.until_clean().await;
}
