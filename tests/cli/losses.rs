//! The lock is lost, in each way that there is: nothing of the command is alive once a majority of
//! the voters may give it to somebody else.
//!
//! `QUORATE_LOSSES` is the number of losses of each kind.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use quorate_support::{Proxy, eventually};
use quorate_tests::scene::knob;
use rand::RngExt;
use rustix::process::Signal;
use tokio::runtime::Runtime;

use crate::{
    processes::members,
    program::Running,
    voters::{LEASE, Voters},
};

/// What runs under the lock: something that ends at SIGTERM, something that does not, something
/// with children of both sorts, and something that ends well. What a shell says of children that
/// were killed is not to be read.
const COMMANDS: [&str; 4] = [
    "exec sleep 1000",
    "trap '' TERM; while true; do sleep 0.1; done",
    "sh -c 'trap \"\" TERM; while true; do sleep 0.1; done' & sleep 1000 & wait",
    "trap 'exit 0' TERM; while true; do sleep 0.1; done",
];

/// So many scenes at once: they wait most of the time.
const WIDTH: u64 = 8;

/// Losses of one kind, one after the other in each of several scenes.
fn each_loss(lose: impl Fn(&Voters, u64) + Sync) {
    let losses = knob("QUORATE_LOSSES", 4);
    let width = WIDTH.min(losses);
    thread::scope(|scope| {
        for part in 0..width {
            let lose = &lose;
            scope.spawn(move || {
                let voters = Voters::start();
                for number in (part..losses).step_by(usize::try_from(width).expect("few")) {
                    lose(&voters, number);
                }
            });
        }
    });
}

fn command(number: u64) -> String {
    let script = COMMANDS[usize::try_from(number).expect("few") % COMMANDS.len()];
    format!("exec 2>/dev/null; {script}")
}

/// At any moment between two renewals.
fn a_while() {
    let most = u64::try_from(LEASE.as_millis()).expect("short") / 2;
    thread::sleep(Duration::from_millis(rand::rng().random_range(0..most)));
}

#[expect(clippy::disallowed_methods, reason = "real servers count real time")]
pub(crate) fn assert_dead_at(deadline: Instant, running: &Running) {
    thread::sleep(deadline.saturating_duration_since(Instant::now()));
    let alive = members(running.group);
    assert!(alive.is_empty(), "{alive:?} of {} are alive at the deadline", running.group);
}

fn assert_lost(running: &mut Running) -> String {
    let (code, errors) = running.end();
    assert_eq!(code, 76, "{errors}");
    assert!(errors.starts_with("quorate: lock `"), "{errors}");
    errors
}

#[test]
fn voters_are_cut_off() {
    each_loss(|voters, number| {
        let network = Runtime::new().unwrap();
        let _inside = network.enter();
        let proxies: Vec<_> =
            voters.0.iter().map(|server| network.block_on(Proxy::start(server.port()))).collect();
        let urls: Vec<_> = proxies.iter().map(Proxy::url).collect();
        let name = format!("cut {number}");
        let mut run = voters.run(&[&name], &command(number));
        let mut running = Running::start(run.env("QUORATE_VOTERS", urls.join(" ")));
        a_while();
        proxies.iter().take(2 + usize::from(number % 2 == 0)).for_each(Proxy::black_hole);
        // Nothing of a renewal is under way any more.
        network.block_on(async { tokio::time::sleep(Duration::from_millis(20)).await });
        assert_dead_at(voters.deadline(&name), &running);
        assert_lost(&mut running);
    });
}

#[test]
fn voters_are_stopped() {
    each_loss(|voters, number| {
        let name = format!("stopped {number}");
        let script = format!("echo $QUORATE_DEADLINE_FILE; {}", command(number));
        let mut running = Running::start(&mut voters.run(&[&name], &script));
        let file = running.says();
        a_while();
        let told = || fs::read_to_string(&file).expect("it is there");
        let deadline = loop {
            let before = told();
            let deadline = voters.deadline(&name);
            voters.0.iter().for_each(quorate_support::RedisServer::stop);
            // What the program learnt of a renewal until then it has written by now.
            thread::sleep(Duration::from_millis(500));
            if told() == before {
                break deadline;
            }
            voters.0.iter().for_each(quorate_support::RedisServer::resume);
        };
        assert_dead_at(deadline, &running);
        voters.0.iter().for_each(quorate_support::RedisServer::resume);
        let errors = assert_lost(&mut running);
        let why = format!("quorate: lock `{name}` was lost: it was not renewed in time");
        assert_eq!(errors.lines().next(), Some(&*why));
        for (line, server) in errors.lines().skip(1).zip(&voters.0) {
            assert!(line.starts_with(&format!("  127.0.0.1:{}: ", server.port())), "{errors}");
        }
    });
}

// Renewals keep the lock, so nothing else ends it: with the lease of 4 s alone it would be held for as
// long as the command runs.
#[test]
#[expect(clippy::disallowed_methods, reason = "real servers count real time")]
fn a_command_that_hangs_is_ended_before_the_longest_hold_is_over() {
    const LONGEST: Duration = Duration::from_secs(7);
    each_loss(|voters, number| {
        let (name, asked) = (format!("hangs {number}"), Instant::now());
        let mut run = voters.run(&[&name, "--max-hold", "7s"], &command(number));
        let mut running = Running::start(&mut run);
        assert_dead_at(Instant::now() + LONGEST, &running);
        let mut next = Running::start(&mut voters.run(&[&name], "true"));
        assert_eq!(next.end().0, 0, "somebody else has the lock");
        let why =
            format!("quorate: lock `{name}` may be held for 7s at most: the command was ended\n");
        assert_eq!(assert_lost(&mut running), why);
        assert!(asked.elapsed() >= LONGEST);
    });
}

// Its watcher ends the command then, and the lock is lost.
#[test]
#[expect(clippy::disallowed_methods, reason = "real servers count real time")]
fn the_holder_is_stopped_past_the_longest_hold() {
    let voters = Voters::start();
    let asked = Instant::now();
    let run = |arguments: &[&str], script: &str| {
        let mut run = voters.run(arguments, script);
        Running::start(run.env("QUORATE_LEASE", "30s").env("QUORATE_LONGEST_LEASE", "30s"))
    };
    let mut running = run(&["stopped", "--max-hold", "3s"], &command(1));
    running.signal(Signal::STOP);
    assert_dead_at(Instant::now() + Duration::from_secs(3), &running);
    running.signal(Signal::CONT);
    let errors = assert_lost(&mut running);
    assert!(errors.ends_with(": held for longer than hold_at_most of 3s\n"), "{errors}");
    // The lease has not ended yet.
    assert_eq!(run(&["stopped"], "true").end().0, 0, "somebody else has the lock");
    assert!(asked.elapsed() < Duration::from_secs(29), "the votes were given back");
}

#[test]
fn the_holder_is_stopped_past_its_lease() {
    each_loss(|voters, number| {
        let name = format!("asleep {number}");
        let mut running = Running::start(&mut voters.run(&[&name], &command(number)));
        a_while();
        running.signal(Signal::STOP);
        // What it sent before arrives.
        thread::sleep(Duration::from_millis(20));
        assert_dead_at(voters.deadline(&name), &running);
        let mut next = Running::start(&mut voters.run(&[&name], "true"));
        assert_eq!(next.end().0, 0, "somebody else has had the lock since");
        running.signal(Signal::CONT);
        assert_lost(&mut running);
    });
}

// With `--again` a lead that is lost is no end: the command runs anew when there is a majority, and
// never without one. A signal ends it for good.
#[test]
fn a_lead_that_is_lost_comes_back_where_that_is_wished() {
    let mut voters = Voters::start();
    let script = "echo $$; echo $QUORATE_TOKEN; exec sleep 1000";
    let lead = ["lead", "a", "--value", "x", "--again", "--", "sh", "-c", script];
    let mut running = Running::start(&mut voters.quorate(&lead));
    let first: u64 = running.says().parse().unwrap();
    voters.0.iter_mut().for_each(quorate_support::RedisServer::kill);
    eventually("the command is ended", || members(running.group).is_empty());
    // A campaign has failed by then: it has 2 s.
    thread::sleep(LEASE);
    assert!(!running.has_ended());
    voters.0.iter_mut().for_each(quorate_support::RedisServer::restart);
    running.group = running.says().parse().unwrap();
    let second: u64 = running.says().parse().unwrap();
    assert!(second > first);
    running.signal(Signal::TERM);
    let ended = running.wait();
    assert_eq!(ended.code(), Some(128 + 15), "{ended:?}");
}
