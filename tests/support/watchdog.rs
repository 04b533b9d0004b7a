//! Servers do not outlive the test process.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Kills the server when this process ends without having done so, however it ended: its standard
/// input is a pipe that only we hold, and closes with us.
#[derive(Debug)]
pub struct Watchdog(Child);

impl Watchdog {
    /// Watches a server, with the folder that goes with it.
    pub fn over(server: &Child, dir: &Path) -> Self {
        Self::with_signal("KILL", server, dir)
    }

    /// As [`over`](Self::over), for a server that has more to end than its first process.
    pub fn with_signal(signal: &str, server: &Child, dir: &Path) -> Self {
        let script = r#"trap '' HUP INT TERM; read -r _ || { kill -s "$2" "$0"; rm -rf "$1"; }"#;
        let shell = Command::new("sh")
            .args(["-c", script, &server.id().to_string()])
            .arg(dir)
            .arg(signal)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(shell.expect("sh can be started"))
    }

    /// Before the server is reaped: until then its id cannot belong to another process.
    pub fn call_off(&mut self) {
        if let Some(mut line) = self.0.stdin.take() {
            let _ = line.write_all(b"\n");
        }
        let _ = self.0.wait();
    }
}
