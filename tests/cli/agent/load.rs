//! Many programs, and many locks.

use std::{env, thread, time::Duration};

use super::{Daemon, mutex, now_us, resident_kib};
use crate::voters::Voters;

/// The locks of all programs together, for how long, and their lease: that of users where the size
/// is theirs.
fn size() -> (usize, Duration, &'static str) {
    match env::var("QUORATE_AGENT_HOLDS").ok().and_then(|holds| holds.parse().ok()) {
        Some(holds) => (holds, Duration::from_mins(1), "30s"),
        None => (1_000, Duration::from_secs(10), "4s"),
    }
}

// Each is renewed after a third of its lease.
#[test]
fn a_hundred_programs_keep_all_their_locks() {
    const CLIENTS: usize = 100;
    let (holds, time, lease) = size();
    let voters = Voters::start();
    let daemon = Daemon::start_by(&voters, lease, &[]);
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| daemon.client()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        let asked: Vec<_> = (0..holds / CLIENTS)
            .map(|lock| client.send(mutex(&format!("{number}:{lock}"))))
            .collect();
        for id in asked {
            client.answer(id).expect("it is free");
        }
    }
    let until = now_us() + u64::try_from(time.as_micros()).unwrap();
    while now_us() < until {
        thread::sleep(Duration::from_millis(100));
        for client in &clients {
            let said = client.lines.try_iter();
            let lost: Vec<_> = said.filter(|said| said["event"] == "lost").collect();
            assert!(lost.is_empty(), "{lost:?}");
        }
    }
    let kib = resident_kib(daemon.process.id());
    println!("{holds} locks of {CLIENTS} programs for {time:?}: {kib} KiB");
    assert!(kib < 100 * 1024, "the agent has {kib} KiB");
}
