//! What signals do to the program and its command.

use std::time::{Duration, Instant};

use quorate_support::eventually;
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    processes::{is_alive, is_stopped},
    program::{Running, with_environment_of},
    voters::Voters,
};

const ENDING: [Signal; 4] = [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT];

#[test]
fn each_is_passed_on_and_the_program_ends_as_the_command_did() {
    let voters = Voters::start();
    for signal in ENDING {
        let mut running = Running::start(&mut voters.run(&["a"], "exec sleep 1000"));
        running.signal(signal);
        assert_eq!(running.end().0, 128 + signal.as_raw());
        assert!(!voters.is_held("a"), "it was released");
    }
}

#[test]
fn a_command_hears_other_signals_and_has_the_time_to_clean_up_and_its_code_counts() {
    let voters = Voters::start();
    let script = "trap 'echo one' USR1; trap 'echo two' USR2
        trap 'echo cleaning; sleep 0.3; echo clean; exit 3' TERM
        echo ready; while true; do sleep 0.05; done";
    let mut running = Running::start(&mut voters.run(&["a"], script));
    assert_eq!(running.says(), "ready");
    for (signal, said) in [(Signal::USR1, "one"), (Signal::USR2, "two"), (Signal::TERM, "cleaning")]
    {
        running.signal(signal);
        assert_eq!(running.says(), said);
    }
    assert!(voters.is_held("a"), "it still needs the lock");
    assert_eq!(running.says(), "clean");
    assert_eq!(running.end().0, 3);
}

#[test]
fn a_command_that_ignores_it_is_killed_after_the_grace() {
    let voters = Voters::start();
    let script = "trap '' TERM; echo ready; while true; do sleep 0.05; done";
    let mut running = Running::start(&mut voters.run(&["a", "--grace", "300ms"], script));
    assert_eq!(running.says(), "ready");
    running.signal(Signal::TERM);
    assert_eq!(running.end().0, 137);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "people wait in real time")]
fn a_second_ctrl_c_ends_the_grace() {
    let voters = Voters::start();
    let script = "trap 'echo asked' INT; echo ready; while true; do sleep 0.05; done";
    let mut run = voters.run(&["a", "--lease", "100s", "--grace", "40s"], script);
    let mut running = Running::start(run.env("QUORATE_LONGEST_LEASE", "100s"));
    assert_eq!(running.says(), "ready");
    running.signal(Signal::INT);
    assert_eq!(running.says(), "asked");
    let started = Instant::now();
    running.signal(Signal::INT);
    assert_eq!(running.end().0, 137);
    assert!(started.elapsed() < Duration::from_secs(20), "it is not waited for any longer");
}

#[test]
fn whoever_waits_for_the_lock_leaves_nothing_behind() {
    let voters = Voters::start();
    let holder = Running::start(&mut voters.run(&["a"], "exec sleep 1000"));
    let is_queued = || {
        let has_queue = |keys: Vec<String>| keys.contains(&"quorate:{a}:queue".to_owned());
        voters.0.iter().any(|server| has_queue(server.keys()))
    };
    for signal in ENDING {
        let mut waiter = Running::start_soon(&mut voters.run(&["a", "--fair"], "true"));
        eventually("it stands in the queue", is_queued);
        waiter.signal(signal);
        assert_eq!(waiter.end().0, 128 + signal.as_raw());
        eventually("it left the queue", || !is_queued());
    }
    drop(holder);
}

#[test]
fn what_was_ignored_before_stays_ignored() {
    let voters = Voters::start();
    let run = voters.run(&["a"], "exec sleep 1000");
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "trap '' HUP; exec \"$@\"", "sh"]);
    shell.arg(run.get_program()).args(run.get_args());
    let mut running = Running::start(with_environment_of(&mut shell, &run));
    running.signal(Signal::HUP);
    // Heard after the other, if at all.
    running.signal(Signal::TERM);
    assert_eq!(running.end().0, 143, "SIGTERM ended it");
}

#[test]
fn it_stops_and_goes_on_with_its_command() {
    let voters = Voters::start();
    let mut running = Running::start(&mut voters.run(&["a"], "exec sleep 1000"));
    let command = Pid::from_raw(running.group.cast_signed()).unwrap();
    // Again and again: what the program does late would meet the next round.
    for _ in 0..10 {
        running.signal(Signal::TSTP);
        eventually("both are stopped", || is_stopped(running.group) && is_stopped(running.id()));
        running.signal(Signal::CONT);
        eventually("both go on", || !is_stopped(running.group) && !is_stopped(running.id()));
        assert!(is_alive(running.group) && !running.has_ended());
        // Somebody stops the command alone: it keeps its lock, and stays stopped.
        kill_process(command, Signal::STOP).unwrap();
        eventually("it is stopped", || is_stopped(running.group));
        assert!(!is_stopped(running.id()));
    }
    running.signal(Signal::TERM);
    assert_eq!(running.end().0, 143, "it goes on to end");
}
