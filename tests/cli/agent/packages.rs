//! The packages for Node and Python, beside the program; `tests/run full` installs both languages.

use std::{
    array,
    io::Write,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use quorate::Quorate;
use quorate_support::{ROOT, RedisServer};

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

/// So long each measures.
const TIME: Duration = Duration::from_secs(1);

/// Half of the locks took less, with their release; in microseconds.
#[expect(clippy::disallowed_methods, reason = "it measures")]
fn median_of_rust(servers: &[RedisServer]) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let urls = servers.iter().map(RedisServer::url);
        let quorum = Quorate::connect(urls).await.unwrap();
        let (mut took, begun) = (Vec::new(), Instant::now());
        while begun.elapsed() < TIME {
            let started = Instant::now();
            quorum.mutex("a").lock().await.unwrap().release().await.unwrap();
            took.push(started.elapsed());
        }
        quorum.close().await.unwrap();
        took.sort_unstable();
        u64::try_from(took[took.len() / 2].as_micros()).unwrap()
    })
}

/// By what `benches/peers` measures with. It says its name, and answers each line.
fn median_by(voters: &Voters, command: &str) -> u64 {
    let mut words = command.split(' ');
    let mut bench = Command::new(words.next().expect("a program"));
    bench.args(words).arg(program()).current_dir(ROOT).stdin(Stdio::piped());
    let mut bench = bench.stdout(Stdio::piped()).spawn().expect("it starts");
    let time = TIME.as_millis();
    let asked = format!("connect {}\ncycles 1 {time}\ncycles 1 {time}\n", voters.urls());
    bench.stdin.take().expect("it is piped").write_all(asked.as_bytes()).expect("it reads");
    let said = String::from_utf8(bench.wait_with_output().unwrap().stdout).unwrap();
    // The first second is for compilers.
    let median = said.lines().nth(3).and_then(|line| line.split(' ').nth(4));
    median.and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("{command}: {said}"))
}

// The best of three each: what a busy machine adds says nothing of the agent. Nor does what a program
// takes that is not optimized: half of a time here.
#[test]
fn a_lock_and_its_release_take_little_longer_than_from_rust() {
    let voters = Voters::start();
    let folder = "benches/peers/agent";
    let node = format!("node {folder}/load.mjs");
    let [asyncio, threads] =
        ["asyncio", "threads"].map(|how| format!("python3 {folder}/load.py {how}"));
    let mut best = [u64::MAX; 4];
    for _ in 0..3 {
        let [node, asyncio, threads] = [&node, &asyncio, &threads].map(|it| median_by(&voters, it));
        let medians = [median_of_rust(&voters.0), node, asyncio, threads];
        best = array::from_fn(|at| best[at].min(medians[at]));
    }
    println!("microseconds in Rust, Node, and Python by asyncio and threads: {best:?}");
    assert!(best.iter().all(|median| *median <= 2 * best[0] + 150), "{best:?}");
}
