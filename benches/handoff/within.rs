//! A mutex that the tasks of one client, or of two, want all the time and do nothing with.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use quorate::Quorate;
use quorate_benches::common::{builder, close};
use quorate_support::RedisServer;
use tokio::{task::JoinSet, time::sleep};

/// How often it went from one task to the next in a second.
pub(crate) struct Pace {
    pub(crate) a_second: f64,
    /// The part of the client that got it less often.
    pub(crate) smaller_share: f64,
}

pub(crate) async fn measure(
    servers: &[RedisServer],
    clients: usize,
    tasks: usize,
    time: Duration,
) -> Pace {
    let (is_over, mut running) = (Arc::new(AtomicBool::new(false)), JoinSet::new());
    let (mut connected, mut counts) = (Vec::new(), Vec::new());
    for _ in 0..clients {
        let urls = servers.iter().map(RedisServer::url);
        let client = builder(urls).connect().await.expect("the servers answer");
        let count = Arc::new(AtomicU64::new(0));
        for _ in 0..tasks {
            let (client, is_over) = (client.clone(), Arc::clone(&is_over));
            running.spawn(lock_again_and_again(client, is_over, Arc::clone(&count)));
        }
        connected.push(client);
        counts.push(count);
    }
    let so_far = || counts.iter().map(|count| count.load(Relaxed)).collect::<Vec<_>>();
    // Until all stand in line.
    sleep(time / 4).await;
    let before = so_far();
    sleep(time).await;
    let had: Vec<u64> = so_far().iter().zip(before).map(|(now, before)| now - before).collect();
    is_over.store(true, Relaxed);
    running.join_all().await;
    close(connected).await;
    let number = |count: u64| f64::from(u32::try_from(count).expect("a bench is not that long"));
    let (all, least) = (had.iter().sum(), had.into_iter().min().expect("there is a client"));
    Pace {
        a_second: number(all) / time.as_secs_f64(),
        smaller_share: number(least) / number(all).max(1.0),
    }
}

async fn lock_again_and_again(client: Quorate, is_over: Arc<AtomicBool>, count: Arc<AtomicU64>) {
    let mutex = client.mutex("bench:within");
    while !is_over.load(Relaxed) {
        let guard = mutex.lock().await.expect("a majority answers");
        count.fetch_add(1, Relaxed);
        guard.release().await.expect("a majority confirms");
    }
}
