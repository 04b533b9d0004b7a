//! Five workers, of which three at a time may talk to a partner that allows three connections. Each
//! of these has an account of its own, by the number of its permit.
//!
//! ```text
//! QUORATE_VOTERS="redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3" cargo run --example workers
//! ```

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use quorate::{Builder, Error, Quorate, embedded};
use tokio::time::sleep;

/// One for each permit.
const ACCOUNTS: [&str; 3] = ["first", "second", "third"];
static BUSY: AtomicUsize = AtomicUsize::new(0);

#[tokio::main]
async fn main() -> Result<(), Error> {
    let voters = embedded::voters(3);
    let builder = match std::env::var_os("QUORATE_VOTERS") {
        Some(_) => Builder::from_env()?,
        None => Quorate::builder().embedded(&voters),
    };
    let quorum = builder.connect().await?;
    let permits = u32::try_from(ACCOUNTS.len()).expect("there are few");
    let partner = quorum.semaphore("partner", permits);
    let workers: Vec<_> = (1..=5)
        .map(|worker| {
            let partner = partner.clone();
            tokio::spawn(async move { partner.run(|slots| call(worker, slots[0])).await })
        })
        .collect();
    for worker in workers {
        worker.await.expect("no worker panics")?;
    }
    println!("free again: {} of {permits}", partner.inspect().await?.free());
    quorum.close().await?;
    Ok(())
}

async fn call(worker: u32, slot: u32) -> Result<(), Error> {
    let busy = BUSY.fetch_add(1, Ordering::SeqCst) + 1;
    assert!(busy <= ACCOUNTS.len(), "{busy} at once");
    println!("worker {worker} works with the {} account", ACCOUNTS[slot as usize]);
    sleep(Duration::from_millis(50)).await;
    BUSY.fetch_sub(1, Ordering::SeqCst);
    Ok(())
}
