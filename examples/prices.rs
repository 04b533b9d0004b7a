//! Processes that share a lock: many read at the same time, or one writes.
//!
//! ```text
//! cargo run --example prices -- write prices redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3
//! ```
//!
//! It says `entered` when it may `read` or `write`, and leaves at a line of its input, or at the
//! end of it. Without arguments clients inside one process show the same on embedded voters.

use std::{env, io};

use quorate::{Error, Quorate, embedded};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut arguments = env::args().skip(1);
    match (arguments.next(), arguments.next()) {
        (Some(way), Some(name)) => enter(&Quorate::connect(arguments).await?, &way, &name).await,
        _ => show().await,
    }
}

/// Waits, works, and leaves.
async fn enter(quorum: &Quorate, way: &str, name: &str) -> Result<(), Error> {
    let lock = quorum.rw_lock(name);
    // Dropped at once where the lock is lost: then it has ended, whatever is typed.
    if way == "write" {
        let guard = lock.write().await?;
        println!("entered {}", guard.hold());
        guard.while_held(line()).await?;
        guard.release().await?;
    } else {
        let guard = lock.read().await?;
        println!("entered {}", guard.hold());
        guard.while_held(line()).await?;
        guard.release().await?;
    }
    println!("released");
    quorum.close().await?;
    Ok(())
}

/// One line of the input.
async fn line() {
    let read = || io::stdin().lines().next();
    drop(tokio::task::spawn_blocking(read).await);
}

async fn show() -> Result<(), Error> {
    let voters = embedded::voters(5);
    let shop = Quorate::builder().embedded(&voters).connect().await?;
    let office = Quorate::builder().embedded(&voters).connect().await?;
    let lock = shop.rw_lock("prices");
    let (ada, ben) = (lock.read().await?, lock.read().await?);
    println!("ada and ben read");
    let theirs = office.rw_lock("prices");
    let cleo = tokio::spawn(async move { theirs.write().await });
    while lock.inspect().await?.waiting.is_empty() {
        tokio::task::yield_now().await;
    }
    println!("cleo waits to write; may another one read? {}", lock.try_read().await?.is_some());
    ada.release().await?;
    ben.release().await?;
    let writing = cleo.await.expect("it does not panic")?;
    println!("cleo writes");
    let reading = writing.downgrade().await?;
    println!(
        "cleo reads what it wrote; may another one read? {}",
        lock.try_read().await?.is_some()
    );
    reading.release().await
}
