//! Nobody reads the program's standard error.

use std::{
    io::{BufRead, BufReader, ErrorKind, Write},
    os::{fd::OwnedFd, unix::net::UnixStream},
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::Duration,
};

use quorate_support::eventually;

use crate::voters::Voters;

/// What nobody reads; the other end is there.
fn unread() -> (UnixStream, UnixStream) {
    UnixStream::pair().expect("the system has room")
}

/// From here on whoever writes there waits.
fn fill(pipe: &UnixStream) {
    pipe.set_nonblocking(true).expect("it is open");
    let mut pipe = pipe;
    loop {
        match pipe.write(b".") {
            Ok(_) => {}
            Err(full) if full.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("it can be written to: {error}"),
        }
    }
    pipe.set_nonblocking(false).expect("it is open");
}

/// The program, which writes its errors there. Killed at the end.
struct Unread {
    process: Child,
    lines: Receiver<String>,
}

impl Unread {
    fn start(command: &mut Command, errors: &UnixStream) -> Self {
        let errors = OwnedFd::from(errors.try_clone().expect("the system has room"));
        let command = command.stdout(Stdio::piped()).stderr(errors);
        let mut process = command.spawn().expect("it starts");
        let output = BufReader::new(process.stdout.take().expect("it is piped"));
        let (heard, lines) = mpsc::channel();
        thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|l| heard.send(l)));
        Self { process, lines }
    }

    /// What the command says next; nothing where it ends, or is silent for a minute.
    fn says(&self) -> Option<String> {
        self.lines.recv_timeout(Duration::from_mins(1)).ok()
    }

    fn code(&mut self) -> i32 {
        let mut ended = None;
        eventually("the program ends", || {
            ended = self.process.try_wait().expect("a child can be waited for");
            ended.is_some()
        });
        ended.and_then(|status| status.code()).expect("it ends by itself")
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

// The log has much to say when a server ends. The command goes on for longer than the lease.
#[test]
fn a_command_goes_on_though_nobody_reads_the_log() {
    let mut voters = Voters::start();
    let (errors, _reader) = unread();
    let script = "exec 2>/dev/null; sleep 9; echo done";
    let mut running = Unread::start(&mut voters.run(&["-vv", "a"], script), &errors);
    assert!(running.says().is_some(), "the command runs");
    fill(&errors);
    voters.0[2].kill();
    let said = running.says();
    assert_eq!((said.as_deref(), running.code()), (Some("done"), 0));
}

// A command that is not there, a lock that is taken, and one that is lost.
#[test]
fn the_program_ends_though_nobody_reads_why() {
    let mut voters = Voters::start();
    let (errors, _reader) = unread();
    fill(&errors);
    let start = |command: &mut Command| Unread::start(command, &errors);
    let mut missing = start(&mut voters.quorate(&["run", "a", "--", "/nowhere/none"]));
    assert_eq!(missing.code(), 127);
    let mut running = start(&mut voters.run(&["-v", "a"], "exec 2>/dev/null; sleep 1000"));
    assert!(running.says().is_some(), "the command runs");
    let mut other = start(&mut voters.quorate(&["run", "a", "--try", "--", "true"]));
    assert_eq!(other.code(), 75);
    voters.0.iter_mut().for_each(quorate_support::RedisServer::kill);
    assert_eq!(running.code(), 76);
}
