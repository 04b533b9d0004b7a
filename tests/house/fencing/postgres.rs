//! A PostgreSQL server that never outlives the test that started it.

use std::{
    env,
    fs::{self, File},
    io::ErrorKind,
    os::unix::{fs::chown, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;

use crate::fencing::session::Session;
use quorate_support::{Watchdog, eventually, install_line};

/// The server refuses to run as root: it runs as `nobody` then.
const NOBODY: u32 = 65534;
const USER: &str = "quorate";

/// In a private folder, and reached by a socket in it; ended when dropped.
pub(crate) struct PostgresServer {
    server: Child,
    watchdog: Watchdog,
    // Dropped last: the server ends before its folder.
    dir: TempDir,
}

impl PostgresServer {
    pub(crate) fn start() -> Self {
        let dir = tempfile::Builder::new().prefix("quorate-").tempdir().expect("a temp dir");
        if geteuid().is_root() {
            chown(dir.path(), Some(NOBODY), Some(NOBODY)).expect("root may give it away");
        }
        let mut initdb = program("initdb");
        initdb.args(["--no-sync", "--auth", "trust", "--username", USER, "--encoding", "UTF8"]);
        succeed(initdb.args(["--locale", "C", "--pgdata"]).arg(dir.path().join("data")));
        let log = File::create(dir.path().join("log")).expect("a log file in the temp dir");
        let mut server = program("postgres");
        server.arg("-D").arg(dir.path().join("data")).arg("-k").arg(dir.path());
        server.args(["-h", "", "-c", "fsync=off", "-c", "max_connections=20"]);
        server.stdin(Stdio::null()).stdout(log.try_clone().expect("a second handle")).stderr(log);
        let server = server.spawn().expect("it was there a moment ago");
        // At once, not in the midst of its own processes: QUIT ends them all.
        let watchdog = Watchdog::with_signal("QUIT", &server, dir.path());
        let mut started = Self { server, watchdog, dir };
        eventually("the database answers", || started.answers());
        started
    }

    pub(crate) fn connect(&self) -> Session {
        // It shows how many rows a statement changed, and rows without ornament.
        let mut psql = program("psql");
        psql.args(["--no-psqlrc", "--no-align", "--tuples-only", "--username", USER]);
        psql.arg("--host").arg(self.dir.path()).arg("postgres");
        Session::start(&psql, r"\echo", &missing())
    }

    fn answers(&mut self) -> bool {
        if let Some(status) = self.server.try_wait().expect("a child can be waited for") {
            let log = fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
            panic!("postgres ended with {status}: {log}");
        }
        let mut psql = program("psql");
        psql.args(["--no-psqlrc", "--username", USER, "--command", "SELECT 1", "--host"]);
        output(psql.arg(self.dir.path()).arg("postgres")).status.success()
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.server), Signal::QUIT);
        // Before the reaping: until then the id cannot belong to another process.
        self.watchdog.call_off();
        let _ = self.server.wait();
    }
}

/// One of the programs, run as somebody whom the server accepts.
fn program(name: &str) -> Command {
    let mut command = Command::new(find(name).unwrap_or_else(|| name.into()));
    // The folder that the test runs in may be closed to others.
    command.current_dir("/");
    if geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

/// Debian keeps those of the server in a folder of their own, one for each version.
fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<_> = versions.map(|version| version.path().join("bin")).collect();
    versions.sort();
    let folders = env::split_paths(&path).chain(versions.into_iter().rev());
    folders.map(|folder| folder.join(name)).find(|program| Path::is_file(program))
}

fn missing() -> String {
    install_line(["postgresql", "postgresql-server", "postgresql", "postgresql", "postgresql"])
}

fn output(command: &mut Command) -> Output {
    match command.stdin(Stdio::null()).output() {
        Ok(output) => output,
        Err(cause) if cause.kind() == ErrorKind::NotFound => {
            let name = command.get_program().display();
            panic!("{name} not found; install it: {}", missing())
        }
        Err(cause) => panic!("{command:?} could not be started: {cause}"),
    }
}

fn succeed(command: &mut Command) {
    let output = output(command);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {told}");
}
