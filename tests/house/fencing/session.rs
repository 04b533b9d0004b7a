//! A connection to a database, by its own command-line program.

use std::{
    fmt::Write as _,
    io::{BufRead, BufReader, ErrorKind, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

const MARK: &str = "-- that was all --";

pub(crate) struct Session {
    program: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Prints the mark.
    echo: &'static str,
}

impl Session {
    /// `echo` is the program's own command that prints a text; `missing` says how to install it.
    pub(crate) fn start(command: &Command, echo: &'static str, missing: &str) -> Self {
        // So that errors come in line with answers.
        let mut shell = Command::new("sh");
        shell.args(["-c", r#"exec "$0" "$@" 2>&1"#]).arg(command.get_program());
        shell.args(command.get_args()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let there = Command::new(command.get_program()).arg("--version").output();
        match there {
            Err(cause) if cause.kind() == ErrorKind::NotFound => {
                let name = command.get_program().display();
                panic!("{name} not found; install it: {missing}")
            }
            there => there.expect("it can be started"),
        };
        let mut program = shell.spawn().expect("sh can be started");
        let input = program.stdin.take().expect("a pipe");
        let output = BufReader::new(program.stdout.take().expect("a pipe"));
        Self { program, input, output, echo }
    }

    /// Runs statements, and returns what the program printed, line by line.
    pub(crate) fn run(&mut self, text: &str) -> Vec<String> {
        self.send(text);
        self.answer()
    }

    /// Sends statements without waiting for their end.
    pub(crate) fn send(&mut self, text: &str) {
        let mut lines = text.to_owned();
        write!(lines, "\n{} '{MARK}'\n", self.echo).expect("a text takes it");
        self.input.write_all(lines.as_bytes()).expect("the program reads");
        self.input.flush().expect("a pipe takes it");
    }

    pub(crate) fn answer(&mut self) -> Vec<String> {
        let mut told = Vec::new();
        loop {
            let mut line = String::new();
            let length = self.output.read_line(&mut line).expect("the program prints text");
            assert!(length > 0, "the program has ended: {told:?}");
            match line.trim_end() {
                MARK => return told,
                line => told.push(line.to_owned()),
            }
        }
    }

    /// As [`run`](Self::run), for what prints one line.
    #[track_caller]
    pub(crate) fn one(&mut self, text: &str) -> String {
        let told = self.run(text);
        let [line] = &told[..] else { panic!("{text}: {told:?}") };
        line.clone()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}
