//! A periodic job: several machines start it, and one of them runs it in each period.
//!
//! The first machine that comes runs the job, and then leaves the lock to its lease. So a machine
//! whose timer fires a little later finds the lock taken, though the job is done already.
//!
//! `cargo run --example cron` shows three machines inside one process, on embedded voters.

use std::time::Duration;

use quorate::{Quorate, embedded};
use tokio::time::{interval, sleep};

/// From one run to the next; a day, outside of a demo.
const PERIOD: Duration = Duration::from_secs(3);
const PERIODS: u32 = 2;
/// Longer than the timers are apart, and shorter than the period. A lease cannot be longer than
/// `longest_lease` (30 s): a machine that may come even later needs a note that the job is done.
const SPREAD: Duration = Duration::from_secs(2);

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let voters = embedded::voters(5);
    let connect = || Quorate::builder().embedded(&voters).connect();
    let (ada, ben, cleo) = tokio::try_join!(connect(), connect(), connect())?;
    let runs = tokio::try_join!(
        machine("ada", Duration::ZERO, ada),
        machine("ben", SPREAD / 10, ben),
        machine("cleo", SPREAD / 5, cleo),
    )?;
    let runs = runs.0 + runs.1 + runs.2;
    if runs == PERIODS { Ok(()) } else { Err(format!("{runs} runs in {PERIODS} periods").into()) }
}

/// One machine, whose timer is late by so much. Returns how often it ran the job.
async fn machine(name: &str, late: Duration, quorum: Quorate) -> Result<u32, quorate::Error> {
    sleep(late).await;
    // `keep_for` makes no lease shorter: with the default of 30 s the lock would be kept for 30 s.
    let mutex = quorum.mutex("nightly report").lease(SPREAD);
    let (mut timer, mut runs) = (interval(PERIOD), 0);
    for night in 1..=PERIODS {
        timer.tick().await;
        // `None`: another machine is running the job, or has just done so.
        if let Some(guard) = mutex.try_lock().await? {
            guard.while_held(make_report(name, night)).await?;
            // Dropped instead, the guard would let the next machine run the job again.
            guard.keep_for(SPREAD).await?;
            runs += 1;
        }
    }
    quorum.close().await;
    Ok(runs)
}

async fn make_report(machine: &str, night: u32) {
    sleep(Duration::from_millis(10)).await;
    println!("{machine} made the report of night {night}");
}
