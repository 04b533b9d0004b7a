//! How do many processes read a shared cache, while one of them refreshes it?
//!
//! Readers share a read lock. Whoever finds the cache stale takes the write lock and looks again,
//! because another process may have refreshed the cache meanwhile. It then turns the write into a
//! read, so that nobody can change the value before it has used it.
//!
//! `cargo run --example cache` shows ten readers on embedded voters.

use std::{
    sync::atomic::{AtomicU32, Ordering::SeqCst},
    time::Duration,
};

use quorate::{Error, Quorate, RwLock, embedded};
use tokio::time::sleep;

/// A value that all processes see, as in Redis or in a file. 0 is stale.
static CACHE: AtomicU32 = AtomicU32::new(0);
static REFRESHES: AtomicU32 = AtomicU32::new(0);

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let voters = embedded::voters(3);
    let mut readers = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let quorum = Quorate::builder().embedded(&voters).connect().await?;
        readers.spawn(async move { price(&quorum.rw_lock("prices")).await });
    }
    while let Some(price) = readers.join_next().await {
        println!("a reader got {}", price??);
    }
    let refreshes = REFRESHES.load(SeqCst);
    if refreshes == 1 { Ok(()) } else { Err(format!("{refreshes} refreshes").into()) }
}

/// The cached price; refreshed if it is stale.
async fn price(lock: &RwLock) -> Result<u32, Error> {
    let reading = lock.read().await?;
    let cached = CACHE.load(SeqCst);
    // A reader cannot become a writer: it would wait for the other readers, and they for it.
    reading.release().await?;
    if cached != 0 {
        return Ok(cached);
    }
    let writing = lock.write().await?;
    if CACHE.load(SeqCst) == 0 {
        writing.while_held(refresh()).await?;
    }
    let reading = writing.downgrade().await?;
    let price = CACHE.load(SeqCst);
    reading.release().await?;
    Ok(price)
}

async fn refresh() {
    sleep(Duration::from_millis(20)).await;
    CACHE.store(42, SeqCst);
    REFRESHES.fetch_add(1, SeqCst);
}
