//! The program under test, and how tests run it.

use std::{
    env,
    ffi::OsStr,
    fs,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::{
        OnceLock,
        mpsc::{self, Receiver},
    },
    thread,
    time::Duration,
};

use quorate_support::{ROOT, eventually};
use rustix::process::{Pid, Signal, kill_process};

use crate::{processes::members, voters::LEASE};

const PATIENCE: Duration = Duration::from_mins(1);

/// Where the program is: where the environment says, or where it is built now.
pub(crate) fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| env::var_os("QUORATE_PROGRAM").map_or_else(build, PathBuf::from))
}

/// Beside this test: `target/PROFILE/deps` has it.
fn build() -> PathBuf {
    let own = env::current_exe().expect("a test has a path");
    let folder = own.ancestors().nth(2).expect("it is in a folder of the target");
    let profile = match folder.file_name().and_then(OsStr::to_str) {
        Some("debug") => "dev",
        Some(profile) => profile,
        None => panic!("{} names no profile", own.display()),
    };
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["build", "--locked", "--package", "quorate", "--features", "cli"];
    let built = Command::new(cargo)
        .args(arguments)
        .args(["--bin", "quorate", "--profile", profile])
        .current_dir(ROOT)
        .status();
    assert!(built.expect("cargo runs").success(), "the program is not built");
    folder.join("quorate")
}

/// The program with these arguments, and nothing of the settings that the tests are run with.
pub(crate) fn quorate<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Command {
    quorate_by(program(), arguments)
}

/// The same, by another program than the one under test.
pub(crate) fn quorate_by<A: AsRef<OsStr>>(
    program: &Path,
    arguments: impl IntoIterator<Item = A>,
) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with("QUORATE_") {
            command.env_remove(name);
        }
    }
    let lease = format!("{}ms", LEASE.as_millis());
    command.env("QUORATE_LEASE", &lease).env("QUORATE_LONGEST_LEASE", &lease);
    command.env("QUORATE_QUORUM_TIMEOUT", "2s").env("QUORATE_CONNECT_TIMEOUT", "3s");
    command.env("XDG_CONFIG_HOME", "/nowhere").env("XDG_CONFIG_DIRS", "/nowhere");
    command
}

/// Gives a command the environment of another one.
pub(crate) fn with_environment_of<'c>(
    command: &'c mut Command,
    other: &Command,
) -> &'c mut Command {
    for (name, value) in other.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

/// What the client of a process is called: the end of the host's name, and the process.
pub(crate) fn client_name(process: u32) -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("Linux has it");
    let host = host.trim();
    let end = host[host.len().saturating_sub(20)..].trim_start_matches(['-', '.']);
    format!("{end}.{process}")
}

/// What the program printed, and its exit code.
pub(crate) fn output(command: &mut Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("it starts");
    let text = |bytes| String::from_utf8(bytes).expect("it is text");
    (status.code().expect("it ends by itself"), text(stdout), text(stderr))
}

/// The program while its command runs: a shell script that says its process id first.
#[derive(Debug)]
pub(crate) struct Running {
    process: Child,
    lines: Receiver<String>,
    errors: Option<thread::JoinHandle<String>>,
    /// The process group of the command.
    pub(crate) group: u32,
}

impl Running {
    /// Starts it; returns when the command runs.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut running = Self::start_soon(command);
        running.group = running.says().parse().expect("the command says its id");
        running
    }

    /// As [`start`](Self::start), without waiting for the command.
    pub(crate) fn start_soon(command: &mut Command) -> Self {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("it starts");
        let output = BufReader::new(process.stdout.take().expect("it is piped"));
        let mut errors = process.stderr.take().expect("it is piped");
        let (heard, lines) = mpsc::channel();
        // Ends with the processes; nobody may be left to hear it.
        thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|l| heard.send(l)));
        let errors = thread::spawn(move || {
            let mut text = String::new();
            let _ = errors.read_to_string(&mut text);
            text
        });
        Self { process, lines, errors: Some(errors), group: 0 }
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// What the command says next.
    pub(crate) fn says(&self) -> String {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(error) => panic!("the command says nothing: {error}"),
        }
    }

    /// Whether the command has said anything more.
    pub(crate) fn has_said(&self) -> bool {
        self.lines.try_recv().is_ok()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("it runs");
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.process.try_wait().expect("a child can be waited for").is_some()
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        eventually("the program ends", || {
            status = self.process.try_wait().expect("a child can be waited for");
            status.is_some()
        });
        status.expect("it ended")
    }

    /// Its exit code, and what was said on standard error.
    pub(crate) fn end(&mut self) -> (i32, String) {
        let code = self.wait().code().expect("it ends by itself");
        let errors = self.errors.take().expect("it ends once");
        (code, errors.join().expect("it is text"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if self.group > 0 && !thread::panicking() {
            eventually("nothing of the command is left", || members(self.group).is_empty());
        }
    }
}
