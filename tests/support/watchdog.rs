//! Servers do not outlive the test process.

use std::{
    io::{self, Write},
    path::Path,
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use super::process::{Signal, signal};

/// Kills the server when this process ends without having done so, however it ended: its standard
/// input is a pipe that only we hold, and closes with us.
#[derive(Debug)]
pub struct Watchdog(Child);

impl Watchdog {
    /// Watches a server, with the folder that goes with it.
    pub fn over(server: &Child, dir: &Path) -> Self {
        Self::with_signal(Signal::KILL, server, dir)
    }

    fn with_signal(signal: Signal, server: &Child, dir: &Path) -> Self {
        let script = r#"trap '' HUP INT TERM; read -r _ || { kill "-$2" "$0"; rm -rf "$1"; }"#;
        let shell = Command::new("sh")
            .args(["-c", script, &server.id().to_string()])
            .arg(dir)
            .arg(signal.as_raw().to_string())
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

/// A process with a folder of its own: both end with this value, and when the test process ends.
#[derive(Debug)]
pub struct Watched {
    pub process: Child,
    signal: Signal,
    watchdog: Watchdog,
    // Dropped last: the process ends before its folder.
    pub dir: TempDir,
}

impl Watched {
    /// `signal` ends it: one that has processes of its own may need more time than KILL gives.
    pub fn start(command: &mut Command, signal: Signal, dir: TempDir) -> io::Result<Self> {
        let process = command.spawn()?;
        let watchdog = Watchdog::with_signal(signal, &process, dir.path());
        Ok(Self { process, signal, watchdog, dir })
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // It may have ended, and have been waited for.
        if let Ok(None) = self.process.try_wait() {
            let _ = signal(&self.process, self.signal);
        }
        self.watchdog.call_off();
        let _ = self.process.wait();
    }
}
