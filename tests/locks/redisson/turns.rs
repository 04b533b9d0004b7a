//! Turns between clients. With these names a mutex has no queue: whoever asks first has it.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Relaxed},
};

use quorate::Mutex;
use tokio::time::sleep;

use super::{
    LEASE, NAME, client,
    java::{Java, Subscriber},
    servers,
};
use quorate_tests::fixture::ms;

/// So often a client with many tasks has the lock.
const ENTRIES: u32 = 100;

/// Takes the lock again and again until it was taken so often.
async fn contend(mutex: Mutex, entries: Arc<AtomicU32>) {
    while entries.load(Relaxed) < ENTRIES {
        let guard = mutex.lock().await.unwrap();
        entries.fetch_add(1, Relaxed);
        sleep(ms(5)).await;
        guard.release().await.unwrap();
    }
}

// Those who stand in one client's line know of a release first: whoever asks a little later finds
// the lock taken each time, unless they let others ask.
// Claim 50
#[tokio::test(flavor = "multi_thread")]
async fn a_client_with_many_tasks_lets_others_have_turns() {
    let servers = servers::<1>();
    let (client, java) = (client(&servers).await, Java::new(&servers[0], 1));
    let mut waiter = Subscriber::listen(&servers[0], NAME).await;
    let entries = Arc::<AtomicU32>::default();
    let tasks = [(); 8].map(|()| tokio::spawn(contend(client.mutex(NAME), Arc::clone(&entries))));
    let mut turns = 0;
    while entries.load(Relaxed) < ENTRIES {
        waiter.message().await;
        // What a JVM needs until it asks.
        sleep(ms(1)).await;
        if java.try_lock(NAME, LEASE) {
            turns += 1;
            assert!(java.unlock(NAME));
        }
    }
    for task in tasks {
        task.await.unwrap();
    }
    println!("{turns} turns beside {ENTRIES}");
    assert!(turns >= ENTRIES / 20, "{turns} turns beside {ENTRIES}");
}
