//! A PostgreSQL server that never outlives the test that started it.

use std::{
    env,
    fs::{self, File},
    os::unix::{fs::chown, process::CommandExt},
    path::Path,
    process::{Command, Stdio},
};

use rustix::process::{Signal, geteuid};

use quorate_support::{Watched, install_line, succeeds};

/// The server refuses to run as root: it runs as `nobody` then.
const NOBODY: u32 = 65534;

/// In a private folder, and reached by a socket in it.
pub(crate) struct PostgresServer(Watched);

impl PostgresServer {
    pub(crate) fn start() -> Self {
        let dir = tempfile::Builder::new().prefix("quorate-").tempdir().expect("a temp dir");
        if geteuid().is_root() {
            chown(dir.path(), Some(NOBODY), Some(NOBODY)).expect("root may give it away");
        }
        let data = dir.path().join("data");
        let mut initdb = program("initdb");
        initdb.args(["--no-sync", "--auth=trust", "--username=quorate", "--encoding=UTF8"]);
        let made = initdb.args(["--locale=C", "--pgdata"]).arg(&data).output();
        let line = install_line([
            "postgresql",
            "postgresql-server",
            "postgresql",
            "postgresql",
            "postgresql",
        ]);
        let made = made.unwrap_or_else(|error| panic!("initdb: {error}; install it: {line}"));
        assert!(made.status.success(), "{made:?}");
        let log = File::create(dir.path().join("log")).expect("a log file in the temp dir");
        let mut server = program("postgres");
        server.arg("-D").arg(data).arg("-k").arg(dir.path());
        server.args(["-h", "", "-c", "fsync=off", "-c", "max_connections=20"]);
        server.stdin(Stdio::null()).stdout(log.try_clone().expect("a second handle")).stderr(log);
        // At once, not in the midst of its own processes: QUIT ends them all.
        let started = Watched::start(&mut server, Signal::QUIT, dir);
        let started = Self(started.expect("it was there a moment ago"));
        succeeds("the database answers", || {
            let answer = started.psql().args(["--command", "SELECT 1"]).output().expect("it runs");
            let log = || fs::read_to_string(started.0.dir.path().join("log")).unwrap_or_default();
            if answer.status.success() { Ok(()) } else { Err(log()) }
        });
        started
    }

    /// It shows how many rows a statement changed, and rows without ornament.
    pub(crate) fn psql(&self) -> Command {
        let mut psql = program("psql");
        psql.args(["--no-psqlrc", "--no-align", "--tuples-only", "--username=quorate", "--host"]);
        psql.arg(self.0.dir.path()).args(["--dbname", "postgres"]);
        psql
    }
}

/// One of the programs, run as somebody whom the server accepts. Debian keeps those of the server
/// in a folder of their own, one for each version.
fn program(name: &str) -> Command {
    let path = env::var_os("PATH").unwrap_or_default();
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<_> = versions.map(|version| version.path().join("bin")).collect();
    versions.sort();
    let folders = env::split_paths(&path).chain(versions.into_iter().rev());
    let mut programs = folders.map(|folder| folder.join(name));
    let mut command = Command::new(
        programs.find(|program| Path::is_file(program)).unwrap_or_else(|| name.into()),
    );
    // The folder that the test runs in may be closed to others.
    command.current_dir("/");
    if geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}
