//! Replicas of a service of which one works: the leader. Start several, and end one of them.
//!
//! ```text
//! export QUORATE_VOTERS="redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3"
//! for name in one two three; do cargo run --package web --bin leader $name & done
//! quorate leader worker    # the name of the one that works
//! kill -TERM %1            # it ends its step, gives the lead up, and another one leads at once
//! kill -KILL %2            # within a lease of 30 s another one leads
//! ```
//!
//! In a program of its own it needs `quorate` with the feature `embedded`, and `tokio` with `macros`,
//! `rt-multi-thread`, `signal` and `time`.
//!
//! If no majority of the servers answers, for ten minutes say, the leader stops in time, and one of
//! the replicas leads again afterwards. Without `QUORATE_VOTERS` one replica runs here for a moment.

use std::{
    env,
    error::Error,
    ops::ControlFlow::{self, Continue},
    sync::Arc,
    time::Duration,
};

use quorate::{Builder, Leadership, Quorate, embedded};
use tokio::{
    signal::unix::{SignalKind, signal},
    time::{sleep, timeout},
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let name = env::args().nth(1).unwrap_or_else(|| "one".to_owned());
    let is_demo = env::var_os("QUORATE_VOTERS").is_none();
    let voters = embedded::voters(3);
    let builder = if is_demo { Quorate::builder().embedded(&voters) } else { Builder::from_env()? };
    let quorum = builder.connect().await?;
    let mut sigterm = signal(SignalKind::terminate())?;
    let shutdown = async {
        tokio::select! {
            _ = sigterm.recv() => {}
            () = sleep(Duration::from_secs(2)), if is_demo => {}
        }
    };
    quorum.election("worker").lead(&name, shutdown, work).await?;
    quorum.close().await?;
    Ok(())
}

/// What only the leader does, step by step, until the lead is to end.
async fn work(leadership: Arc<Leadership>) -> ControlFlow<()> {
    println!("leads, with token {}", leadership.token());
    while timeout(Duration::from_secs(1), leadership.ending()).await.is_err() {
        // One step. What it changes should be told the token, and refuse a lower one.
    }
    println!("leads no more");
    Continue(())
}
