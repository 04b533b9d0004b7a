//! Turns between clients. With these names a mutex has no queue: whoever asks first has it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

use quorate::Mutex;

use super::{NAME, client, servers};
use quorate_support::RedisServer;
use quorate_tests::fixture::{Stopwatch, ms};

/// So often a client with many tasks has the lock.
const ENTRIES: u32 = 400;

/// Takes the lock again and again until somebody has had it so often; says for how long one waited
/// at most.
async fn contend(mutex: Mutex, own: Arc<AtomicU32>, until: Arc<AtomicU32>) -> Duration {
    let mut longest = Duration::ZERO;
    while until.load(Relaxed) < ENTRIES {
        let asked = Stopwatch::start();
        let guard = mutex.lock().await.unwrap();
        longest = longest.max(asked.time());
        own.fetch_add(1, Relaxed);
        tokio::time::sleep(ms(1)).await;
        guard.release().await.unwrap();
    }
    longest
}

/// How often each client had the lock, and for how long the one with a single task waited at most.
async fn contest(servers: &[RedisServer]) -> (u32, u32, Duration) {
    let (crowd, single) = (client(servers).await, client(servers).await);
    let [of_crowd, of_single] = [(); 2].map(|()| Arc::new(AtomicU32::new(0)));
    let tasks = [(); 8].map(|()| {
        tokio::spawn(contend(crowd.mutex(NAME), Arc::clone(&of_crowd), Arc::clone(&of_crowd)))
    });
    let longest = contend(single.mutex(NAME), Arc::clone(&of_single), Arc::clone(&of_crowd)).await;
    for task in tasks {
        task.await.unwrap();
    }
    (of_crowd.load(Relaxed), of_single.load(Relaxed), longest)
}

// Those who stand in one client's line know of a release first.
// Claim 50
#[tokio::test(flavor = "multi_thread")]
async fn a_client_with_many_tasks_lets_others_have_turns() {
    let all: [RedisServer; 3] = servers();
    for servers in [&all[..1], &all] {
        let (crowd, single, longest) = contest(servers).await;
        println!("{} servers: {crowd} to {single}, {longest:?}", servers.len());
        assert!(single >= crowd / 8, "{crowd} to {single}");
        assert!(longest < ms(1_000), "{longest:?}");
    }
}
