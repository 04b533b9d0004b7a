//! The packages for Node and Python, beside the program; `tests/run full` installs both languages.

use std::{
    process::{Command, Stdio},
    time::Instant,
};

use quorate::Quorate;
use quorate_support::{ROOT, RedisServer};

use super::Daemon;
use crate::{
    program::{program, with_environment_of},
    voters::Voters,
};

/// The tests of a package, with these voters.
fn passes(voters: &Voters, command: &[&str]) {
    let mut tests = Command::new(command[0]);
    with_environment_of(&mut tests, &voters.quorate(&[]));
    tests.args(&command[1..]).current_dir(ROOT).env("QUORATE_PROGRAM", program());
    let output = tests.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| {
        panic!("{}: {error}; `tests/run full cli` installs it", command[0])
    });
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
}

#[test]
fn the_package_for_node_does_what_its_page_says() {
    passes(&Voters::start(), &["node", "--test", "deploy/clients/node/test.js"]);
}

#[test]
fn the_package_for_python_does_what_its_page_says() {
    passes(&Voters::start(), &["python3", "deploy/clients/python/test.py"]);
}

const ROUNDS: usize = 500;

/// Half of the locks took less, with their release; in microseconds.
#[expect(clippy::disallowed_methods, reason = "it measures")]
fn median_of_rust(servers: &[RedisServer]) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let urls = servers.iter().map(RedisServer::url);
        let quorum = Quorate::connect(urls).await.unwrap();
        let mut took = Vec::new();
        for _ in 0..ROUNDS {
            let started = Instant::now();
            quorum.mutex("a").lock().await.unwrap().release().await.unwrap();
            took.push(started.elapsed());
        }
        quorum.close().await.unwrap();
        took.sort_unstable();
        u64::try_from(took[ROUNDS / 2].as_micros()).unwrap()
    })
}

fn median_of(daemon: &Daemon, command: &[&str]) -> u64 {
    let mut bench = Command::new(command[0]);
    bench.args(&command[1..]).arg(ROUNDS.to_string()).current_dir(ROOT);
    let output = bench.env("QUORATE_AGENT", &daemon.socket).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    said.trim().parse().unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

// The best of three each: what a busy machine adds says nothing of the agent. Nor does what a program
// takes that is not optimized: half of a time here.
#[test]
fn a_lock_and_its_release_take_little_longer_than_from_rust() {
    let voters = Voters::start();
    // As the client in Rust has it.
    let daemon = Daemon::start_by(&voters, "30s", &[]);
    let node = ["node", "tests/cli/agent/bench.mjs"];
    let python = ["python3", "tests/cli/agent/bench.py"];
    let runs: Vec<_> = (0..3)
        .map(|_| {
            let medians = (median_of(&daemon, &node), median_of(&daemon, &python));
            (median_of_rust(&voters.0), medians)
        })
        .collect();
    println!("microseconds in Rust, and in Node and Python: {runs:?}");
    let rust = runs.iter().map(|run| run.0).min().unwrap();
    let node = runs.iter().map(|run| run.1.0).min().unwrap();
    let python = runs.iter().map(|run| run.1.1).min().unwrap();
    assert!(node.max(python) <= 2 * rust + 150, "{rust}, {node}, {python}");
}
