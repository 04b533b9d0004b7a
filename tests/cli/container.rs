//! The program as the first process of a container: it waits for what loses its parent, and passes
//! signals on.

use std::process::{Command, Stdio};

use quorate_support::eventually;
use rustix::process::{Pid, Signal, geteuid, kill_process};

use crate::{
    processes::children,
    program::{Running, with_environment_of},
    voters::Voters,
};

/// The same command, as the first of a namespace of processes.
fn first_process(run: &Command) -> Command {
    let mut unshare = Command::new("unshare");
    unshare.args(["--pid", "--fork", "--mount-proc", "--kill-child"]);
    if !geteuid().is_root() {
        unshare.arg("--map-root-user");
    }
    unshare.arg("--").arg(run.get_program()).args(run.get_args());
    with_environment_of(&mut unshare, run);
    unshare
}

/// The program itself, by the id that it has outside.
fn program(running: &Running) -> u32 {
    let mut found = Vec::new();
    eventually("the program starts", || {
        found = children(running.id());
        !found.is_empty()
    });
    found[0]
}

fn signal(id: u32, signal: Signal) {
    kill_process(Pid::from_raw(id.cast_signed()).expect("an id"), signal).expect("it runs");
}

/// The watcher and the command are its children; a third one came to it. It ends, and is waited for.
fn a_third_child_ends(program: u32) {
    let mut third = None;
    eventually("it has a third child", || {
        third = children(program).get(2).copied();
        third.is_some()
    });
    signal(third.unwrap(), Signal::KILL);
    eventually("it was waited for", || children(program).len() == 2);
}

#[test]
fn it_waits_for_what_the_command_leaves_and_passes_signals_on() {
    let voters = Voters::start();
    let script = "trap 'echo term; exit 3' TERM; sh -c 'sleep 1000 &'; echo ready
        while true; do sleep 0.05; done";
    let mut running = Running::start_soon(&mut first_process(&voters.run(&["a"], script)));
    assert_ne!(running.says(), "1", "the program is the first, and not its command");
    assert_eq!(running.says(), "ready");
    let program = program(&running);
    a_third_child_ends(program);
    signal(program, Signal::TERM);
    assert_eq!(running.says(), "term");
    assert_eq!(running.end().0, 3);
    assert!(!voters.is_held("a"), "it was released");
}

#[test]
fn it_waits_for_what_others_leave_while_it_waits_for_the_lock() {
    let voters = Voters::start();
    let _holder = Running::start(&mut voters.run(&["a"], "exec sleep 1000"));
    let mut running = Running::start_soon(&mut first_process(&voters.run(&["a"], "true")));
    let program = program(&running);
    eventually("watcher and command are there", || children(program).len() == 2);
    // As `kubectl exec` starts a process: its parent is outside.
    let mut enter = Command::new("nsenter");
    enter.args(["--target", &program.to_string(), "--pid"]);
    if !geteuid().is_root() {
        enter.args(["--user", "--preserve-credentials"]);
    }
    enter.args(["--", "sh", "-c", "sleep 1000 &"]).stdout(Stdio::null()).stderr(Stdio::null());
    assert!(enter.status().expect("nsenter starts").success());
    a_third_child_ends(program);
    signal(program, Signal::TERM);
    assert_eq!(running.end().0, 128 + Signal::TERM.as_raw());
}
