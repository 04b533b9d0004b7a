//! A service that works under a lock, and gives the lock back when it is asked to stop.
//!
//! ```text
//! QUORATE_VOTERS="redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3" cargo run --example shutdown
//! ```
//!
//! It stops by Ctrl-C, and on Unix by SIGTERM. Without voters it runs on embedded ones, and stops
//! by itself after a second.

use std::{env, future::pending, io, pin::pin, time::Duration};

use quorate::{Builder, Quorate, Token, embedded};
use tokio::{select, signal, time::sleep};

type Error = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let (builder, time) = match env::var_os("QUORATE_VOTERS") {
        Some(_) => (Builder::from_env()?, None),
        None => (Quorate::builder().embedded(&embedded::voters(3)), Some(Duration::from_secs(1))),
    };
    let quorum = builder.connect().await?;
    let served = serve(&quorum, asked_to_stop(time)).await;
    // Whatever is left is released, and so nobody waits for a lease of this process to end.
    quorum.close().await;
    served
}

/// Works whenever it has the lock, until `stop` completes.
async fn serve(quorum: &Quorate, stop: impl Future<Output = io::Result<()>>) -> Result<(), Error> {
    let (mutex, mut stop) = (quorum.mutex("invoices"), pin!(stop));
    loop {
        let guard = select! {
            guard = mutex.lock() => guard?,
            // Dropping `lock` leaves nothing behind.
            stopped = &mut stop => return Ok(stopped?),
        };
        while guard.while_held(send_invoice(guard.token())).await.is_ok() {
            // It stops only between two invoices, so that no invoice is left half done.
            select! {
                stopped = &mut stop => {
                    guard.release().await?;
                    return Ok(stopped?);
                }
                () = sleep(Duration::from_millis(100)) => {}
            }
        }
        println!("the lock was lost: waiting for it again");
    }
}

async fn send_invoice(token: Token) {
    println!("an invoice with token {token}");
    sleep(Duration::from_millis(100)).await;
}

/// Completes when the process is asked to stop, or after this time.
async fn asked_to_stop(time: Option<Duration>) -> io::Result<()> {
    select! {
        interrupted = signal::ctrl_c() => interrupted,
        terminated = terminated() => terminated,
        () = sleep(time.unwrap_or_default()), if time.is_some() => Ok(()),
    }
}

#[cfg(unix)]
async fn terminated() -> io::Result<()> {
    match signal::unix::signal(signal::unix::SignalKind::terminate())?.recv().await {
        Some(()) => Ok(()),
        None => pending().await,
    }
}

#[cfg(not(unix))]
async fn terminated() -> io::Result<()> {
    pending().await
}
