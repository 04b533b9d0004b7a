//! A terminal on which the program runs: `script` is one.

use std::{
    io::{Read, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use quorate_support::eventually;

use crate::program::with_environment_of;

#[derive(Debug)]
pub(crate) struct Screen {
    process: Child,
    keys: ChildStdin,
    shown: Arc<Mutex<String>>,
}

impl Screen {
    /// Runs a program there, with its arguments and its environment.
    pub(crate) fn start(program: &Command) -> Self {
        let quoted = |word: &std::ffi::OsStr| {
            format!("'{}'", word.to_str().expect("it is text").replace('\'', r"'\''"))
        };
        let words: Vec<_> =
            [program.get_program()].into_iter().chain(program.get_args()).map(quoted).collect();
        // Forty columns by ten lines.
        Self::run(&format!("stty rows 10 cols 40; exec {}", words.join(" ")), program)
    }

    /// Runs a line of a shell there, with the environment of a program.
    pub(crate) fn run(line: &str, program: &Command) -> Self {
        let mut script = Command::new("script");
        script.args(["--quiet", "--return", "--command", line, "/dev/null"]).env("TERM", "xterm");
        let script = with_environment_of(&mut script, program);
        let mut process =
            script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script starts");
        let keys = process.stdin.take().expect("it is piped");
        let mut output = process.stdout.take().expect("it is piped");
        let shown = Arc::new(Mutex::new(String::new()));
        let screen = Arc::clone(&shown);
        thread::spawn(move || {
            let mut bytes = [0; 1024];
            while let Ok(length @ 1..) = output.read(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
                screen.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
            }
        });
        Self { process, keys, shown }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("it reads");
    }

    /// All that came, with what moves the cursor.
    pub(crate) fn shown(&self) -> String {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn shows(&self, text: &str) {
        eventually(&format!("the terminal shows {text:?}"), || self.shown().contains(text));
    }

    /// The exit code, once the program has ended.
    pub(crate) fn end(&mut self) -> Option<i32> {
        let mut status = None;
        eventually("the terminal is closed", || {
            status = self.process.try_wait().expect("a child can be waited for");
            status.is_some()
        });
        status.expect("it ended").code()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if thread::panicking() {
            eprintln!("the terminal shows:\n{:?}", self.shown());
        }
    }
}
