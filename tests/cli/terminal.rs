//! A terminal is the command's: `script` is one, and a shell with jobs runs on it.

use std::{
    io::{Read, Write},
    process::{Child, ChildStdin, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use quorate_support::eventually;

use crate::{
    processes::{is_alive, is_stopped},
    voters::Voters,
};

/// A terminal on which something runs.
#[derive(Debug)]
struct Console {
    process: Child,
    keys: ChildStdin,
    shown: Arc<Mutex<String>>,
}

impl Console {
    fn start(voters: &Voters, line: &str) -> Self {
        // For its environment.
        let quorate = voters.quorate(&[]);
        let mut script = std::process::Command::new("script");
        script.args(["--quiet", "--return", "--command", line, "/dev/null"]);
        for (name, value) in quorate.get_envs() {
            match value {
                Some(value) => script.env(name, value),
                None => script.env_remove(name),
            };
        }
        script.env("QUORATE", quorate.get_program()).env("PS1", "> ").env("TERM", "dumb");
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

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("it reads");
    }

    fn shown(&self) -> String {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn shows(&self, text: &str) {
        eventually(&format!("the terminal shows {text:?}"), || self.shown().contains(text));
    }

    /// The number behind this text.
    fn number(&self, before: &str) -> u32 {
        let mut number = None;
        eventually(&format!("there is a number behind {before}"), || {
            let shown = self.shown();
            // The line that was typed has no number there.
            number = shown
                .lines()
                .find_map(|line| line.split_once(before)?.1.split(';').next()?.parse().ok());
            number.is_some()
        });
        number.expect("it is there")
    }

    fn end(&mut self) -> Option<i32> {
        let mut status = None;
        eventually("the terminal is closed", || {
            status = self.process.try_wait().expect("a child can be waited for");
            status.is_some()
        });
        status.expect("it ended").code()
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if thread::panicking() {
            eprintln!("the terminal shows:\n{}", self.shown());
        }
    }
}

#[test]
fn the_command_reads_the_terminal_and_gets_its_keys() {
    let voters = Voters::start();
    let script = "trap \"echo interrupted; exit 9\" INT; echo ready; read line; echo \"<$line>\"; \
                  while true; do sleep 0.05; done";
    let line = format!("$QUORATE run a -- sh -c '{script}'");
    let mut console = Console::start(&voters, &line);
    console.shows("ready");
    console.press("hello\n");
    console.shows("<hello>");
    console.press("\x03");
    console.shows("interrupted");
    assert_eq!(console.end(), Some(9));
}

#[test]
fn a_shell_stops_it_and_continues_it() {
    let voters = Voters::start();
    let mut console = Console::start(&voters, "sh -i");
    let script = "echo \"group=$$;\"; while read line; do echo \"<$line>\"; done";
    console.press(&format!("$QUORATE run a -- sh -c '{script}'\n"));
    let command = console.number("group=");
    for round in 0..3 {
        console.press(&format!("one {round}\n"));
        console.shows(&format!("<one {round}>"));
        console.press("\x1a");
        eventually("the command is stopped", || is_stopped(command));
        // The shell has the terminal.
        console.press(&format!("echo shell-$((40 + {round}))\n"));
        console.shows(&format!("shell-4{round}"));
        console.press("fg\n");
        eventually("the command goes on", || !is_stopped(command));
    }
    console.press("last\n");
    console.shows("<last>");
    console.press("\x04");
    eventually("the command has ended", || !is_alive(command));
    console.press("echo code-$?\n");
    console.shows("code-0");
    console.press("exit\n");
    assert_eq!(console.end(), Some(0));
}

#[test]
fn in_the_background_it_stops_when_it_reads_the_terminal() {
    let voters = Voters::start();
    let mut console = Console::start(&voters, "sh -i");
    let script = "echo \"group=$$;\"; read line; echo \"<$line>\"";
    console.press(&format!("$QUORATE run a -- sh -c '{script}' &\n"));
    let command = console.number("group=");
    eventually("it waits for the terminal", || is_stopped(command));
    console.press("fg\n");
    eventually("it goes on", || !is_stopped(command));
    console.press("hello\n");
    console.shows("<hello>");
    eventually("the command has ended", || !is_alive(command));
    console.press("exit\n");
    assert_eq!(console.end(), Some(0));
}
