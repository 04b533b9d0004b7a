//! Members of etcd on ports of 127.0.0.1, which write to disk before they answer.

use std::{
    fs::File,
    path::Path,
    process::{Child, Command},
    time::Duration,
};

use quorate_peers::usage::used_by_process;
use quorate_support::{Watchdog, free_port};
use tempfile::TempDir;

/// A cluster; killed when dropped.
#[derive(Debug)]
pub(crate) struct Members(Vec<Member>);

#[derive(Debug)]
struct Member {
    process: Child,
    watchdog: Watchdog,
    url: String,
    // Dropped last: the process dies before its directory.
    _dir: TempDir,
}

impl Members {
    /// Starts them. Clients wait until they answer.
    pub(crate) fn start(program: &Path, count: usize) -> Self {
        let ports: Vec<[u16; 2]> = (0..count).map(|_| [free_port(), free_port()]).collect();
        let named = ports.iter().enumerate().map(|(at, [_, peer])| format!("m{at}={}", url(*peer)));
        let all = named.collect::<Vec<_>>().join(",");
        let start = |(at, ports)| Member::start(program, at, ports, &all);
        Self(ports.into_iter().enumerate().map(start).collect())
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        self.0.iter().map(|member| member.url.clone()).collect()
    }

    /// The processor time of all members so far.
    pub(crate) fn used(&self) -> Duration {
        self.0.iter().map(|member| used_by_process(member.process.id())).sum()
    }
}

fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

impl Member {
    fn start(program: &Path, at: usize, [client, peer]: [u16; 2], all: &str) -> Self {
        let dir = tempfile::Builder::new().prefix("quorate-etcd-").tempdir().expect("a temp dir");
        let log = File::create(dir.path().join("log")).expect("a log file in the temp dir");
        let (client, peer) = (url(client), url(peer));
        let process = Command::new(program)
            .args(["--name", &format!("m{at}"), "--initial-cluster", all])
            .arg("--data-dir")
            .arg(dir.path().join("data"))
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--logger", "zap", "--log-level", "error"])
            .stdout(log.try_clone().expect("it can be shared"))
            .stderr(log)
            .spawn()
            .expect("it was found");
        let watchdog = Watchdog::over(&process, dir.path());
        Self { process, watchdog, url: client, _dir: dir }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.process.kill();
        // Before the reaping: until then the id cannot belong to another process.
        self.watchdog.call_off();
        let _ = self.process.wait();
    }
}
