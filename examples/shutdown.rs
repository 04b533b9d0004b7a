//! A service that works under a lock, and gives the lock back when it is asked to stop.
//!
//! ```text
//! QUORATE_VOTERS="redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3" cargo run --example shutdown
//! ```
//!
//! It stops by Ctrl-C, and on Unix by SIGTERM. Without voters it runs on embedded ones, and stops
//! by itself after a second.

use std::{env, io, pin::pin, time::Duration};

use quorate::{Builder, Error, Quorate, Token, embedded};
use tokio::{select, signal, time::sleep};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let is_demo = env::var_os("QUORATE_VOTERS").is_none();
    let voters = || Quorate::builder().embedded(&embedded::voters(3));
    let builder = if is_demo { voters() } else { Builder::from_env()? };
    let quorum = builder.connect().await?;
    let stop = async {
        select! {
            _ = signal::ctrl_c() => {}
            _ = terminated() => {}
            () = sleep(Duration::from_secs(1)), if is_demo => {}
        }
    };
    let served = serve(&quorum, stop).await;
    // Whatever is left is released, and so nobody waits for a lease of this process to end.
    served.and(quorum.close().await)
}

/// Works whenever it has the lock, until `stop` completes.
async fn serve(quorum: &Quorate, stop: impl Future<Output = ()>) -> Result<(), Error> {
    let (mutex, mut stop) = (quorum.mutex("invoices"), pin!(stop));
    loop {
        let guard = select! {
            guard = mutex.lock() => guard?,
            // Dropping `lock` leaves nothing behind.
            () = &mut stop => return Ok(()),
        };
        while guard.while_held(send_invoice(guard.token())).await.is_ok() {
            // It stops only between two invoices, so that no invoice is left half done.
            select! {
                () = &mut stop => return guard.release().await,
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

/// Completes when the system ends the process; never where there are no such signals.
async fn terminated() -> io::Result<()> {
    #[cfg(unix)]
    signal::unix::signal(signal::unix::SignalKind::terminate())?.recv().await;
    #[cfg(not(unix))]
    std::future::pending::<()>().await;
    Ok(())
}
