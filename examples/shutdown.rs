//! A service that works under a lock, and gives the lock back when it is asked to stop.
//!
//! ```text
//! cargo run --example shutdown -- redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3
//! ```
//!
//! It stops by Ctrl-C, and on Unix by SIGTERM. Without arguments it runs on embedded voters, and
//! stops by itself after a second.

use std::{
    env, io,
    pin::{Pin, pin},
    time::Duration,
};

use quorate::{Quorate, Token, embedded};
use tokio::{select, time::sleep};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let servers: Vec<String> = env::args().skip(1).collect();
    let is_demo = servers.is_empty();
    let voters = embedded::voters(if is_demo { 3 } else { 0 });
    let quorum = Quorate::builder().voters(servers).embedded(&voters).connect().await?;
    let served = if is_demo {
        serve(&quorum, sleep(Duration::from_secs(1))).await
    } else {
        let stop = asked_to_stop()?;
        serve(&quorum, stop).await
    };
    // Whatever is left is released, and so nobody waits for a lease of this process to end.
    quorum.close().await;
    Ok(served?)
}

/// Works whenever it has the lock, until `stop` completes.
async fn serve(quorum: &Quorate, stop: impl Future<Output = ()>) -> Result<(), quorate::Error> {
    let (mutex, mut stop) = (quorum.mutex("invoices"), pin!(stop));
    loop {
        let guard = select! {
            guard = mutex.lock() => guard?,
            // Dropping `lock` leaves nothing behind.
            () = &mut stop => return Ok(()),
        };
        println!("working");
        if guard.while_held(send_invoices(guard.token(), stop.as_mut())).await.is_ok() {
            println!("stopped");
            return guard.release().await;
        }
        println!("the lock was lost: waiting for it again");
    }
}

/// Stops only between two invoices, so that no invoice is left half done.
async fn send_invoices(token: Token, mut stop: Pin<&mut impl Future<Output = ()>>) {
    for number in 1.. {
        println!("invoice {number} with token {token}");
        sleep(Duration::from_millis(100)).await;
        select! {
            () = &mut stop => return,
            () = sleep(Duration::from_millis(100)) => {}
        }
    }
}

/// Completes when the process is asked to stop. Signals count from this call on.
#[cfg(unix)]
fn asked_to_stop() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut term, mut interrupt) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        select! {
            _ = term.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

#[cfg(not(unix))]
fn asked_to_stop() -> io::Result<impl Future<Output = ()>> {
    Ok(async { drop(tokio::signal::ctrl_c().await) })
}
