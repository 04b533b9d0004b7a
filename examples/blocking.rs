//! A program without async: three threads share a client, and one of them at a time sells seats.
//!
//! ```text
//! QUORATE_VOTERS="redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3" cargo run --example blocking
//! ```
//!
//! Without voters it runs on embedded ones.

use std::{
    env,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    thread,
    time::Duration,
};

use quorate::{Builder, Error, blocking::Quorate, embedded};

const SEATS: u32 = 30;

fn main() -> Result<(), Error> {
    let builder = match env::var_os("QUORATE_VOTERS") {
        Some(_) => Builder::from_env()?,
        None => Quorate::builder().embedded(&embedded::voters(3)),
    };
    let (quorum, sold) = (builder.connect_blocking()?, AtomicU32::new(0));
    thread::scope(|scope| {
        for name in ["ada", "ben", "cleo"] {
            let (quorum, sold) = (&quorum, &sold);
            scope.spawn(move || match sell(name, quorum, sold) {
                Ok(()) => println!("{name} found no more seats"),
                Err(error) => eprintln!("{name} stopped: {error}"),
            });
        }
    });
    println!("{} seats are sold", sold.into_inner());
    // Without it the last release might not be sent before the process ends.
    quorum.close()
}

/// Sells seats while there are any; the lock is held for each of them alone.
fn sell(name: &str, quorum: &Quorate, sold: &AtomicU32) -> Result<(), Error> {
    let mutex = quorum.mutex("seats");
    while mutex.run(|_token| {
        let seat = sold.load(Relaxed) + 1;
        if seat <= SEATS {
            println!("{name} sells seat {seat}");
            thread::sleep(Duration::from_millis(1));
            sold.store(seat, Relaxed);
        }
        Ok::<_, Error>(seat < SEATS)
    })? {}
    Ok(())
}
