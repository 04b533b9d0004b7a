//! Real `redis-server` processes that never outlive the test that started them.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::install::install_line;
use super::is_fingerprint;
use super::ports::free_port;
use super::process::{self, Signal};
use super::resp::{Reply, talk};
use super::settings::Settings;
use super::wait::succeeds;
use super::watchdog::Watchdog;

const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(5);
const COMMAND_LIMIT: Duration = Duration::from_secs(5);

/// A `redis-server` on a port of 127.0.0.1 with a private directory; killed when dropped.
#[derive(Debug)]
pub struct RedisServer {
    running: Option<Running>,
    port: u16,
    settings: Settings,
    // Dropped last: the server dies before its directory.
    dir: TempDir,
}

#[derive(Debug)]
struct Running {
    server: Child,
    watchdog: Watchdog,
    stopped: AtomicBool,
}

/// Of a server's log, shown where its test fails.
const LAST_LINES: usize = 6;

impl Drop for RedisServer {
    /// A test that fails says what its servers said last.
    fn drop(&mut self) {
        if !thread::panicking() {
            return;
        }
        let log = fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n    ");
        eprintln!("the server at 127.0.0.1:{} said last:\n    {last}", self.port);
    }
}

impl RedisServer {
    /// Starts a server that keeps nothing on disk and waits until it answers.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// As [`start`](Self::start) with further flags, which win over the usual ones.
    ///
    /// `{port}` and `{dir}` in a flag stand for the server's port and its private directory:
    /// `&["--port", "0", "--tls-port", "{port}"]`.
    pub fn start_with(flags: &[&str]) -> Self {
        Self::start_as(&Settings::new().flags(flags))
    }

    /// As [`start`](Self::start) with these settings.
    pub fn start_as(settings: &Settings) -> Self {
        for _ in 0..50 {
            let dir = tempfile::Builder::new().prefix("quorate-").tempdir().expect("a temp dir");
            settings.write_files(dir.path());
            let port = free_port();
            match Running::start(port, settings, dir.path()) {
                Ok(running) => {
                    return Self { running: Some(running), port, settings: settings.clone(), dir };
                }
                Err(NotStarted::PortTaken) => {}
                Err(NotStarted::Died(log)) => panic!("redis-server did not start: {log}"),
            }
        }
        panic!("redis-server found its port taken fifty times")
    }

    /// As [`start_as`](Self::start_as), so many at once.
    pub fn start_many(settings: &Settings, count: usize) -> Vec<Self> {
        thread::scope(|scope| {
            let starting: Vec<_> =
                (0..count).map(|_| scope.spawn(|| Self::start_as(settings))).collect();
            starting.into_iter().map(|start| start.join().expect("it starts")).collect()
        })
    }

    /// Starts a replica of this server, with the same settings; returns when it has the data.
    #[must_use]
    pub fn start_replica(&self) -> Self {
        let port = self.port.to_string();
        let flags = ["--replicaof", "127.0.0.1", &port];
        let replica = Self::start_as(&self.settings.clone().flags(&flags));
        succeeds("the replica has the data", || replica.is_linked_to(self));
        replica
    }

    /// Why it is not yet a replica with all data of this primary, which counts it for `WAIT`.
    pub fn is_linked_to(&self, primary: &Self) -> Result<(), String> {
        let info = |name: &str| self.info(&["INFO", "replication"], name);
        let link = (info("master_port")?, info("master_link_status")?);
        if link != (primary.port.to_string(), "up".to_owned()) {
            return Err(format!("{} is linked to {link:?}", self.port));
        }
        // WAIT counts a replica only from its first acknowledgement on. The offset is zero until
        // then, and stays so until the primary has something to tell: a ping each second.
        let text = primary.command(&["INFO", "replication"])?.text();
        let own = format!("port={},state=online,offset=", self.port);
        let acknowledged = text.lines().filter(|line| line.contains(&own));
        let counts = acknowledged.filter(|line| !line.contains("offset=0,")).count() == 1;
        counts.then_some(()).ok_or_else(|| format!("{} is not acknowledged: {text}", self.port))
    }

    /// The port; the same after [`restart`](Self::restart).
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `redis://127.0.0.1:PORT`, or `rediss://localhost:PORT` where it speaks TLS.
    pub fn url(&self) -> String {
        format!("{}:{}", self.settings.scheme_and_host(""), self.port)
    }

    /// As [`url`](Self::url), with a name and a password.
    pub fn url_as(&self, user: &str, password: &str) -> String {
        let login = format!("{user}:{password}@");
        format!("{}:{}", self.settings.scheme_and_host(&login), self.port)
    }

    /// The Unix socket that it listens on too, in its private directory.
    pub fn socket(&self) -> PathBuf {
        socket(self.dir())
    }

    /// `redis+unix://PATH`, of that socket.
    pub fn socket_url(&self) -> String {
        format!("redis+unix://{}", self.socket().display())
    }

    /// The private directory, where the server's files are.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The process id of the server itself. Panics while it is killed.
    pub fn pid(&self) -> u32 {
        self.running().server.id()
    }

    /// Ends the server with SIGKILL and reaps it; nothing to do where it is dead already.
    pub fn kill(&mut self) {
        self.running = None;
    }

    /// Starts the server again, on the same port, directory and flags, killing it first if needed.
    pub fn restart(&mut self) {
        self.kill();
        for _ in 0..200 {
            match Running::start(self.port, &self.settings, self.dir.path()) {
                Ok(running) => {
                    self.running = Some(running);
                    return;
                }
                Err(NotStarted::PortTaken) => thread::sleep(10 * PAUSE),
                Err(NotStarted::Died(log)) => panic!("redis-server did not restart: {log}"),
            }
        }
        panic!("port {} was not free again for a restart", self.port);
    }

    /// As [`restart`](Self::restart), without any data, also where the flags keep it on disk. What
    /// a node of a cluster knows about its cluster stays.
    pub fn restart_empty(&mut self) {
        self.kill();
        let _ = fs::remove_file(self.dir().join("dump.rdb"));
        let _ = fs::remove_dir_all(self.dir().join("appendonlydir"));
        // That of servers older than 7.0.
        let _ = fs::remove_file(self.dir().join("appendonly.aof"));
        self.restart();
    }

    /// Where the file is to which it writes each change: in a folder of its own since 7.0.
    fn folder_of_changes(&self) -> PathBuf {
        let folder = self.dir().join("appendonlydir");
        if folder.exists() { folder } else { self.dir().to_owned() }
    }

    /// The parts of the file to which it writes each change.
    fn changes(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.folder_of_changes()).expect("it can be read");
        let paths = files.map(|file| file.expect("it can be read").path());
        let begins = |name: &OsStr| name.to_string_lossy().starts_with("appendonly");
        let is_part = |path: &PathBuf| path.is_file() && path.file_name().is_some_and(begins);
        paths.filter(is_part).collect()
    }

    /// Keeps a copy of the file to which it writes each change, in place of one from before.
    pub fn copy_file(&self) {
        let copy = self.dir().join("copy");
        let _ = fs::remove_dir_all(&copy);
        fs::create_dir(&copy).expect("there is room");
        for file in self.changes() {
            let name = file.file_name().expect("a file has a name");
            fs::copy(&file, copy.join(name)).expect("it can be copied");
        }
    }

    /// As [`restart`](Self::restart), with the [copy](Self::copy_file) in the file's place.
    pub fn restart_from_copy(&mut self) {
        self.restart_from(&self.dir().join("copy"));
    }

    /// As [`restart`](Self::restart), with a copy of the file of another in the file's place.
    pub fn restart_with_copy_of(&mut self, other: &Self) {
        other.copy_file();
        self.restart_from(&other.dir().join("copy"));
    }

    fn restart_from(&mut self, copy: &Path) {
        self.kill();
        let folder = self.folder_of_changes();
        for file in self.changes() {
            fs::remove_file(file).expect("it is there");
        }
        for file in fs::read_dir(copy).expect("there is a copy") {
            let file = file.expect("it can be read");
            fs::rename(file.path(), folder.join(file.file_name())).expect("it can be moved");
        }
        self.restart();
    }

    /// Whether it runs and is not [stopped](Self::stop).
    pub fn is_live(&self) -> bool {
        self.running.as_ref().is_some_and(|running| !running.stopped.load(Ordering::Relaxed))
    }

    /// Stops the process with SIGSTOP: connections stay open and nothing answers. Returns once it
    /// stands still.
    pub fn stop(&self) {
        process::stop(&self.running().server);
        self.running().stopped.store(true, Ordering::Relaxed);
    }

    /// Lets a stopped process go on (SIGCONT).
    pub fn resume(&self) {
        let server = &self.running().server;
        process::signal(server, Signal::CONT).expect("a child can be resumed");
        self.running().stopped.store(false, Ordering::Relaxed);
    }

    /// Runs one command on a connection of its own, past any proxy and without TLS. Blocks; an
    /// error reply, and no reply within five seconds, are `Err`.
    pub fn command(&self, words: &[&str]) -> Result<Reply, String> {
        self.commands(&[words])?.pop().expect("a reply for each command")
    }

    /// Runs commands one after the other on one connection, as [`command`](Self::command) does;
    /// the outer error is the connection's. `ASKING` goes before another command this way.
    pub fn commands(&self, list: &[&[&str]]) -> Result<Vec<Result<Reply, String>>, String> {
        let login = self.settings.login();
        let all: Vec<&[&str]> =
            login.iter().map(|words| &words[..]).chain(list.iter().copied()).collect();
        let mut replies = self.anonymous(&all)?;
        Ok(replies.split_off(all.len() - list.len()))
    }

    /// As [`commands`](Self::commands), without the test's own login.
    pub fn anonymous(&self, list: &[&[&str]]) -> Result<Vec<Result<Reply, String>>, String> {
        talk(&self.socket(), list, COMMAND_LIMIT)
    }

    /// The value of one line of `INFO` or `CLUSTER INFO`, by its name.
    pub fn info(&self, command: &[&str], name: &str) -> Result<String, String> {
        let text = self.command(command)?.text();
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        let found = lines.find(|(found, _)| *found == name);
        found.map(|(_, value)| value.to_owned()).ok_or_else(|| format!("no {name} in {text}"))
    }

    /// For how long the process has run, in whole seconds.
    pub fn uptime(&self) -> Duration {
        let seconds = self.info(&["INFO", "server"], "uptime_in_seconds").expect("it tells");
        Duration::from_secs(seconds.parse().expect("a number"))
    }

    /// Has its fingerprint say that clients have known its data for so long. One that has no
    /// fingerprint gets that of a server outside of a cluster.
    ///
    /// # Panics
    ///
    /// If it does not answer.
    pub fn set_age(&self, age: Duration) {
        let mut fingerprints: Vec<_> =
            self.keys().into_iter().filter(|key| is_fingerprint(key)).collect();
        if fingerprints.is_empty() {
            fingerprints.push("quorate:{%voter}".to_owned());
        }
        let run_id = self.info(&["INFO", "server"], "run_id").expect("it tells");
        for key in fingerprints {
            let known = match self.command(&["GET", &key]).expect("it can be read") {
                Reply::Text(fingerprint) => fingerprint,
                _ => format!("{run_id} {run_id}/ 0 0 0 0"),
            };
            let part = |at: usize| known.split(' ').nth(at).expect("six parts");
            let (name, life, durable) = (part(0), part(1), part(4));
            // By its own clock, as a client's look would.
            let text = format!(
                "local now = redis.call('TIME')[1] .. '000'
                redis.call('SET', KEYS[1], '{name} {life} {0} ' .. now .. ' {durable} {0}',
                    'PX', 3600000)",
                age.as_millis()
            );
            self.command(&["EVAL", &text, "1", &key]).expect("it can be written");
        }
    }

    /// Serves no replica any more, and none gets what is written from now on.
    pub fn cut_off_replicas(&self) {
        let commands = ["-psync", "-sync", "-replconf"];
        let rules = [&["ACL", "SETUSER", "default"][..], &commands].concat();
        self.command(&rules).expect("the user is set");
        self.command(&["CLIENT", "KILL", "TYPE", "replica"]).expect("they are cut off");
    }

    /// How often a command was called. Servers older than 7.0 count the parts of a command as one.
    pub fn calls(&self, command: &str) -> u64 {
        let stats = self.command(&["INFO", "commandstats"]).expect("it answers").text();
        let calls = |command: &str| {
            let prefix = format!("cmdstat_{command}:calls=");
            let line = stats.lines().find_map(|line| line.strip_prefix(&prefix))?;
            line.split(',').next()?.parse().ok()
        };
        let whole = command.split('|').next().and_then(calls);
        calls(command).or(whole).unwrap_or(0)
    }

    /// All key names, sorted.
    pub fn keys(&self) -> Vec<String> {
        let mut names = self.command(&["KEYS", "*"]).expect("KEYS is answered").texts();
        names.sort();
        names
    }

    /// Who may do everything, where there are users; for servers that log in to this one.
    pub(super) fn master(&self) -> Option<[&'static str; 2]> {
        self.settings.master()
    }

    fn running(&self) -> &Running {
        self.running.as_ref().expect("the server is running")
    }
}

enum NotStarted {
    PortTaken,
    Died(String),
}

impl Running {
    #[expect(clippy::disallowed_methods, reason = "real servers are waited for in real time")]
    fn start(port: u16, settings: &Settings, dir: &Path) -> Result<Self, NotStarted> {
        let log_path = dir.join("log");
        let socket = socket(dir);
        let _ = fs::remove_file(&socket);
        let server = spawn(port, settings, dir, &log_path);
        let watchdog = Watchdog::over(&server, dir);
        // From here on every way out kills the server.
        let mut running = Self { server, watchdog, stopped: AtomicBool::new(false) };
        let started = Instant::now();
        // The socket lies in our own directory, and is opened after the port was bound: an answer
        // comes from this server and no other that holds the same port.
        while !is_awake(&socket) {
            let ended = running.server.try_wait().expect("a child can be waited for").is_some();
            if ended || started.elapsed() > PATIENCE {
                let log = fs::read_to_string(&log_path).unwrap_or_default();
                let taken = log.contains("already in use");
                return Err(if taken { NotStarted::PortTaken } else { NotStarted::Died(log) });
            }
            thread::sleep(PAUSE);
        }
        Ok(running)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.server.kill();
        // Before the reaping: until then the id cannot belong to another process.
        self.watchdog.call_off();
        let _ = self.server.wait();
    }
}

/// A server that wants a password is awake although it tells us nothing.
fn is_awake(socket: &Path) -> bool {
    match talk(socket, &[&["PING"]], COMMAND_LIMIT).as_deref() {
        Ok([Err(cause)]) => cause.starts_with("NOAUTH"),
        answer => answer.is_ok(),
    }
}

fn socket(dir: &Path) -> PathBuf {
    dir.join("socket")
}

/// Whether the servers are older than Redis 7.0: they have no channels with slots, and no rights to
/// them.
pub fn are_before_7() -> bool {
    static VERSION: OnceLock<String> = OnceLock::new();
    let version = VERSION.get_or_init(|| {
        let told = Command::new(program()).arg("--version").output().expect("it starts");
        String::from_utf8_lossy(&told.stdout).into_owned()
    });
    version.contains(" v=6.")
}

/// `redis-server`, or what the environment names: another version, or Valkey.
fn program() -> PathBuf {
    env::var_os("QUORATE_TEST_SERVER").unwrap_or_else(|| "redis-server".into()).into()
}

fn spawn(port: u16, settings: &Settings, dir: &Path, log_path: &Path) -> Child {
    let port_text = port.to_string();
    let dir_text = dir.to_str().expect("the temp dir's name is text");
    let log = File::create(log_path).expect("a log file in the temp dir");
    let program = settings.own_program().unwrap_or_else(program);
    let started = Command::new(&program)
        .envs(settings.variables_for(dir_text))
        .args(settings.config_file(dir))
        .args(["--port", &port_text, "--bind", "127.0.0.1", "--dir", dir_text])
        .args(["--daemonize", "no", "--save", "", "--appendonly", "no"])
        .args(["--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"])
        .args(["--rdb-del-sync-files", "yes"])
        .arg("--unixsocket")
        .arg(socket(dir))
        .args(settings.flags_for(port, dir_text))
        .stdin(Stdio::null())
        .stderr(log.try_clone().expect("a second handle of the log"))
        .stdout(log)
        .spawn();
    match started {
        Ok(child) => child,
        Err(cause) if cause.kind() == ErrorKind::NotFound => {
            let line = install_line(["redis-server", "redis", "redis", "redis", "redis"]);
            panic!("{} not found; install redis-server: {line}", program.display())
        }
        Err(cause) => panic!("redis-server could not be started: {cause}"),
    }
}
