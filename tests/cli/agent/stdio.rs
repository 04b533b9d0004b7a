//! An agent as the child of its program.

use std::process::Command;

use quorate_support::eventually;
use rustix::process::{Pid, Signal, getsid, kill_process};
use serde_json::json;

use super::{mutex, now_us, speak};
use crate::{
    processes::{children, is_alive},
    program::{program, with_environment_of},
    voters::Voters,
};

#[test]
fn the_agent_of_a_program_ends_with_its_input_and_not_at_ctrl_c() {
    let voters = Voters::start();
    let (mut agent, mut client) = speak(&mut voters.quorate(&["agent"]));
    let id = Pid::from_child(&agent);
    assert_eq!(getsid(Some(id)), Ok(id), "it leads a session of its own");
    for signal in [Signal::INT, Signal::HUP, Signal::QUIT] {
        kill_process(id, signal).unwrap();
    }
    let first = client.lock("a");
    client.ask(json!({ "op": "release", "hold": first["hold"] })).unwrap();
    let told = client.lock("b")["deadline_us"].as_u64().unwrap();
    client.hang_up();
    // This process lives, and may rely on it.
    let status = agent.wait().unwrap();
    let ended = now_us();
    assert!(status.success() && told <= ended && ended < told + 2_000_000, "{told}, {ended}");
    assert!(!voters.is_held("b"));
}

// The shell is the program, and this process has its pipes, too.
#[test]
fn the_locks_of_a_program_that_dies_are_free_though_its_pipes_stay_open() {
    let voters = Voters::start();
    let mut command = Command::new("sh");
    let script = "exec 3<&0; \"$0\" agent <&3 & wait";
    command.args(["-c", script, program().to_str().unwrap()]);
    with_environment_of(&mut command, &voters.quorate(&["agent"]));
    let (mut shell, mut client) = speak(&mut command);
    let agent = children(shell.id())[0];
    client.lock("a");
    let (mut other, mut next) = speak(&mut voters.quorate(&["agent"]));
    let waits = next.send(mutex("a"));
    shell.kill().unwrap();
    let killed = now_us();
    next.answer(waits).expect("its turn");
    let took = now_us() - killed;
    assert!(took < 1_500_000, "free after {took} us of a lease of four seconds");
    shell.wait().unwrap();
    eventually("the agent has ended", || !is_alive(agent));
    other.kill().unwrap();
    other.wait().unwrap();
}
