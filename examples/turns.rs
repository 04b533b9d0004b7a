//! Workers of any number of processes that take turns, in the order in which they came:
//!
//! ```text
//! cargo run --example turns -- invoice:42 redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3
//! ```
//!
//! It says `entered` when its turn has come, and gives it up at a line of its input, or at the end
//! of it. Without arguments three workers inside one process show the same on embedded voters.

use std::{env, io, time::Duration};

use quorate::{Error, Quorate, embedded};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut arguments = env::args().skip(1);
    match arguments.next() {
        Some(name) => take_a_turn(&Quorate::connect(arguments).await?, &name).await,
        None => show().await,
    }
}

/// Waits, works, and leaves.
async fn take_a_turn(quorum: &Quorate, name: &str) -> Result<(), Error> {
    let guard = quorum.fair_mutex(name).lock().await?;
    println!("entered {}", guard.hold());
    // Dropped at once where the lock is lost: then the turn has ended, whatever is typed.
    guard.while_held(line()).await?;
    guard.release().await?;
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
    let quorum = Quorate::builder().embedded(&voters).connect().await?;
    let mutex = quorum.fair_mutex("invoice:42");
    let first = mutex.lock().await?;
    let mut workers = tokio::task::JoinSet::new();
    for worker in ["ada", "ben", "cleo"] {
        let (theirs, waiting) = (mutex.clone(), mutex.inspect().await?.waiting.len());
        workers.spawn(async move {
            let guard = theirs.lock().await?;
            println!("{worker} entered");
            tokio::time::sleep(Duration::from_millis(50)).await;
            guard.release().await
        });
        while mutex.inspect().await?.waiting.len() == waiting {
            tokio::task::yield_now().await;
        }
    }
    for waiting in mutex.inspect().await?.waiting {
        println!("{} waits with ticket {}", waiting.place, waiting.ticket);
    }
    first.release().await?;
    while let Some(done) = workers.join_next().await {
        done.expect("no worker panics")?;
    }
    Ok(())
}
