//! The service for a host of its own.

use std::{
    fs,
    os::unix::net::UnixDatagram,
    process::{Command, Stdio},
    time::Duration,
};

use super::{
    files::{NODES, Tree},
    passwords::make_passwords,
};
use quorate_support::Watchdog;

// Those that other files have too are compared with them; these only stand here.
#[test]
fn the_service_starts_with_a_right_clock_says_when_it_is_ready_and_comes_back() {
    let tree = Tree::default();
    assert_eq!((&*tree.unit("Type"), &*tree.conf("supervised")), ("notify", "auto"));
    assert!(tree.unit("After").contains("time-sync.target"), "it starts with any clock");
    assert_eq!(tree.unit("Restart"), "always");
}

// A time that is none makes the wait fail at once, so whether it would wait is seen without a
// wait.
#[test]
fn only_a_node_without_its_data_waits() {
    let tree = Tree::default();
    let dir = tempfile::tempdir().unwrap();
    let before = tree.unit("ExecStartPre");
    let of_unit = before.strip_prefix("/bin/sh -c '").and_then(|rest| rest.strip_suffix('\''));
    let of_unit = of_unit.expect("it is a shell's").replace("${WITHOUT_DATA_WAIT}", "never");
    let nodes = tree.text(NODES);
    let of_pod = nodes.lines().find_map(|line| line.trim().strip_prefix("- test -e "));
    let of_pod = format!("test -e {}", of_pod.expect("it looks for the data"));
    let of_pod = of_pod.replace(&tree.conf("dir"), dir.path().to_str().unwrap());
    let of_pod = of_pod.replace("sleep 31", "sleep never");
    let waits = |script: &str| {
        let shell = Command::new("sh").args(["-c", script]).current_dir(dir.path()).output();
        !shell.unwrap().status.success()
    };
    assert!(waits(&of_unit) && waits(&of_pod));
    fs::create_dir(dir.path().join("appendonlydir")).unwrap();
    assert!(waits(&of_unit) && waits(&of_pod), "a folder is no data");
    fs::write(dir.path().join("appendonlydir/appendonly.aof.manifest"), "").unwrap();
    assert!(!waits(&of_unit) && !waits(&of_pod));
}

#[test]
#[cfg(all(feature = "full", target_os = "linux"))]
fn systemd_takes_the_service_and_finds_little_that_it_could_harm() {
    use std::path::Path;

    use quorate_support::{ROOT, install_line};

    // Alpine has no systemd.
    if Path::new("/sbin/apk").exists() {
        return;
    }
    let unit = Path::new(ROOT).join(super::files::UNIT);
    let analyze = |arguments: &[&str]| {
        let output = Command::new("systemd-analyze").args(arguments).arg(&unit).output();
        let output = output.unwrap_or_else(|error| {
            panic!("systemd-analyze: {error}; install it: {}", install_line(["systemd"; 5]))
        });
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    };
    let (taken, said) = analyze(&["verify"]);
    // Of other units of the machine it may say something.
    assert!(taken && !said.contains("quorate-node"), "{said}");
    // Of 10, where 10 is a service that may do everything.
    let (safe, said) = analyze(&["security", "--offline=yes", "--threshold=15", "--no-pager"]);
    assert!(safe, "{said}");
}

// `systemctl start` returns at this message, so the next node of a rolling restart goes no sooner.
#[test]
fn a_node_tells_systemd_when_it_is_ready() {
    let tree = Tree::default();
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().to_str().unwrap();
    make_passwords(dir.path());
    let ours = tree.text("deploy/redis.conf").replace(&tree.conf("dir"), folder);
    let ours = ours.replace(&tree.conf("aclfile"), &format!("{folder}/users.acl"));
    let port = format!("port {}", tree.conf("port"));
    fs::write(dir.path().join("redis.conf"), ours.replace(&port, "port 0")).unwrap();
    let socket = UnixDatagram::bind(dir.path().join("notify")).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let start = tree.unit("ExecStart");
    let program = start.split(' ').next().unwrap().rsplit('/').next().unwrap();
    let mut server = Command::new(program)
        .args([&format!("{folder}/redis.conf"), "--unixsocket", &format!("{folder}/socket")])
        .env("NOTIFY_SOCKET", dir.path().join("notify"))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut watchdog = Watchdog::over(&server, dir.path());
    let mut told = String::new();
    let mut message = [0; 1024];
    while !told.contains("READY=1") {
        let length = socket.recv(&mut message).unwrap_or_else(|error| panic!("{error}: {told}"));
        told.push_str(&String::from_utf8_lossy(&message[..length]));
    }
    server.kill().unwrap();
    watchdog.call_off();
    server.wait().unwrap();
}
