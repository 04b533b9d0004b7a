//! What stopped holders do to data: the workload of etcd's issue 11457. Processes add integers to a
//! set under a lock with a short lease: they read the set, and write it with one more. The holder is
//! stopped between the two, until another has had the lock. The set is in the memory of the test,
//! and each integer whose writing was confirmed must be in it at the end.

use std::{
    collections::BTreeSet,
    env,
    io::{BufRead, BufReader, Lines, Write, stdin},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use quorate::FenceGate;
use quorate_tests::prelude::*;
use rustix::process::{Pid, Signal, kill_process};
use tokio::runtime;

const VOTERS: &str = "QUORATE_INTEGERS_VOTERS";
const LEASE: Duration = Duration::from_secs(2);
const ROUNDS: u32 = 5;

// Run as a process of its own: an integer, the set as it is, and that it may go on.
#[test]
fn adds() {
    let Ok(voters) = env::var(VOTERS) else { return };
    let runtime = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let client = runtime.block_on(async {
        let settings = leased(Quorate::builder().voters(voters.split(' ')), LEASE);
        settings.connect_timeout(secs(60)).connect().await.expect("all are up")
    });
    let mut lines = stdin().lines().map(|line| line.expect("it is text"));
    while let Some(number) = lines.next() {
        let guard = runtime.block_on(client.mutex("integers").lock()).expect("all are up");
        println!("- locked");
        let set = lines.next().expect("it is told");
        println!("- read");
        let _goes_on = lines.next();
        println!("- write {} {set} {number}", guard.token());
        // It may have been lost long ago.
        drop(runtime.block_on(guard.release()));
    }
}

/// A process that adds integers; killed when dropped.
struct Adder {
    process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Adder {
    fn start(voters: &[RedisServer]) -> Self {
        let mut command = Command::new(env::current_exe().expect("this binary"));
        command.args(["--exact", "integers::adds", "--nocapture", "--quiet"]);
        let urls: Vec<_> = voters.iter().map(RedisServer::url).collect();
        command.env(VOTERS, urls.join(" ")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("it starts");
        let input = process.stdin.take().expect("it is piped");
        let output = BufReader::new(process.stdout.take().expect("it is piped")).lines();
        Self { process, input, output }
    }

    /// What it says to this; the harness says something, too.
    fn ask(&mut self, line: &str) -> String {
        writeln!(self.input, "{line}").expect("it listens");
        let mut lines = self.output.by_ref().map(|line| line.expect("it is text"));
        lines.find_map(|line| Some(line.split_once("- ")?.1.to_owned())).expect("it goes on")
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("it runs");
    }
}

impl Drop for Adder {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The set.
struct Shared {
    set: String,
    confirmed: BTreeSet<u32>,
    /// Where tokens are looked at.
    gate: Option<FenceGate>,
    refused: usize,
}

impl Shared {
    /// It has the lock, and has read the set.
    fn begin(&self, adder: &mut Adder, number: u32) {
        assert_eq!(adder.ask(&number.to_string()), "locked");
        assert_eq!(adder.ask(&self.set), "read");
    }

    /// It writes; whether that is confirmed.
    fn finish(&mut self, adder: &mut Adder, number: u32) -> bool {
        let writes = adder.ask("go on");
        let (token, set) = writes.strip_prefix("write ").unwrap().split_once(' ').unwrap();
        let token = token.parse().expect("a token");
        if self.gate.as_ref().is_some_and(|gate| gate.check("integers", token).is_err()) {
            self.refused += 1;
            return false;
        }
        set.clone_into(&mut self.set);
        self.confirmed.insert(number);
        true
    }
}

/// How many integers were confirmed, and are not in the set; how many were confirmed; how many
/// writings were refused.
fn lost_updates(gate: Option<FenceGate>) -> (usize, usize, usize) {
    let voters = servers(3);
    let mut shared = Shared { set: String::new(), confirmed: BTreeSet::new(), gate, refused: 0 };
    let mut adders = [(); 2].map(|()| Adder::start(&voters));
    for round in 0..ROUNDS {
        adders.swap(0, 1);
        let [stopped, other] = &mut adders;
        let (one, two) = (2 * round, 2 * round + 1);
        shared.begin(stopped, one);
        stopped.signal(Signal::STOP);
        // Once the lease of the first has ended.
        shared.begin(other, two);
        assert!(shared.finish(other, two), "nobody has a higher token");
        stopped.signal(Signal::CONT);
        if !shared.finish(stopped, one) {
            shared.begin(stopped, one);
            assert!(shared.finish(stopped, one), "it has the lock again");
        }
    }
    let set: BTreeSet<u32> = shared.set.split(' ').filter_map(|it| it.parse().ok()).collect();
    (shared.confirmed.difference(&set).count(), shared.confirmed.len(), shared.refused)
}

#[test]
fn a_stopped_holder_loses_updates_without_tokens_and_none_with_them() {
    let (lost, confirmed, _) = lost_updates(None);
    println!("without tokens {lost} of {confirmed} confirmed integers are lost");
    assert!(lost > 0, "the workload shows nothing");
    let (lost, confirmed, refused) = lost_updates(Some(FenceGate::new()));
    println!("with tokens {lost} of {confirmed} are lost, and {refused} writings were refused");
    assert_eq!((lost, refused), (0, ROUNDS as usize));
}
