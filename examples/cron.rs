//! A periodic job: cron starts it on several machines, and one of them runs it in each period. A
//! machine whose timer fires late finds that it is done; one that waits takes over if it fails.
//!
//! It shows three machines inside one process, and runs on the voters in `QUORATE_VOTERS`, or on
//! embedded ones.

use std::{
    env,
    time::{Duration, SystemTime},
};

use quorate::{Builder, Firing, OnceOutcome, Quorate, Token, embedded};
use tokio::{time::sleep, try_join};

type Error = Box<dyn std::error::Error>;

/// How often the job is due. The timers fire in the middle of a period: here that begins half of it
/// before now.
const PERIOD: Duration = Duration::from_secs(3600);

#[tokio::main]
#[expect(clippy::disallowed_methods, reason = "the firing is that of now")]
async fn main() -> Result<(), Error> {
    let (builder, now) = if env::var_os("QUORATE_VOTERS").is_some() {
        (Builder::from_env()?, SystemTime::now())
    } else {
        // The clocks of embedded voters begin then.
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        (Quorate::builder().embedded(&embedded::voters(5)), now)
    };
    let quorum = builder.connect().await?;
    let offset = now.duration_since(SystemTime::UNIX_EPOCH)?.as_secs() % PERIOD.as_secs();
    let offset = Duration::from_secs(offset) + PERIOD / 2;
    let firing = |late: u32| Firing::every(PERIOD, offset, now + late * Duration::from_millis(200));
    let (ada, ben, cleo) = try_join!(
        job(&quorum, "ada", 0, firing(0)),
        job(&quorum, "ben", 1, firing(1)),
        job(&quorum, "cleo", 2, firing(2)),
    )?;
    quorum.close().await?;
    match u32::from(ada) + u32::from(ben) + u32::from(cleo) {
        1 => Ok(()),
        runs => Err(format!("the job ran {runs} times").into()),
    }
}

/// What cron starts on a machine whose timer is late by so many fifths of a second. Returns whether
/// it ran the job.
async fn job(quorum: &Quorate, machine: &str, late: u32, firing: Firing) -> Result<bool, Error> {
    sleep(late * Duration::from_millis(200)).await;
    let once = quorum.once("nightly report");
    let outcome = once.run(firing, |token| make_report(machine, token)).await?;
    Ok(match outcome {
        OnceOutcome::Ran { marked, .. } => {
            println!("{machine}: made the report, and the voters know it: {marked}");
            true
        }
        OnceOutcome::Passed { latest, .. } => {
            println!("{machine}: the report {latest} is made");
            false
        }
        other => return Err(format!("{machine}: {other:?}").into()),
    })
}

async fn make_report(machine: &str, _token: Token) -> Result<(), Error> {
    println!("{machine}: makes the report");
    sleep(Duration::from_millis(100)).await;
    Ok(())
}
