//! What the command starts ends with it, and where the program cannot end it somebody else does.

use std::process::Command;

use quorate_support::eventually;
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    processes::{children, is_alive, members},
    program::Running,
    voters::Voters,
};

/// A command with a child that ignores SIGTERM, and with one in the background.
const FAMILY: &str = "sh -c 'trap \"\" TERM; while true; do sleep 0.1; done' & sleep 1000 & \
                      echo ready; wait";

fn kill(id: u32, signal: Signal) {
    let id = Pid::from_raw(id.cast_signed()).expect("an id");
    kill_process(id, signal).expect("it runs");
}

/// The watcher: the child of the program that does not lead the command's group.
fn watcher(running: &Running) -> u32 {
    let others = children(running.id()).into_iter().filter(|id| *id != running.group);
    let others: Vec<_> = others.filter(|id| is_alive(*id)).collect();
    assert_eq!(others.len(), 1, "one watches");
    others[0]
}

#[test]
fn the_lock_is_kept_until_all_of_the_group_have_ended() {
    let voters = Voters::start();
    let script = "sh -c 'trap \"\" TERM; echo ready; while true; do sleep 0.1; done' & sleep 0.3";
    let arguments = ["a", "--grace", "1s"];
    let mut running = Running::start(&mut voters.run(&arguments, script));
    assert_eq!(running.says(), "ready");
    eventually("the command itself has ended", || !is_alive(running.group));
    assert!(voters.is_held("a") && !members(running.group).is_empty());
    assert_eq!(running.end().0, 0, "as the command ended");
    assert!(members(running.group).is_empty());
}

#[test]
fn all_of_the_group_die_with_the_program() {
    let voters = Voters::start();
    for _ in 0..5 {
        let mut running = Running::start(&mut voters.run(&["a"], FAMILY));
        assert_eq!(running.says(), "ready");
        assert!(members(running.group).len() >= 3);
        kill(running.id(), Signal::KILL);
        running.wait();
        eventually("all of them are dead", || members(running.group).is_empty());
        // The lock ends with its lease: it is not given back.
        voters.0.iter().for_each(|server| drop(server.command(&["FLUSHALL"])));
    }
}

/// The processes among these that `pgrep`, and so `pkill`, finds by the program's name.
fn named(options: &[&str], own: &[u32]) -> Vec<u32> {
    let found = Command::new("pgrep").args(options).arg("quorate").output();
    let found = found.expect("pgrep is there (package procps)").stdout;
    let found = String::from_utf8(found).expect("they are numbers");
    let mut found: Vec<u32> = found.lines().filter_map(|id| id.parse().ok()).collect();
    // Other tests run the program, too.
    found.retain(|id| own.contains(id));
    found
}

// `pkill -9 quorate`, `pkill -9 -f quorate`, and `killall -9 quorate`, which wants the whole name.
#[test]
fn a_kill_by_the_programs_name_leaves_nothing_of_the_group() {
    let voters = Voters::start();
    for (number, options) in [&[][..], &["-f"], &["-x"]].into_iter().enumerate() {
        let name = format!("killed by name {number}");
        let mut running = Running::start(&mut voters.run(&[&name], FAMILY));
        assert_eq!(running.says(), "ready");
        let own = [vec![running.id()], children(running.id()), members(running.group)].concat();
        let named = named(options, &own);
        assert!(named.contains(&running.id()), "{options:?}: {named:?}");
        for id in named {
            kill(id, Signal::KILL);
        }
        running.wait();
        eventually("all of them are dead", || members(running.group).is_empty());
    }
}

#[test]
fn the_command_dies_with_the_program_also_where_nobody_watches() {
    let voters = Voters::start();
    let mut running = Running::start(&mut voters.run(&["a"], "exec sleep 1000"));
    let watcher = watcher(&running);
    kill(watcher, Signal::STOP);
    kill(running.id(), Signal::KILL);
    running.wait();
    eventually("it is dead", || members(running.group).is_empty());
    kill(watcher, Signal::CONT);
    eventually("the watcher has nothing to do", || !is_alive(watcher));
}

#[test]
fn a_watcher_that_dies_is_replaced() {
    let voters = Voters::start();
    let mut running = Running::start(&mut voters.run(&["a"], FAMILY));
    assert_eq!(running.says(), "ready");
    let first = watcher(&running);
    kill(first, Signal::KILL);
    let others = || {
        children(running.id())
            .into_iter()
            .any(|id| id != running.group && id != first && is_alive(id))
    };
    eventually("there is another", others);
    kill(running.id(), Signal::KILL);
    running.wait();
    eventually("all of them are dead", || members(running.group).is_empty());
}

#[test]
fn signals_for_all_processes_of_a_service_do_not_end_the_watcher() {
    let voters = Voters::start();
    let script = "trap 'echo term' TERM; echo ready; while true; do sleep 0.05; done";
    let running = Running::start(&mut voters.run(&["a"], script));
    assert_eq!(running.says(), "ready");
    let watcher = watcher(&running);
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::USR1] {
        kill(watcher, signal);
    }
    assert!(is_alive(watcher));
}

#[test]
fn a_process_that_leaves_the_group_goes_its_own_way() {
    let voters = Voters::start();
    let script = "setsid sh -c 'echo $$; exec sleep 1000' & sleep 0.3";
    let mut running = Running::start(&mut voters.run(&["a"], script));
    let daemon: u32 = running.says().parse().unwrap();
    assert_eq!(running.wait().code(), Some(0));
    assert!(is_alive(daemon), "docs/cli.md says so");
    kill(daemon, Signal::KILL);
}
