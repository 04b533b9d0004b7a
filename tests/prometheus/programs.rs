//! `promtool`, and a Prometheus that never outlives the test that started it.

use std::{
    fs::{self, File},
    io::{ErrorKind, Read, Write},
    net::{Ipv4Addr, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Watchdog, free_port, install_line, succeeds};

/// Longer than any lock here can be held without a quorum.
const LIMIT: Duration = Duration::from_secs(40);

/// What `promtool` says, and whether it is content.
pub(crate) fn promtool(arguments: &[&str], dir: &Path) -> Result<String, String> {
    run(Command::new("promtool").args(arguments).current_dir(dir))
}

/// As [`promtool`], with something to read.
pub(crate) fn promtool_on(input: &str, arguments: &[&str]) -> Result<String, String> {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("input");
    fs::write(&path, input).expect("it can be written");
    let input = File::open(path).expect("it is there");
    run(Command::new("promtool").args(arguments).stdin(input))
}

fn run(promtool: &mut Command) -> Result<String, String> {
    let output =
        promtool.output().unwrap_or_else(|error| panic!("{}", missing("promtool", &error)));
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if output.status.success() { Ok(text) } else { Err(text) }
}

fn missing(program: &str, error: &std::io::Error) -> String {
    assert_eq!(error.kind(), ErrorKind::NotFound, "{program} cannot be run: {error}");
    let packages =
        ["prometheus", "golang-github-prometheus", "prometheus", "prometheus", "prometheus"];
    format!("{program} is not installed: {}", install_line(packages))
}

/// On a port of 127.0.0.1; killed when dropped.
pub(crate) struct Prometheus {
    port: u16,
    server: Child,
    watchdog: Watchdog,
    // Dropped last: the server ends before its folder.
    dir: TempDir,
}

impl Prometheus {
    /// With this configuration, whose files are beside it, and further flags.
    pub(crate) fn start(files: &[(&str, &str)], flags: &[&str]) -> Self {
        for _ in 0..50 {
            let dir = tempfile::Builder::new().prefix("quorate-").tempdir().expect("a folder");
            for (name, text) in files {
                fs::write(dir.path().join(name), text).expect("it can be written");
            }
            let port = free_port();
            let log = File::create(dir.path().join("log")).expect("a log file");
            let mut command = Command::new("prometheus");
            command.current_dir(dir.path()).args(flags).args([
                "--config.file=prometheus.yml",
                "--storage.tsdb.path=data",
                "--log.level=warn",
                &format!("--web.listen-address=127.0.0.1:{port}"),
            ]);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
            let server = command.spawn();
            let server = server.unwrap_or_else(|error| panic!("{}", missing("prometheus", &error)));
            let watchdog = Watchdog::over(&server, dir.path());
            let mut started = Self { port, server, watchdog, dir };
            if started.is_ready() {
                return started;
            }
        }
        panic!("prometheus found its port taken fifty times")
    }

    /// What its API says to a question: `query`, with the parameters of the question.
    pub(crate) fn api(&self, path: &str, parameters: &[(&str, &str)]) -> Result<Value, String> {
        let mut encoded = url::form_urlencoded::Serializer::new(String::new());
        encoded.extend_pairs(parameters);
        let (_, text) = get(self.port, &format!("/api/v1/{path}?{}", encoded.finish()))?;
        let answer: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        if answer["status"] == "success" { Ok(answer["data"].clone()) } else { Err(text) }
    }

    /// Waits; false where another process has taken the port.
    fn is_ready(&mut self) -> bool {
        succeeds("prometheus is ready", || {
            if let Some(status) = self.server.try_wait().expect("a child can be waited for") {
                let log = fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
                assert!(log.contains("address already in use"), "it ended with {status}: {log}");
                return Ok(false);
            }
            let (status, text) = get(self.port, "/-/ready")?;
            if status == 200 { Ok(true) } else { Err(text) }
        })
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.server.kill();
        // Before the reaping: until then the id cannot belong to another process.
        self.watchdog.call_off();
        let _ = self.server.wait();
    }
}

/// The status and the body of an answer from a port of 127.0.0.1.
pub(crate) fn get(port: u16, path: &str) -> Result<(u16, String), String> {
    ask(port, &format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n"))
}

/// As [`get`], for any request. As HTTP/1.0, so that no answer comes in chunks.
pub(crate) fn ask(port: u16, request: &str) -> Result<(u16, String), String> {
    let answer = || {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    let answer = answer().map_err(|error: std::io::Error| error.to_string())?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(|| format!("no HTTP: {answer}"))?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Ok((status.ok_or_else(|| format!("no status: {head}"))?, body.to_owned()))
}
