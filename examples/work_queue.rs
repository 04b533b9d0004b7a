//! How do several workers share a list of jobs, so that each job is done by one of them?
//!
//! Each job has a lock of its own. A worker skips jobs that another worker has. It marks a job as
//! done while it still holds the lock, and looks for that mark after it has the lock.
//!
//! `cargo run --example work_queue` shows three workers on embedded voters.

use std::{
    sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst},
    time::Duration,
};

use quorate::{Error, Quorate, embedded};
use tokio::time::sleep;

/// A row of the table of jobs, as a database would have it.
#[derive(Default)]
struct Job {
    done: AtomicBool,
    runs: AtomicU32,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let voters = embedded::voters(3);
    let connect = || Quorate::builder().embedded(&voters).connect();
    let (ada, ben, cleo) = tokio::try_join!(connect(), connect(), connect())?;
    let jobs: Vec<Job> = (0..12).map(|_| Job::default()).collect();
    let done = tokio::try_join!(
        work("ada", &ada, &jobs),
        work("ben", &ben, &jobs),
        work("cleo", &cleo, &jobs)
    )?;
    println!("ada, ben and cleo did {done:?} jobs");
    let is_done_once = |job: &Job| job.done.load(SeqCst) && job.runs.load(SeqCst) == 1;
    if jobs.iter().all(is_done_once) { Ok(()) } else { Err("a job ran twice, or never".into()) }
}

/// Does jobs until none is left. Returns how many.
async fn work(name: &str, quorum: &Quorate, jobs: &[Job]) -> Result<u32, Error> {
    let mut count = 0;
    while jobs.iter().any(|job| !job.done.load(SeqCst)) {
        for (id, job) in jobs.iter().enumerate().filter(|(_, job)| !job.done.load(SeqCst)) {
            let Some(guard) = quorum.mutex(format!("job:{id}")).try_lock().await? else { continue };
            // Between the look at the list and the lock, another worker may have done the job.
            if !job.done.load(SeqCst) {
                guard.while_held(sleep(Duration::from_millis(5))).await?;
                job.runs.fetch_add(1, SeqCst);
                job.done.store(true, SeqCst);
                println!("{name} did job {id}");
                count += 1;
            }
            guard.release().await?;
        }
        sleep(Duration::from_millis(5)).await; // the jobs that are left are somebody else's
    }
    Ok(count)
}
