//! A program that runs as a process of its own.

use std::{
    ffi::OsStr,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::Duration,
};

const PATIENCE: Duration = Duration::from_secs(30);

/// A process that waits for a lock and gives it back at a line of its input; killed when dropped.
#[derive(Debug)]
pub struct Worker {
    process: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Worker {
    /// Starts a program with these arguments.
    pub fn start(program: &Path, arguments: impl IntoIterator<Item: AsRef<OsStr>>) -> Self {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("it starts");
        let output = BufReader::new(process.stdout.take().expect("it is piped"));
        let (heard, lines) = mpsc::channel();
        // Ends with the process; nobody may be left to hear it.
        thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|l| heard.send(l)));
        Self { input: process.stdin.take(), process, lines }
    }

    /// What it says next.
    pub fn says(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("it says something")
    }

    /// Ends its turn, and waits until it has ended itself: what slower voters have not been told by
    /// then it would not tell them any more.
    pub fn leave(&mut self) {
        let mut input = self.input.take().expect("it has not left");
        input.write_all(b"\n").expect("it listens");
        assert_eq!(self.says(), "released");
        assert!(self.process.wait().expect("it ends").success());
    }

    /// Ends it with SIGKILL.
    pub fn kill(&mut self) {
        self.process.kill().expect("it can be killed");
        self.process.wait().expect("it ends");
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}
