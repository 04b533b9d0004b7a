//! A job that many machines start, while voters die and holders stand still: never two at once, by
//! a witness outside of the locks.
//!
//! `QUORATE_FAULT_SECONDS` is its length.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use quorate_support::eventually;
use quorate_tests::scene::{Ending, knob};
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use rustix::process::Signal;

use crate::{
    processes::is_alive,
    program::Running,
    voters::{LEASE, Voters},
};

const MACHINES: u64 = 5;

/// Writes its id into a file that nobody else may have made, and takes it away at the end. A file
/// that is there is of a process that was killed, or of one that runs: that is an overlap.
pub(crate) const JOB: &str = r#"
    if ! (set -C; echo $$ > "$WITNESS/holder") 2>/dev/null; then
        other=$(cat "$WITNESS/holder" 2>/dev/null)
        case $(cut -d ')' -f 2 "/proc/$other/stat" 2>/dev/null) in
            '' | ' Z'* | ' X'*) ;;
            *) echo "$$ while $other runs" >> "$WITNESS/overlaps" ;;
        esac
        echo $$ > "$WITNESS/holder"
    fi
    for step in 1 2 3 4 5 6 7 8; do
        sleep 0.05
        [ "$(cat "$WITNESS/holder")" = $$ ] || echo "$$ was passed" >> "$WITNESS/overlaps"
    done
    rm "$WITNESS/holder""#;

#[test]
fn the_witness_sees_an_overlap() {
    let folder = tempfile::tempdir().unwrap();
    let job = || {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", JOB]).env("WITNESS", folder.path()).spawn().unwrap()
    };
    let overlaps = || fs::read_to_string(folder.path().join("overlaps")).unwrap_or_default();
    fs::write(folder.path().join("holder"), "999999999\n").unwrap();
    assert!(job().wait().unwrap().success());
    assert_eq!(overlaps(), "", "whoever left it is dead");
    let both = [job(), job()];
    for mut one in both {
        drop(one.wait());
    }
    assert_ne!(overlaps(), "");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "real servers live in real time")]
fn a_job_never_runs_twice_at_once() {
    let seed = knob("QUORATE_FAULT_SEED", rand::random());
    let length = Duration::from_secs(knob("QUORATE_FAULT_SECONDS", 15));
    println!("QUORATE_FAULT_SEED={seed} QUORATE_FAULT_SECONDS={}", length.as_secs());
    let mut voters = Voters::start();
    let folder = tempfile::tempdir().unwrap();
    let (over, ran) = (AtomicBool::new(false), AtomicU64::new(0));
    let urls = voters.urls();
    thread::scope(|scope| {
        let _ending = Ending(&over);
        for machine in 0..MACHINES {
            let (over, ran, urls, folder) = (&over, &ran, &urls, folder.path());
            let chance = StdRng::seed_from_u64(seed.wrapping_add(1 + machine));
            scope.spawn(move || work(urls, folder, over, ran, chance));
        }
        let mut chance = StdRng::seed_from_u64(seed);
        let started = Instant::now();
        while started.elapsed() < length {
            harm(&mut voters, &mut chance);
        }
        eventually("jobs have run", || ran.load(Relaxed) > 3);
    });
    let overlaps = fs::read_to_string(folder.path().join("overlaps")).unwrap_or_default();
    assert_eq!(overlaps, "");
    println!("{} jobs ended well", ran.load(Relaxed));
}

/// A machine that starts the job again and again, and sometimes stops or kills what it started.
fn work(urls: &str, folder: &Path, over: &AtomicBool, ran: &AtomicU64, mut chance: StdRng) {
    while !over.load(Relaxed) {
        let script = format!("echo $$; {JOB}");
        let mut run =
            crate::program::quorate(["run", "job", "--wait", "5s", "--", "sh", "-c", &script]);
        run.env("QUORATE_VOTERS", urls).env("WITNESS", folder).env("QUORATE_LEASE", "2s");
        run.env("QUORATE_LONGEST_LEASE", "2s").env("QUORATE_VOTER_DEADLINE", "200ms");
        let mut running = Running::start_soon(&mut run);
        thread::sleep(Duration::from_millis(chance.random_range(0..1_000)));
        match chance.random_range(0..10) {
            0 | 1 if is_alive(running.id()) => {
                running.signal(Signal::STOP);
                thread::sleep(LEASE);
                running.signal(Signal::CONT);
            }
            2 if is_alive(running.id()) => running.signal(Signal::KILL),
            3 if is_alive(running.id()) => running.signal(Signal::TERM),
            _ => {}
        }
        ran.fetch_add(u64::from(running.wait().code() == Some(0)), Relaxed);
    }
}

/// One voter at a time is dead or stands still, and sometimes all of them do for a moment.
fn harm(voters: &mut Voters, chance: &mut StdRng) {
    let pause = Duration::from_millis(chance.random_range(200..1_500));
    match chance.random_range(0..4) {
        0 => {
            let voter = chance.random_range(0..voters.0.len());
            voters.0[voter].kill();
            thread::sleep(pause);
            voters.0[voter].restart();
            // Until it counts again another one must not forget as well.
            thread::sleep(LEASE);
        }
        1 => {
            voters.0.iter().for_each(quorate_support::RedisServer::stop);
            thread::sleep(pause);
            voters.0.iter().for_each(quorate_support::RedisServer::resume);
        }
        _ => {
            let voter = voters.0.choose(chance).expect("there are three");
            voter.stop();
            thread::sleep(pause);
            voter.resume();
        }
    }
}
