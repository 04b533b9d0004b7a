//! Prometheus and the example service, as processes that never outlive their test.

use std::{
    fs::{self, File},
    io::{self, ErrorKind, Read, Write},
    net::{Ipv4Addr, TcpStream},
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;

use quorate_support::{Watchdog, free_port, install_line, succeeds};

/// Longer than any lock here can be held without a quorum.
const LIMIT: Duration = Duration::from_secs(40);

pub(crate) fn missing(program: &str, error: &io::Error) -> String {
    assert_eq!(error.kind(), ErrorKind::NotFound, "{program} cannot be run: {error}");
    let dnf = "golang-github-prometheus";
    let packages = ["prometheus", dnf, "prometheus", "prometheus", "prometheus"];
    format!("{program} is not installed: {}", install_line(packages))
}

/// A process that speaks HTTP at a port of 127.0.0.1; killed when dropped.
pub(crate) struct Server {
    pub(crate) process: Child,
    pub(crate) port: u16,
    watchdog: Watchdog,
    // Dropped last: the process ends before its folder.
    dir: TempDir,
}

impl Server {
    /// In a folder with these files. Returns when `ready` is answered with 200.
    pub(crate) fn start(
        command: impl FnOnce(u16) -> Command,
        files: &[(&str, &str)],
        ready: &str,
    ) -> Self {
        let dir = tempfile::Builder::new().prefix("quorate-").tempdir().expect("a folder");
        for (name, text) in files {
            fs::write(dir.path().join(name), text).expect("it can be written");
        }
        let port = free_port();
        let mut command = command(port);
        command.current_dir(dir.path()).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(File::create(dir.path().join("log")).expect("a log file"));
        let program = command.get_program().display().to_string();
        let process =
            command.spawn().unwrap_or_else(|error| panic!("{}", missing(&program, &error)));
        let watchdog = Watchdog::over(&process, dir.path());
        let server = Self { process, port, watchdog, dir };
        succeeds("it is ready", || match server.get(ready) {
            Ok((200, _)) => Ok(()),
            other => Err(format!("{other:?}: {}", server.log())),
        });
        server
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).expect("it logs")
    }

    /// The status and the body of the answer.
    pub(crate) fn get(&self, path: &str) -> Result<(u16, String), String> {
        ask(self.port, &format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n"))
    }

    /// What the API of Prometheus says.
    pub(crate) fn api(&self, path: &str, parameters: &[(&str, &str)]) -> Result<Value, String> {
        let mut encoded = url::form_urlencoded::Serializer::new(String::new());
        encoded.extend_pairs(parameters);
        let (_, text) = self.get(&format!("/api/v1/{path}?{}", encoded.finish()))?;
        let answer: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        if answer["status"] == "success" { Ok(answer["data"].clone()) } else { Err(text) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        // Before the reaping: until then the id cannot belong to another process.
        self.watchdog.call_off();
        let _ = self.process.wait();
    }
}

/// The status and the body of the answer. As HTTP/1.0, so that no answer comes in chunks.
pub(crate) fn ask(port: u16, request: &str) -> Result<(u16, String), String> {
    let answer = || {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map(|_| answer)
    };
    let answer = answer().map_err(|error: io::Error| error.to_string())?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(|| format!("no HTTP: {answer}"))?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Ok((status.ok_or_else(|| format!("no status: {head}"))?, body.to_owned()))
}

pub(crate) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
