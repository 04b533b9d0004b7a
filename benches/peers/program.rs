//! A program that does with a lock library what each line of its input asks for.
//!
//! Its first line says which library that is. Each further one answers a request: `ok` and eight
//! whole numbers, those of [`Answer`], or `error` and why. Names of locks are its own affair.
//!
//! | request | what it does |
//! |---|---|
//! | `connect URL..` | leaves what it was connected to, and connects one client |
//! | `cycles TASKS MS` | each task takes and gives back a lock of its own, again and again |
//! | `handoff KIND WAITERS CLIENTS MS` | all want one lock, again and again |
//! | `crowd KIND WAITERS CLIENTS MS` | all want one lock once; who has not had it by then leaves |
//! | `take COUNT` | takes so many locks more, and keeps them |
//! | `keep MS` | keeps them for so long |
//! | `count` | counts those that it still has, and those that it has not |
//!
//! `KIND` is `plain` or `fair`. The times of `cycles` are those of a lock and its release. Those of
//! `handoff` are from a release until the next one has the lock, after a lead-in in which everybody
//! begins to wait; nobody asks again before another has had the lock, and two holders at once are a
//! failure. Those of `crowd` are from the beginning until one of them has the lock. `take` and
//! `keep` tell how much memory is in use. Input that ends ends the program.

use std::{
    fs::File,
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::Duration,
};

use crate::usage::used_by_process;

/// A request takes at most a few seconds longer than it says.
const PATIENCE: Duration = Duration::from_secs(100);

/// How often it is looked at until it rests, and for how long each time.
const REST_LOOKS: u32 = 50;
const REST: Duration = Duration::from_millis(100);

/// A program that runs; killed when dropped.
#[derive(Debug)]
pub struct Program {
    name: String,
    process: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    log: PathBuf,
}

/// What a request came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Of what was asked for: locks that were had, or that are kept.
    pub count: u32,
    pub failed: u32,
    pub elapsed: Duration,
    pub p50: Duration,
    pub p99: Duration,
    pub p999: Duration,
    /// Processor time of the program.
    pub processor: Duration,
    /// In bytes.
    pub memory: u64,
}

impl Program {
    /// Starts it. What it says beside its answers goes into the log.
    ///
    /// # Errors
    ///
    /// Why it does not run.
    pub fn start(command: &mut Command, log: PathBuf) -> Result<Self, String> {
        let complaints = File::create(&log).map_err(|cause| cause.to_string())?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(complaints);
        let mut process = command.spawn().map_err(|cause| cause.to_string())?;
        let output = BufReader::new(process.stdout.take().expect("it is piped"));
        let (heard, lines) = mpsc::channel();
        // Ends with the process; nobody may be left to hear it.
        thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|l| heard.send(l)));
        let input = process.stdin.take().expect("it is piped");
        let mut program = Self { name: String::new(), process, input, lines, log };
        program.name = program.line()?;
        Ok(program)
    }

    /// What it says of itself: libraries and versions.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Has it do something.
    ///
    /// # Errors
    ///
    /// Why it could not, or that it has ended.
    pub fn ask(&mut self, request: &str) -> Result<Answer, String> {
        let sent = self.input.write_all(format!("{request}\n").as_bytes());
        sent.map_err(|cause| format!("{request}: {cause}; see {}", self.log.display()))?;
        let line = self.line()?;
        Answer::parse(&line).ok_or_else(|| format!("{request}: {line}"))
    }

    /// Waits until it does nothing: what it was asked for may have left something to clear away.
    /// A few seconds at most.
    pub fn rest(&self) {
        for _ in 0..REST_LOOKS {
            let used = used_by_process(self.process.id());
            thread::sleep(REST);
            if used_by_process(self.process.id()).saturating_sub(used) < REST / 5 {
                return;
            }
        }
    }

    fn line(&self) -> Result<String, String> {
        let line = self.lines.recv_timeout(PATIENCE);
        line.map_err(|cause| format!("{cause}; see {}", self.log.display()))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Answer {
    fn parse(line: &str) -> Option<Self> {
        let numbers: Option<Vec<u64>> =
            line.strip_prefix("ok ")?.split(' ').map(|word| word.parse().ok()).collect();
        let [count, failed, elapsed, p50, p99, p999, processor, memory] = numbers?[..] else {
            return None;
        };
        Some(Self {
            count: count.try_into().ok()?,
            failed: failed.try_into().ok()?,
            elapsed: Duration::from_micros(elapsed),
            p50: Duration::from_micros(p50),
            p99: Duration::from_micros(p99),
            p999: Duration::from_micros(p999),
            processor: Duration::from_micros(processor),
            memory,
        })
    }

    /// As a program says it.
    pub fn line(&self) -> String {
        let Self { count, failed, memory, .. } = self;
        let [elapsed, p50, p99, p999, processor] =
            [self.elapsed, self.p50, self.p99, self.p999, self.processor]
                .map(|time| time.as_micros());
        format!("ok {count} {failed} {elapsed} {p50} {p99} {p999} {processor} {memory}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_as_it_is_said() {
        let line = "ok 3 1 2000000 10 20 30 40 5";
        let answer = Answer::parse(line).expect("it is whole");
        assert_eq!((answer.count, answer.failed, answer.memory), (3, 1, 5));
        assert_eq!(
            (answer.elapsed, answer.p99),
            (Duration::from_secs(2), Duration::from_micros(20))
        );
        assert_eq!(answer.line(), line);
        for other in ["", "ok", "error no server", "ok 1 2 3 4 5 6 7", "ok 1 2 3 4 5 6 7 -8"] {
            assert_eq!(Answer::parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_program_that_ends_is_an_error_and_not_a_wait() {
        let log = std::env::temp_dir().join(format!("quorate-peers-{}.log", std::process::id()));
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo a library; read -r request; echo error of $request; exit 1"]);
        let mut program = Program::start(&mut shell, log.clone()).expect("it speaks");
        assert_eq!(program.name(), "a library");
        assert_eq!(program.ask("keep 1"), Err("keep 1: error of keep 1".to_owned()));
        assert!(program.ask("keep 1").is_err());
        std::fs::remove_file(log).expect("it is there");
    }
}
