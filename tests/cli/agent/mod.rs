//! `quorate agent`: what clients in any language rely on.

mod ends;
mod load;
#[cfg(feature = "full")]
mod packages;
mod protocol;
mod stdio;

use std::{
    env, fs,
    io::{BufRead, BufReader, Read, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex,
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use quorate_support::eventually;
use rustix::{
    io::{FdFlags, fcntl_setfd},
    process::{Pid, Signal, kill_process},
    time::{ClockId, clock_gettime},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::voters::Voters;

const PATIENCE: Duration = Duration::from_mins(1);

/// The clock of deadlines, in microseconds.
#[expect(clippy::disallowed_methods, reason = "deadlines are told by this clock")]
fn now_us() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let part = |number: i64| u64::try_from(number).expect("it is after the start");
    part(now.tv_sec) * 1_000_000 + part(now.tv_nsec) / 1_000
}

/// An agent that listens.
struct Daemon {
    process: Child,
    socket: PathBuf,
    _folder: Option<TempDir>,
}

impl Daemon {
    fn start(voters: &Voters) -> Self {
        Self::start_by(voters, "4s", &[])
    }

    fn start_by(voters: &Voters, lease: &str, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("run/agent.sock");
        let own = ["agent", "--socket", socket.to_str().unwrap()];
        let mut command = voters.quorate(&[&own, more].concat());
        command.env("QUORATE_LEASE", lease).env("QUORATE_LONGEST_LEASE", lease);
        Self::run(&mut command, socket, Some(folder))
    }

    fn run(command: &mut Command, socket: PathBuf, folder: Option<TempDir>) -> Self {
        let process = command.spawn().expect("it starts");
        eventually("the agent listens", || UnixStream::connect(&socket).is_ok());
        Self { process, socket, _folder: folder }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("it runs");
    }

    fn client(&self) -> Client {
        Client::greet(UnixStream::connect(&self.socket).expect("it listens"))
    }

    fn ends_with(&mut self) -> Option<i32> {
        let mut status = None;
        eventually("the agent ends", || {
            status = self.process.try_wait().unwrap();
            status.is_some()
        });
        status.expect("it has ended").code()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What a client says; none once it has ended that.
type Output = Arc<Mutex<Option<Box<dyn Write + Send>>>>;

/// A client that lives: a thread answers pings.
struct Client {
    output: Output,
    lines: Receiver<Value>,
    /// What was said that nobody has asked for yet.
    before: Vec<Value>,
    latest: u64,
}

impl Client {
    fn greet(socket: UnixStream) -> Self {
        let mut client = Self::new(socket.try_clone().unwrap(), socket);
        client.begin();
        client
    }

    fn new(input: impl Read + Send + 'static, output: impl Write + Send + 'static) -> Self {
        let (heard, lines) = mpsc::channel();
        let output: Output = Arc::new(Mutex::new(Some(Box::new(output))));
        let pongs = Arc::clone(&output);
        thread::spawn(move || {
            for line in BufReader::new(input).lines().map_while(Result::ok) {
                let line: Value = serde_json::from_str(&line).expect("it is JSON");
                if line["event"] == "ping" {
                    say(&pongs, &json!({ "pong": line["n"] }));
                }
                if heard.send(line).is_err() {
                    return;
                }
            }
        });
        Self { output, lines, before: Vec::new(), latest: 0 }
    }

    fn begin(&mut self) {
        let started = now_us();
        say(&self.output, &json!({ "v": 1 }));
        let greeting = self.hears().expect("it answers");
        let at = greeting["now_us"].as_u64().unwrap_or_else(|| panic!("{greeting}"));
        assert!(greeting["v"] == 1 && started <= at && at <= now_us(), "{greeting}");
    }

    /// Sends a request, with the number of its answer.
    fn send(&mut self, mut fields: Value) -> u64 {
        self.latest += 1;
        fields["id"] = self.latest.into();
        say(&self.output, &fields);
        self.latest
    }

    fn ask(&mut self, fields: Value) -> Result<Value, Value> {
        let id = self.send(fields);
        self.answer(id)
    }

    fn answer(&mut self, id: u64) -> Result<Value, Value> {
        let mut said = self.until(|said| said["id"] == id);
        if said["error"].is_null() { Ok(said["ok"].take()) } else { Err(said["error"].take()) }
    }

    fn event(&mut self, name: &str) -> Value {
        self.until(|said| said["event"] == name)
    }

    fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.before.iter().position(&wanted) {
            return self.before.remove(at);
        }
        loop {
            let said = self.hears().expect("the connection stays");
            if wanted(&said) {
                return said;
            }
            self.before.push(said);
        }
    }

    /// None: the agent has ended the connection.
    fn hears(&mut self) -> Option<Value> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(said) => Some(said),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("it says nothing for {PATIENCE:?}"),
        }
    }

    fn lock(&mut self, name: &str) -> Value {
        let fields = json!({ "op": "acquire", "kind": "mutex", "name": name });
        self.ask(fields).expect("it is free")
    }

    /// Says no more. Of a pipe that is its end.
    fn hang_up(&self) {
        *self.output.lock().unwrap() = None;
    }
}

/// Whoever has gone hears nothing.
fn say(output: &Output, what: &Value) {
    if let Some(output) = &mut *output.lock().unwrap() {
        let _ = writeln!(output, "{what}");
    }
}

/// A process of its own that holds a lock, by [`client_process`].
struct ClientProcess {
    process: Child,
    lines: Receiver<String>,
}

impl ClientProcess {
    /// `inherits`: a child of it has the connection open too, and outlives it.
    fn start(socket: &Path, fields: &Value, inherits: bool) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["agent::client_process", "--exact", "--ignored", "--nocapture"]);
        command.env("AGENT_SOCKET", socket).env("AGENT_REQUEST", fields.to_string());
        command.envs(inherits.then_some(("AGENT_CHILD", "1"))).stdin(Stdio::null());
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (heard, lines) = mpsc::channel();
        thread::spawn(move || {
            let lines = output.lines().map_while(Result::ok);
            let mut said = lines.filter_map(|line| Some(line.strip_prefix('@')?.to_owned()));
            said.try_for_each(|line| heard.send(line))
        });
        Self { process, lines }
    }

    /// The words behind this one, when it says so next.
    fn says(&self, what: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|error| panic!("it does not say {what}: {error}"));
            if let Some(rest) = line.strip_prefix(what) {
                return rest.trim().to_owned();
            }
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("it runs");
    }
}

impl Drop for ClientProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What other tests start, by the name of this one: it says each deadline, and when its lock is lost,
/// by its own clock or by the agent.
#[test]
#[ignore = "a process of other tests"]
fn client_process() {
    let socket = env::var_os("AGENT_SOCKET").expect("a test starts it");
    let socket = UnixStream::connect(socket).expect("an agent listens");
    let mut sleep = env::var_os("AGENT_CHILD").map(|_| {
        fcntl_setfd(&socket, FdFlags::empty()).unwrap();
        Command::new("sleep").arg("10").stdout(Stdio::null()).spawn().unwrap()
    });
    let mut client = Client::greet(socket);
    let fields = env::var("AGENT_REQUEST").expect("a test says what");
    let told = client.ask(serde_json::from_str(&fields).unwrap()).expect("it is free");
    let (hold, mut deadline) = (told["hold"].as_u64(), told["deadline_us"].as_u64().unwrap());
    let mut is_over = false;
    println!("\n@held {deadline}");
    loop {
        let left = Duration::from_micros(deadline.saturating_sub(now_us()));
        match client.lines.recv_timeout(if is_over { PATIENCE } else { left }) {
            Ok(said) if said["event"] == "ping" => {
                for moved in said["deadlines"].as_array().expect("a list") {
                    if moved[0].as_u64() == hold {
                        deadline = moved[1].as_u64().unwrap();
                    }
                }
                println!("@deadline {deadline}");
            }
            Ok(said) if said["event"] == "lost" => {
                println!("@lost {}", said["error"]);
                break;
            }
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout) => {
                assert!(!is_over, "it is not told");
                is_over = true;
                println!("@over {}", now_us());
            }
            Err(RecvTimeoutError::Disconnected) => {
                println!("@gone");
                thread::sleep(Duration::from_micros(deadline.saturating_sub(now_us())));
                println!("@over {}", now_us());
                break;
            }
        }
    }
    if let Some(sleep) = &mut sleep {
        let _ = sleep.kill();
    }
}

fn mutex(name: &str) -> Value {
    json!({ "op": "acquire", "kind": "mutex", "name": name })
}

/// A program that speaks to an agent over pipes, as its child or by a child of its own.
fn speak(command: &mut Command) -> (Child, Client) {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.spawn().expect("it starts");
    let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
    let mut client = Client::new(output, input);
    client.begin();
    (process, client)
}

/// Of a process of the agent, in KiB.
fn resident_kib(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux says so");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}
