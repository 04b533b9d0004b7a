//! `quorate try`: what it says can be done as it stands there, and no server outlives it.

use std::{
    env,
    fs::{self, Permissions},
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use quorate_support::{eventually, read_file};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::{
    processes::{children, is_alive},
    program::{Running, output, quorate, with_environment_of},
    screen::Screen,
    status::json,
};

/// The program, with what it printed.
struct Tried {
    running: Running,
    /// What a shell in another terminal is to have.
    export: String,
    commands: Vec<String>,
    processes: Vec<u32>,
    dir: TempDir,
}

impl Tried {
    fn start() -> Self {
        let dir = tempfile::tempdir().expect("a temp dir");
        let mut quorate = quorate(["try"]);
        symlink(quorate.get_program(), dir.path().join("quorate")).expect("a folder of ours");
        fs::create_dir(dir.path().join("tmp")).expect("a folder of ours");
        let running = Running::start_soon(quorate.env("TMPDIR", dir.path().join("tmp")));
        let (mut export, mut commands) = (String::new(), Vec::new());
        while commands.len() < 6 {
            let line = running.says();
            let is_open = export.matches('\'').count() % 2 == 1;
            if line.starts_with("export ") || is_open {
                export = format!("{export}{line}\n");
            } else if let Some(command) = line.strip_prefix("   ") {
                commands.push(command.to_owned());
            }
        }
        // The watcher, who leads the group, and three servers.
        let processes = children(running.id());
        assert_eq!(processes.len(), 5);
        Self { running, export, commands, processes, dir }
    }

    /// This line in another terminal.
    fn shell(&self, line: &str) -> Command {
        let path = env::var("PATH").expect("there is one");
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{}\nexec {line}", self.export)]);
        with_environment_of(&mut shell, &quorate([""; 0]));
        shell.env("PATH", format!("{}:{path}", self.dir.path().display()));
        shell
    }

    fn ports(&self) -> Vec<&str> {
        let urls = self.export.split('\'').nth(1).expect("they are quoted").split_whitespace();
        urls.filter_map(|url| url.strip_prefix("redis://127.0.0.1:")).collect()
    }

    fn data(&self) -> usize {
        fs::read_dir(self.dir.path().join("tmp")).expect("it is there").count()
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "people wait in real time")]
fn two_seconds_after_the_start_a_lock_is_held_by_the_line_that_is_printed() {
    let started = Instant::now();
    let tried = Tried::start();
    let (code, said, errors) = output(&mut tried.shell("quorate run a -- echo held"));
    let took = started.elapsed();
    assert_eq!((code, &*said), (0, "held\n"), "{errors}");
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[test]
fn what_it_says_is_broken_between_words() {
    let folder = tempfile::tempdir().expect("a temp dir");
    for (columns, whole) in
        [(79, "In another terminal:"), (40, "With the same exports, a third one")]
    {
        let mut tried = quorate(["try"]);
        let program = tried.get_program().to_str().expect("it is text").to_owned();
        let line = format!("stty rows 40 cols {columns}; exec {program} try");
        let mut screen = Screen::run(&line, tried.env("TMPDIR", folder.path()));
        screen.shows("quorate leader scheduler");
        screen.press("\x03");
        assert_eq!(screen.end(), Some(0));
        let shown = screen.shown();
        let is_copied = |line: &&str| line.starts_with("export ") || line.starts_with("  ");
        let lines: Vec<_> = shown.lines().filter(|line| !is_copied(line)).collect();
        assert!(lines.iter().all(|line| line.chars().count() <= columns), "{shown}");
        assert!(lines.len() >= 8 && shown.contains(whole), "{shown}");
        // The three addresses that are copied have room, too.
        let urls = shown.lines().filter(|line| line.starts_with("  redis://127.0.0.1:"));
        assert_eq!(urls.filter(|line| line.len() < 40).count(), 3, "{shown}");
    }
}

#[test]
fn a_command_under_a_lock_goes_on_when_a_server_is_killed_as_suggested() {
    let mut tried = Tried::start();
    let [run, kill, _, _, status, lead] = &tried.commands[..] else { unreachable!("six") };
    let mut work = Running::start_soon(&mut tried.shell(run));
    work.says();
    assert!(tried.shell(kill).status().expect("there is a shell").success());
    eventually("two are left", || {
        output(&mut tried.shell(status)).1.starts_with("2 of 3 votes count")
    });
    let (_, said, _) = output(&mut tried.shell(status));
    assert!(said.contains("\ndemo "), "{said}");
    // It says the time each second: from here on it works without the third.
    for _ in 0..3 {
        work.says();
    }
    let (code, _, errors) = output(&mut tried.shell("quorate run b -- true"));
    assert_eq!(code, 0, "{errors}");
    let (code, said, errors) = output(&mut tried.shell(lead));
    assert_eq!((code, said.lines().count()), (0, 1), "{said}{errors}");
    work.signal(Signal::TERM);
    assert_eq!(work.end().0, 143);
    let port = tried.ports()[2].to_owned();
    tried.running.signal(Signal::INT);
    let (code, errors) = tried.running.end();
    assert_eq!(code, 0);
    assert!(errors.starts_with(&format!("quorate: 127.0.0.1:{port} ")), "{errors}");
    assert!(errors.ends_with("has ended; 2 of 3 left, a majority\n"), "{errors}");
}

#[test]
fn without_a_majority_the_command_is_ended_as_suggested() {
    let tried = Tried::start();
    let [run, _, stop, go_on, status, _] = &tried.commands[..] else { unreachable!("six") };
    let short = |line: &str| {
        let mut shell = tried.shell(line);
        shell.env("QUORATE_LEASE", "3s");
        shell
    };
    let mut work = Running::start_soon(&mut short(run));
    work.says();
    assert!(short(stop).status().expect("there is a shell").success());
    let (code, errors) = work.end();
    assert_eq!(code, 76, "{errors}");
    assert!(errors.starts_with("quorate: lock `demo` was lost: "), "{errors}");
    assert!(short(go_on).status().expect("there is a shell").success());
    eventually("all are there", || output(&mut short(status)).1.starts_with("3 of 3 votes count"));
}

#[test]
fn no_server_outlives_it_and_its_data_are_removed() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::KILL] {
        let mut tried = Tried::start();
        assert!(tried.processes.iter().all(|id| is_alive(*id)) && tried.data() == 1);
        tried.running.signal(signal);
        if signal == Signal::KILL {
            tried.running.wait();
            eventually("its watcher ends them", || {
                !tried.processes.iter().any(|id| is_alive(*id)) && tried.data() == 0
            });
        } else {
            assert_eq!(tried.running.end(), (0, String::new()));
            assert_eq!(tried.data(), 0);
            eventually("all have ended", || !tried.processes.iter().any(|id| is_alive(*id)));
        }
    }
}

#[test]
fn it_ends_when_all_servers_have_ended() {
    let mut tried = Tried::start();
    for id in &tried.processes[2..] {
        let id = Pid::from_raw(id.cast_signed()).expect("an id");
        kill_process(id, Signal::KILL).expect("it runs");
    }
    let (code, errors) = tried.running.end();
    assert_eq!(code, 69, "{errors}");
    assert!(errors.ends_with("quorate: all servers have ended\n"), "{errors}");
    assert_eq!(tried.data(), 0);
}

#[test]
fn several_have_servers_of_their_own() {
    let both = [Tried::start(), Tried::start()];
    let [one, other] = both.each_ref().map(Tried::ports);
    assert_eq!([one.len(), other.len()], [3, 3]);
    assert!(one.iter().all(|port| !other.contains(port)), "{one:?} {other:?}");
}

// Nobody without the password, which only this user can read, gets a server to do anything: such as
// to write a file of this user's.
#[test]
fn another_user_of_the_machine_can_do_nothing_with_its_servers() {
    let tried = Tried::start();
    let answer = |port: &str, login: &str, command: &str| {
        let mut server = TcpStream::connect(format!("127.0.0.1:{port}")).expect("it listens");
        write!(server, "{login}{command}\r\n").unwrap();
        server.shutdown(Shutdown::Write).unwrap();
        let mut said = String::new();
        server.read_to_string(&mut said).expect("it answers and closes");
        said.lines().last().expect("it answers").to_owned()
    };
    for port in tried.ports() {
        for command in ["PING", "CONFIG SET dir /tmp", "CONFIG GET dir", "GET a", "FLUSHALL"] {
            let said = answer(port, "", command);
            assert!(said.starts_with("-NOAUTH"), "{command}: {said}");
        }
    }
    let file = tried.export.split('\'').nth(3).expect("it names the file with the password");
    let password = fs::read_to_string(file).expect("it is there");
    let folder = Path::new(file).parent().expect("it is in a folder");
    assert_eq!(fs::metadata(folder).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(password.len() > 16 && !tried.export.contains(&password));
    for id in &tried.processes {
        let line = fs::read_to_string(format!("/proc/{id}/cmdline")).expect("it runs");
        assert!(!line.contains(&password), "{line}");
    }
    // Nor does the password let anybody do more than clients do.
    for port in tried.ports() {
        for command in ["CONFIG SET dir /tmp", "SAVE", "GET a", "FLUSHALL", "SHUTDOWN", "ACL LIST"]
        {
            let said = answer(port, &format!("AUTH quorate {password}\r\n"), command);
            assert!(said.starts_with("-NOPERM"), "{command}: {said}");
        }
    }
}

#[test]
fn its_clients_have_the_rights_of_the_clients_of_a_node_and_may_look_for_locks() {
    let tried = Tried::start();
    let file = tried.export.split('\'').nth(3).expect("it names the file with the password");
    let users = fs::read_to_string(Path::new(file).with_file_name("users.acl")).unwrap();
    let rights = |users: &str| {
        let line = users.lines().find_map(|line| line.strip_prefix("user quorate on "));
        let rights = line.and_then(|line| line.split_once(' ')).expect("it has a password").1;
        rights.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let expected = [rights(&read_file("deploy/users.acl")), vec!["+scan".to_owned()]].concat();
    assert_eq!(rights(&users), expected);
    let (code, said, errors) = output(&mut tried.shell("quorate doctor --ignore domains -v"));
    assert_eq!(code, 0, "{said}{errors}");
}

// A setting that locks rely on is changed in both places.
#[test]
fn its_servers_are_set_up_as_redis_conf_says() {
    let tried = Tried::start();
    let file = read_file("deploy/redis.conf");
    let conf = |name: &str| {
        let line = file.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("there is no {name}")).trim_matches('"').to_owned()
    };
    let (_, said) = json(&mut tried.shell("quorate status --json"));
    let servers = said["survey"]["voters"].as_array().expect("there are voters");
    for server in servers.iter().map(|voter| &voter["servers"][0]) {
        let disk = &server["persistence"];
        for (said, name) in [
            (&server["eviction_policy"], "maxmemory-policy"),
            (&disk["appendonly"], "appendonly"),
            (&disk["appendfsync"], "appendfsync"),
            (&disk["no_appendfsync_on_rewrite"], "no-appendfsync-on-rewrite"),
            (&disk["save"], "save"),
        ] {
            let said = said.as_bool().map(|is| if is { "yes" } else { "no" }).or(said.as_str());
            assert_eq!(said, Some(&*conf(name)), "{name}: {server}");
        }
        let limit = server["memory_limit_bytes"].as_u64().expect("there is one");
        assert_eq!(format!("{}mb", limit >> 20), conf("maxmemory"));
        assert_eq!(disk["is_durable"], true);
    }
    assert_eq!(servers.len(), 3);
}

#[test]
fn without_a_server_it_says_what_to_install_and_why_one_does_not_start() {
    let empty = tempfile::tempdir().unwrap();
    let (code, said, errors) = output(quorate(["try"]).env("PATH", empty.path()));
    assert_eq!((code, &*said), (127, ""));
    let expected = "quorate: neither `redis-server` nor `valkey-server` was found in PATH\n  \
                    install one of them: apt-get install redis-server, ";
    assert!(errors.starts_with(expected), "{errors}");
    // The second name counts too.
    let program = empty.path().join("valkey-server");
    fs::write(&program, "#!/bin/sh\necho it is broken\n").unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let (code, said, errors) = output(quorate(["try"]).env("PATH", empty.path()));
    assert_eq!((code, &*said), (69, ""));
    assert_eq!(errors, "quorate: `valkey-server`: it is broken\n");
}
