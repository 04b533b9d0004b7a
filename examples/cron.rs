//! A periodic job: cron starts it on several machines, and one of them runs it in each period.
//!
//! The first machine that comes runs the job, and then leaves the lock to its lease. So a machine
//! whose timer fires a little later finds the lock taken, though the job is done already.
//!
//! It shows three machines inside one process, and runs on the voters in `QUORATE_VOTERS`, or on
//! embedded ones.

use std::{env, time::Duration};

use quorate::{Builder, Quorate, embedded};
use tokio::{time::sleep, try_join};

type Error = Box<dyn std::error::Error>;

/// Longer than the timers of the machines are apart, and shorter than the period. A lease cannot be
/// longer than `longest_lease` (30 s): a machine that may come even later needs a note that the job
/// is done.
const SPREAD: Duration = Duration::from_secs(2);

#[tokio::main]
async fn main() -> Result<(), Error> {
    let builder = match env::var_os("QUORATE_VOTERS") {
        Some(_) => Builder::from_env()?,
        None => Quorate::builder().embedded(&embedded::voters(5)),
    };
    let quorum = builder.connect().await?;
    let (ada, ben, cleo) = try_join!(
        job(&quorum, "ada", Duration::ZERO),
        job(&quorum, "ben", SPREAD / 10),
        job(&quorum, "cleo", SPREAD / 5),
    )?;
    quorum.close().await?;
    match u32::from(ada) + u32::from(ben) + u32::from(cleo) {
        1 => Ok(()),
        runs => Err(format!("the job ran {runs} times").into()),
    }
}

/// What cron starts on a machine whose timer is late by so much. Returns whether it ran the job.
async fn job(quorum: &Quorate, machine: &str, late: Duration) -> Result<bool, Error> {
    sleep(late).await;
    let mutex = quorum.mutex("nightly report");
    let mut tried = mutex.try_lock().await;
    // Most servers may have restarted since any client was there: then they count again soon.
    if let Err(error) = &tried
        && let Some(time) = error.retry_after()
    {
        sleep(time).await;
        tried = mutex.try_lock().await;
    }
    let Some(guard) = tried? else {
        println!("{machine}: another machine makes the report, or has just made it");
        return Ok(false);
    };
    guard.try_while_held(make_report(machine)).await?;
    // Dropped instead, the guard would let the next machine run the job again.
    guard.keep_for(SPREAD).await?;
    Ok(true)
}

async fn make_report(machine: &str) -> Result<(), Error> {
    sleep(Duration::from_millis(10)).await;
    println!("{machine} made the report");
    Ok(())
}
