//! Both want one lock, again and again, and a file tells whether two are inside at once.
//!
//! Whoever is inside has made the gate, a hard link to a file of its own: a file system makes such
//! a link once. The checker is neither of the two, nor a server that they lock on.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
};

use futures::{FutureExt, future::BoxFuture};
use quorate_tests::prelude::*;
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    java::{Jvm, Version},
    stage::{Stage, WATCHDOG},
    with_each_redisson,
};

with_each_redisson!(
    nobody_is_inside_with_another_while_processes_are_killed_and_paused,
    java_has_turns_beside_a_stream_of_waiters_in_order,
    java_has_turns_beside_a_client_with_many_tasks,
);

/// For how long both contend, in seconds.
const TIME: &str = "QUORATE_REDISSON_SECONDS";
const HELD: Duration = ms(1);

/// What a process in Rust does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ContenderPlan {
    pub(crate) lease: Duration,
    pub(crate) tasks: usize,
    pub(crate) time: Duration,
    /// For how long each entry is held.
    pub(crate) held: Duration,
}

/// A process in Rust that contends for the lock `orders`; killed when dropped.
#[derive(Debug)]
pub(crate) struct Contender(Child);

/// What contenders came to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entered {
    pub(crate) entries: u64,
    /// Entered beside another, or that were lost.
    pub(crate) failed: u64,
    pub(crate) longest: Duration,
}

impl Entered {
    /// As both programs say it.
    fn parse(line: &str) -> Self {
        let numbers: Vec<u64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
        let [entries, failed, longest] = numbers[..] else { panic!("{line}") };
        Self { entries, failed, longest: ms(longest) }
    }

    fn add(self, other: Self) -> Self {
        Self {
            entries: self.entries + other.entries,
            failed: self.failed + other.failed,
            longest: self.longest.max(other.longest),
        }
    }
}

impl Contender {
    /// Its gate, and what it links, are in this folder; the names of the latter begin with its own.
    pub(crate) fn start(
        name: &str,
        plan: ContenderPlan,
        folder: &Path,
        on: &[RedisServer],
    ) -> Self {
        let ContenderPlan { lease, tasks, time, held } = plan;
        let mut command = Command::new(env!("CARGO_BIN_EXE_redisson-worker"));
        command.args([lease, time, held].map(|time| time.as_millis().to_string()));
        command.arg(tasks.to_string()).arg(folder).arg(name).args(on.iter().map(RedisServer::url));
        Self(command.stdout(Stdio::piped()).spawn().expect("it starts"))
    }

    pub(crate) fn kill(&mut self) {
        self.0.kill().expect("it can be killed");
        self.0.wait().expect("it ends");
    }

    pub(crate) fn stop(&self) {
        kill_process(Pid::from_child(&self.0), Signal::STOP).expect("it runs");
    }

    pub(crate) fn resume(&self) {
        kill_process(Pid::from_child(&self.0), Signal::CONT).expect("it runs");
    }

    /// What all of its tasks came to, once its time is over.
    pub(crate) fn finish(&mut self) -> Entered {
        let said = std::io::read_to_string(self.0.stdout.take().expect("it is piped")).unwrap();
        assert!(self.0.wait().expect("it ends").success());
        said.lines().map(Entered::parse).fold(Entered::default(), Entered::add)
    }
}

impl Drop for Contender {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Contends in two threads.
fn contend_in_java(
    jvm: &Jvm,
    name: &str,
    time: Duration,
    folder: &Path,
) -> [impl Future<Output = Result<String, String>> + Send + use<>; 2] {
    let (time, held, gate) = (time.as_millis(), HELD.as_micros(), folder.join("gate"));
    ["a", "b"].map(|thread| {
        let own = folder.join(format!("{name}-{thread}"));
        let (gate, own) = (gate.display(), own.display());
        jvm.ask(thread, &format!("contend plain orders {time} {held} {gate} {own}"))
    })
}

/// Takes the gate away that somebody made who was killed inside.
fn clear_gate_of(killed: &str, gate: &Path) {
    if fs::read_to_string(gate).is_ok_and(|inside| inside.starts_with(killed)) {
        fs::remove_file(gate).expect("nobody else takes it away");
    }
}

fn time() -> Duration {
    secs(std::env::var(TIME).map_or(9, |text| text.parse().expect("seconds")))
}

async fn nobody_is_inside_with_another_while_processes_are_killed_and_paused(version: Version) {
    for servers in [1, 3] {
        contend(version, servers, time()).await;
    }
}

// It stands in no queue, and is woken at each release: sometimes it is the first to ask. Otherwise
// it would sleep until the lease that it saw ends, 30 s later.
async fn java_has_turns_beside_a_stream_of_waiters_in_order(version: Version) {
    let stage = Stage::start(version, 1).await;
    let mutex = stage.client.redisson().fair_mutex("orders");
    let lock = move || {
        let mutex = mutex.clone();
        async move { mutex.lock().await.unwrap() }.boxed()
    };
    let (java, in_order) = contend_with_tasks(&stage, (3, HELD), lock).await;
    println!("Java {java:?}, in order {in_order}");
    assert!(java.entries > 0 && java.failed == 0 && in_order > 0, "{java:?}, in order {in_order}");
}

// Who stands in the line of one client hears of a release sooner than a JVM. So such a line lets
// others ask first from time to time.
async fn java_has_turns_beside_a_client_with_many_tasks(version: Version) {
    let stage = Stage::start(version, 1).await;
    let mutex = stage.mutex("orders");
    let lock = move || {
        let mutex = mutex.clone();
        async move { mutex.lock().await.unwrap() }.boxed()
    };
    // A JVM that is called asks while the next of the line has it already.
    let (java, many) = contend_with_tasks(&stage, (8, ms(10)), lock).await;
    println!("Java {java:?}, eight tasks {many}");
    assert!(java.failed == 0 && java.longest < secs(2), "{java:?}, eight tasks {many}");
    assert!(java.entries >= many / 10 && many >= java.entries / 10, "{java:?} to {many}");
}

/// Two threads in Java and so many tasks in Rust, on one lock: what all of each came to. The tasks
/// hold it for so long each time.
async fn contend_with_tasks(
    stage: &Stage,
    (tasks, held): (usize, Duration),
    lock: impl Fn() -> BoxFuture<'static, MutexGuard>,
) -> (Entered, u64) {
    let (folder, time) = (tempfile::tempdir().unwrap(), time() / 2);
    let work = async |lock: &dyn Fn() -> BoxFuture<'static, MutexGuard>| {
        let (watch, mut entries) = (Stopwatch::start(), 0);
        while watch.time() < time {
            let guard = lock().await;
            tokio::time::sleep(held).await;
            guard.release().await.unwrap();
            entries += 1;
        }
        entries
    };
    let tasks = join_all((0..tasks).map(|_| work(&lock)));
    let [one, other] = contend_in_java(&stage.java, "java", time, folder.path());
    let (tasks, one, other) = tokio::join!(tasks, one, other);
    let java = Entered::parse(&one.unwrap()).add(Entered::parse(&other.unwrap()));
    (java, tasks.into_iter().sum())
}

async fn contend(version: Version, servers: usize, time: Duration) {
    let stage = Stage::start(version, servers).await;
    let doomed_java = Jvm::start(version, WATCHDOG, &stage.servers).await;
    let folder = tempfile::tempdir().unwrap();
    let (folder, gate) = (folder.path(), folder.path().join("gate"));
    let plan = ContenderPlan { lease: WATCHDOG, tasks: 2, time, held: HELD };
    let mut rust = Contender::start("rust", plan, folder, &stage.servers);
    let mut doomed_rust = Contender::start("doomed-rust", plan, folder, &stage.servers);
    let [one, other] = contend_in_java(&stage.java, "java", time, folder);
    drop(contend_in_java(&doomed_java, "doomed-java", time, folder));
    tokio::time::sleep(time / 9).await;
    doomed_rust.kill();
    clear_gate_of("doomed-rust", &gate);
    tokio::time::sleep(time / 9).await;
    doomed_java.kill();
    clear_gate_of("doomed-java", &gate);
    tokio::time::sleep(time / 9).await;
    // Shorter than any lease: whoever is inside is still there behind it.
    rust.stop();
    tokio::time::sleep(ms(500)).await;
    rust.resume();
    stage.java.stop();
    tokio::time::sleep(ms(500)).await;
    stage.java.resume();
    let java = Entered::parse(&one.await.unwrap()).add(Entered::parse(&other.await.unwrap()));
    let rust = tokio::task::spawn_blocking(move || rust.finish()).await.unwrap();
    println!("{servers} servers: Java {java:?}, Rust {rust:?}");
    assert_eq!((java.failed, rust.failed), (0, 0), "Java {java:?}, Rust {rust:?}");
    assert!(java.entries > 0 && rust.entries > 0, "Java {java:?}, Rust {rust:?}");
}
