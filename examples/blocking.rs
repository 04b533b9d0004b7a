//! A program without async: three threads share a client, and one of them at a time sells seats.
//!
//! ```text
//! cargo run --example blocking -- redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3
//! ```
//!
//! Without arguments it runs on embedded voters.

use std::{
    env, panic,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    thread,
    time::Duration,
};

use quorate::{blocking::Quorate, embedded};

type Error = Box<dyn std::error::Error + Send + Sync>;

const SELLERS: [&str; 3] = ["ada", "ben", "cleo"];
const SEATS: u32 = 30;

fn main() -> Result<(), Error> {
    let servers: Vec<String> = env::args().skip(1).collect();
    let voters = embedded::voters(if servers.is_empty() { 3 } else { 0 });
    let quorum = Quorate::builder().voters(servers).embedded(&voters).connect_blocking()?;
    let sold = AtomicU32::new(0);
    thread::scope(|scope| {
        let sellers = SELLERS.map(|name| scope.spawn(|| sell(name, &quorum, &sold)));
        for seller in sellers {
            seller.join().unwrap_or_else(|panic| panic::resume_unwind(panic))?;
        }
        Ok::<_, Error>(())
    })?;
    count(&quorum, &sold)?;
    // Without it the last release might not be sent before the process ends.
    Ok(quorum.close()?)
}

/// Sells a third of the seats; the lock is held for each of them alone.
fn sell(name: &str, quorum: &Quorate, sold: &AtomicU32) -> Result<(), Error> {
    let mutex = quorum.mutex("seats");
    for _ in 0..SEATS as usize / SELLERS.len() {
        // An error of the work and the loss of the lock are one result.
        let seat = mutex.run(|_token| {
            let seat = sold.load(Relaxed) + 1;
            thread::sleep(Duration::from_millis(1));
            sold.store(seat, Relaxed);
            Ok::<_, Error>(seat)
        })?;
        println!("{name} sold seat {seat}");
    }
    Ok(())
}

/// Longer work takes a guard, and stops between two steps when the lock is lost.
fn count(quorum: &Quorate, sold: &AtomicU32) -> Result<(), Error> {
    let guard = quorum.mutex("seats").lock()?;
    for seat in 1..=sold.load(Relaxed) {
        println!("seat {seat} is paid");
        if let Some(lost) = guard.lost_within(Duration::from_millis(1))? {
            return Err(lost.into());
        }
    }
    guard.release()?;
    let sold = sold.load(Relaxed);
    if sold == SEATS { Ok(()) } else { Err(format!("{sold} of {SEATS} seats are sold").into()) }
}
