//! `quorate try`: three servers on this machine, to try locks with.
//!
//! They are one process group, which a [`Watcher`] kills if this process is killed.

use std::{
    env,
    fs::{self, File},
    io::{self, ErrorKind},
    net::{Ipv4Addr, TcpListener},
    ops::RangeInclusive,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};
use tokio::time;

use crate::{
    clock,
    console::{Code, Console, Failure},
    process::{INTERRUPTS, PrivateFolder, Signals},
    run::{WaitingCommand, Watcher},
    screen::{self, Frame, Tone},
};

const COUNT: usize = 3;

const PROGRAMS: [&str; 2] = ["redis-server", "valkey-server"];

// Below the ports that systems give to the near end of a connection. There, a client that tries to
// reach a dead server can connect to itself.
const PORTS: RangeInclusive<u16> = 7001..=7999;

// The lines of `deploy/redis.conf` that locks rely on. The file itself is no part of the crate, so
// `its_servers_are_set_up_as_redis_conf_says` compares them.
const SETTINGS: [[&str; 2]; 7] = [
    ["--bind", "127.0.0.1"],
    ["--maxmemory", "256mb"],
    ["--maxmemory-policy", "noeviction"],
    ["--appendonly", "yes"],
    ["--appendfsync", "always"],
    ["--no-appendfsync-on-rewrite", "no"],
    ["--save", ""],
];

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(10);

/// The file of a server's log, in the folder of the server.
const LOG: &str = "log";
/// A server logs this when it listens.
const READY: &str = "Ready to accept connections";

/// The file of the users, in the folder of all servers.
// In files of a private folder: others can read command lines in the list of processes.
const USERS: &str = "users.acl";
const PASSWORD: &str = "password";

// The rights of clients in `deploy/users.acl`, and `scan` for `quorate status`. No more than that:
// when the user kills a server, as step 2 suggests, another program can listen on its port and hear
// the password (`another_user_of_the_machine_can_do_nothing_with_its_servers`).
const RIGHTS: &str = "resetkeys resetchannels ~quorate:{* &quorate:{* &quorate:calls:* -@all \
    +hello +client|id +select +ping +info +config|get +eval +evalsha +subscribe +unsubscribe +get \
    +set +hset +hget +hgetall +hdel +hexists +pttl +pexpire +pexpireat +exists +del +publish +time \
    +zadd +zrem +zscore +zrank +zcard +zcount +zrange +zrangebyscore +scan";

pub(crate) async fn run(console: &Console) -> Result<Code, Failure> {
    // Before the servers: a Ctrl-C while they start must not leave some behind.
    let mut interrupts = Signals::listen(&INTERRUPTS)?;
    tokio::select! {
        _ = interrupts.next() => Ok(Code::Fine),
        ended = serve(console) => ended,
    }
}

/// Runs the servers until all have ended, which is a failure. Dropping the future ends them.
async fn serve(console: &Console) -> Result<Code, Failure> {
    let mut ended = Signals::listen(&[Signal::SIGCHLD])?;
    let mut servers = Servers::start(installed()?).await?;
    screen::print_bytes(servers.introduction(screen::width()).as_bytes())?;
    while !servers.running.is_empty() {
        ended.next().await;
        servers.look(console);
    }
    Err(Failure::new(Code::Unavailable, "all servers have ended"))
}

/// The first program that is installed.
fn installed() -> Result<&'static str, Failure> {
    for program in PROGRAMS {
        match Command::new(program).arg("--version").stdout(Stdio::null()).status() {
            Ok(_) => return Ok(program),
            Err(cause) if cause.kind() == ErrorKind::NotFound => {}
            Err(cause) => {
                return Err(Failure::new(Code::NotExecutable, format!("{program}: {cause}")));
            }
        }
    }
    let what = format!("neither `{}` nor `{}` was found in PATH", PROGRAMS[0], PROGRAMS[1]);
    let mend = "install one of them: apt-get install redis-server, dnf install valkey, \
                apk add valkey, pacman -S valkey or brew install valkey";
    Err(Failure { causes: vec![mend.to_owned()], ..Failure::new(Code::NotFound, what) })
}

struct Server {
    port: u16,
    process: Child,
}

impl Server {
    fn spawn(program: &str, port: u16, all: &Path, group: Pid) -> io::Result<Self> {
        let folder = all.join(port.to_string());
        fs::create_dir(&folder)?;
        let log = File::create(folder.join(LOG))?;
        let process = Command::new(program)
            .args(SETTINGS.as_flattened())
            .args(["--port", &port.to_string(), "--dir"])
            .arg(folder)
            .arg("--aclfile")
            .arg(all.join(USERS))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            // From its first moment, so that no server is left if this process is killed right now.
            .process_group(group.as_raw())
            .spawn()?;
        Ok(Self { port, process })
    }
}

/// The servers. Their processes and their data end with the value.
struct Servers {
    running: Vec<Server>,
    /// Leads the process group of the servers.
    // A group needs a process, and the watcher has to know the group before there is a server. This
    // one waits at its gate for ever, and ends with this process.
    leader: WaitingCommand,
    watcher: Watcher,
    folder: PrivateFolder,
}

impl Servers {
    async fn start(program: &str) -> Result<Self, Failure> {
        let folder =
            PrivateFolder::create(&env::temp_dir()).map_err(Failure::system("a folder"))?;
        let mut watcher =
            Watcher::start(Some(folder.path()), None).map_err(Failure::system("the watcher"))?;
        let leader =
            WaitingCommand::start(&["true".into()]).map_err(Failure::system("the group"))?;
        watcher.watch(leader.group()).map_err(Failure::system("the watcher"))?;
        let password = format!("{:032x}", rand::random::<u128>());
        let users = format!(
            "user default off sanitize-payload ~* &* +@all\nuser quorate on >{password} {RIGHTS}\n"
        );
        for (name, text) in [(USERS, users), (PASSWORD, password)] {
            let written = fs::write(folder.path().join(name), text);
            written.map_err(Failure::system("the password"))?;
        }
        let mut servers = Self { running: Vec::new(), leader, watcher, folder };
        let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
        let mut ports = PORTS.filter(is_free);
        while servers.running.len() < COUNT {
            let Some(port) = ports.next() else {
                let what = format!("of the ports {PORTS:?} fewer than {COUNT} are free");
                return Err(Failure::new(Code::System, what));
            };
            servers.start_one(program, port).await?;
        }
        Ok(servers)
    }

    /// Starts a server, unless another process has taken the port by now.
    async fn start_one(&mut self, program: &str, port: u16) -> Result<(), Failure> {
        let folder = self.folder.path();
        let server = Server::spawn(program, port, folder, self.leader.group());
        let mut server = server.map_err(Failure::system(PROGRAMS[0]))?;
        let until = clock::now() + PATIENCE;
        loop {
            // Asked before the log is read: a server that ends in between has written its last
            // line.
            let has_ended = !matches!(server.process.try_wait(), Ok(None));
            let log = folder.join(port.to_string()).join(LOG);
            let log = fs::read_to_string(log).unwrap_or_default();
            if log.contains(READY) {
                break;
            }
            if has_ended || clock::now() >= until {
                if log.contains("already in use") {
                    return Ok(());
                }
                let last = log.lines().last().unwrap_or("it does not answer");
                return Err(Failure::new(Code::Unavailable, format!("`{program}`: {last}")));
            }
            time::sleep(PAUSE).await;
        }
        self.running.push(server);
        Ok(())
    }

    fn introduction(&self, width: Option<usize>) -> String {
        let ports: Vec<_> = self.running.iter().map(|server| server.port.to_string()).collect();
        let urls: Vec<_> = ports.iter().map(|port| format!("redis://127.0.0.1:{port}")).collect();
        let (voters, ports) = (urls.join("\n  "), ports.join(", "));
        let ids: Vec<_> = self.running.iter().map(|server| server.process.id()).collect();
        let (two, last) = (format!("{} {}", ids[0], ids[1]), ids[2]);
        let password = self.folder.path().join(PASSWORD).display().to_string();
        let password = password.replace('\'', r"'\''");
        let text = format!(
            "\
Three servers listen to 127.0.0.1 (ports {ports}) until Ctrl-C.
In another terminal:

export QUORATE_VOTERS='
  {voters}'
export QUORATE_USER=quorate
export QUORATE_PASSWORD_FILE='{password}'

1. Hold a lock while a command runs. With the same exports, a third one waits.
   quorate run demo -- sh -c 'while sleep 1; do date; done'
2. Kill a server meanwhile. The command goes on, and new locks are granted.
   kill -9 {last}
3. Stop the other two: the command is ended within 20 s. Then continue them.
   kill -STOP {two}
   kill -CONT {two}
4. See which servers answer, and who holds a lock.
   quorate status
5. Lead an election while a command runs. This command asks who leads.
   quorate lead scheduler --value \"$(hostname)\" -- quorate leader scheduler
"
        );
        let mut frame = Frame::default();
        for line in text.lines() {
            // Lines to copy are not broken: a shell would run the halves.
            if line.starts_with("export ") || line.starts_with(' ') {
                frame.line(Tone::Plain, line);
            } else {
                let is_step = line.starts_with(|sign: char| sign.is_ascii_digit());
                let (head, text) = line.split_at(if is_step { 3 } else { 0 });
                frame.wrapped(Tone::Plain, head, text, width);
            }
        }
        frame.shown(false)
    }

    /// Warns of servers that have ended.
    fn look(&mut self, console: &Console) {
        let has_ended = |server: &mut Server| matches!(server.process.try_wait(), Ok(Some(_)));
        let ended: Vec<_> = self.running.extract_if(.., has_ended).collect();
        let left = self.running.len();
        let means = if left > COUNT / 2 { "a majority" } else { "too few: no lock is granted" };
        for Server { port, process } in ended {
            let id = process.id();
            console.warn(format_args!(
                "127.0.0.1:{port} ({id}) has ended; {left} of {COUNT} left, {means}"
            ));
        }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        let _ = killpg(self.leader.group(), Signal::SIGKILL);
        for server in &mut self.running {
            let _ = server.process.wait();
        }
        // The servers are gone, and the folder goes with this value.
        self.watcher.kill();
    }
}
