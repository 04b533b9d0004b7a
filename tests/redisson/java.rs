//! The program in Java: `java/`, a process that does what each line of its input asks for.
//!
//! | request | what its thread does |
//! |---|---|
//! | `lock KIND NAME LEASE` | waits for the lock; without a lease, -1, its watchdog renews it |
//! | `try KIND NAME WAIT LEASE` | waits for so long at most; says whether it has it |
//! | `token fenced NAME` | waits for the lock; says the token |
//! | `unlock KIND NAME` | gives it back |
//! | `force KIND NAME` | ends it, whoever has it; says whether anybody had |
//! | `count KIND NAME` | says how often it has entered |
//! | `contend KIND NAME TIME HELD GATE OWN` | see `Contention.java` |
//!
//! `KIND` is `plain`, `fenced`, `spin`, `fair`, `read` or `write`; times are in ms, and that for
//! which each entry of a contention is held in microseconds.

use std::{
    collections::HashMap,
    env,
    ffi::OsStr,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
};

use quorate_tests::prelude::*;
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::oneshot;

const PATIENCE: Duration = secs(90);

/// A version of Redisson.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version {
    number: &'static str,
    /// Where its program is, once that is built.
    built: &'static OnceLock<PathBuf>,
}

static BUILT: [OnceLock<PathBuf>; 2] = [const { OnceLock::new() }; 2];

/// The newest of each line.
pub(crate) static NEWEST_3: Version = Version { number: "3.52.0", built: &BUILT[0] };
pub(crate) static NEWEST_4: Version = Version { number: "4.7.0", built: &BUILT[1] };

impl Version {
    /// The folder with its program and all that it needs.
    fn folder(self) -> &'static Path {
        self.built.get_or_init(|| {
            let folder = target().join("redisson").join(self.number);
            let build = |offline: bool| {
                let mut maven = Command::new("mvn");
                let project = Path::new(ROOT).join("tests/redisson/java/pom.xml");
                maven.args(["-B", "-q", "-Dstyle.color=never", "-f"]).arg(project);
                maven.arg(format!("-Dredisson={}", self.number));
                maven.arg(format!("-Doutput={}", folder.display())).arg("compile");
                maven.args(offline.then_some("-o")).output().expect("Maven is installed")
            };
            // It looks for nothing where everything is here.
            if !build(true).status.success() {
                let built = build(false);
                let said = String::from_utf8_lossy(&built.stdout);
                assert!(built.status.success(), "Maven cannot build it:\n{said}");
            }
            folder
        })
    }
}

/// Where the results of compilation are.
fn target() -> PathBuf {
    let program = env::current_exe().expect("it has a path");
    let is_deps = |folder: &&Path| folder.file_name() == Some(OsStr::new("deps"));
    let deps = program.ancestors().find(is_deps).expect("Cargo has compiled it");
    deps.ancestors().nth(2).expect("a profile has a folder").to_owned()
}

/// Who waits for the answer to which request.
type Asked = Arc<Mutex<HashMap<u64, oneshot::Sender<String>>>>;

/// One that runs; killed when dropped.
#[derive(Debug)]
pub(crate) struct Jvm {
    process: Mutex<Child>,
    input: Mutex<ChildStdin>,
    asked: Asked,
    next: AtomicU64,
}

impl Jvm {
    /// Connected to these servers. `watchdog`: how long it keeps a lock without a lease that it
    /// does not renew.
    pub(crate) async fn start(
        version: Version,
        watchdog: Duration,
        servers: &[RedisServer],
    ) -> Self {
        let urls: Vec<_> = servers.iter().map(RedisServer::url).collect();
        let starting = tokio::task::spawn_blocking(move || Self::launch(version, watchdog, &urls));
        let (jvm, connected) = starting.await.expect("no panic");
        let name = timeout(PATIENCE, connected).await.expect("it connects").expect("it speaks");
        assert!(name.starts_with(&format!("Redisson {}", version.number)), "{name}");
        jvm
    }

    fn launch(
        version: Version,
        watchdog: Duration,
        urls: &[String],
    ) -> (Self, oneshot::Receiver<String>) {
        let folder = version.folder().display().to_string();
        let mut command = Command::new("java");
        // Of a process that lives for seconds the quick compiler is enough.
        command.args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"]);
        command.args(["-cp", &format!("{folder}/classes:{folder}/jars/*"), "locks.Main"]);
        command.arg(watchdog.as_millis().to_string()).args(urls);
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("Java is here");
        let input = process.stdin.take().expect("it is piped");
        let lines = BufReader::new(process.stdout.take().expect("it is piped")).lines();
        let asked = Asked::default();
        let (says, connected) = oneshot::channel();
        let heard = Arc::clone(&asked);
        // Ends with the process.
        thread::spawn(move || {
            let mut lines = lines.map_while(Result::ok);
            let _ = lines.next().map(|name| says.send(name));
            for line in lines {
                let (number, answer) = line.split_once(' ').expect("a number and an answer");
                let number = number.parse().expect("the number of a request");
                if let Some(asked) = heard.lock().unwrap().remove(&number) {
                    let _ = asked.send(answer.to_owned());
                }
            }
            heard.lock().unwrap().clear();
        });
        let (process, input) = (Mutex::new(process), Mutex::new(input));
        (Self { process, input, asked, next: AtomicU64::new(0) }, connected)
    }

    /// Has one of its threads do something; what it says then.
    pub(crate) fn ask(
        &self,
        thread: &str,
        request: &str,
    ) -> impl Future<Output = Result<String, String>> + Send + use<> {
        let number = self.next.fetch_add(1, Relaxed);
        let (says, answer) = oneshot::channel();
        self.asked.lock().unwrap().insert(number, says);
        let line = format!("{number} {thread} {request}\n");
        self.input.lock().unwrap().write_all(line.as_bytes()).expect("it listens");
        async move {
            let answer = timeout(PATIENCE, answer).await.expect("it answers in time");
            let answer = answer.map_err(|_| "it has ended".to_owned())?;
            match answer.split_once(' ') {
                Some(("ok", said)) => Ok(said.to_owned()),
                _ => Err(answer),
            }
        }
    }

    /// As [`ask`](Self::ask), where it must succeed.
    pub(crate) async fn does(&self, thread: &str, request: &str) -> String {
        let said = self.ask(thread, request).await;
        said.unwrap_or_else(|error| panic!("{request}: {error}"))
    }

    /// Whether the lock is free for this thread now.
    pub(crate) async fn tries(&self, thread: &str, name: &str) -> bool {
        self.does(thread, &format!("try plain {name} -1 -1")).await == "true"
    }

    /// Ends it with SIGKILL.
    pub(crate) fn kill(&self) {
        let mut process = self.process.lock().unwrap();
        process.kill().expect("it can be killed");
        process.wait().expect("it ends");
    }

    pub(crate) fn stop(&self) {
        self.signal(Signal::STOP);
    }

    pub(crate) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let process = self.process.lock().unwrap();
        kill_process(Pid::from_child(&process), signal).expect("it runs");
    }
}

impl Drop for Jvm {
    fn drop(&mut self) {
        self.kill();
    }
}
