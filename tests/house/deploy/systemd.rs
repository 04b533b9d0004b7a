//! The service for a host of its own; and how long nodes wait, there and in Kubernetes.

use std::{fs, os::unix::net::UnixDatagram, process::Command};

use quorate_support::Watched;
use quorate_tests::prelude::*;
use rustix::process::Signal;

use super::{NODES, UNIT, after, conf, passwords::make_passwords, unit};

#[test]
fn a_node_without_its_data_and_the_next_update_wait_longer_than_the_longest_lease() {
    let number = |text: String| text.parse::<u64>().expect("a number");
    let longest = number(after("docs/settings.md", "- `longest_lease` ("));
    let waits = number(after(UNIT, "WITHOUT_DATA_WAIT="));
    assert!(waits > longest && number(after(NODES, "|| exec sleep ")) == waits);
    assert!(number(unit("TimeoutStartSec")) > 2 * waits, "systemd ends the wait");
    assert!(number(after(NODES, "minReadySeconds: ")) > longest);
}

// A time that is none makes the wait fail at once, so whether it would wait is seen without a
// wait.
#[test]
fn only_a_node_without_its_data_waits() {
    let dir = tempfile::tempdir().unwrap();
    let before = unit("ExecStartPre");
    let of_unit = before.strip_prefix("/bin/sh -c '").and_then(|rest| rest.strip_suffix('\''));
    let of_unit = of_unit.expect("it is a shell's").replace("${WITHOUT_DATA_WAIT}", "never");
    let nodes = read_file(NODES);
    let of_pod = nodes.lines().find_map(|line| line.trim().strip_prefix("- test -e "));
    let of_pod = format!("test -e {}", of_pod.expect("it looks for the data"));
    let of_pod = of_pod.replace(&conf("dir"), dir.path().to_str().unwrap());
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
fn systemd_takes_services_and_timer_and_finds_little_that_they_could_harm() {
    // Alpine has no systemd.
    if std::path::Path::new("/sbin/apk").exists() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for path in [
        UNIT,
        "deploy/jobs/nightly-report.service",
        "deploy/jobs/nightly-report.timer",
        "deploy/jobs/quorate-agent.service",
    ] {
        // It looks whether the programs are there.
        let text = read_file(path).replace("/usr/local/bin/make-report", "/bin/true");
        let text = text.replace("ExecStart=quorate ", "ExecStart=/bin/true ");
        fs::write(folder.path().join(path.rsplit('/').next().unwrap()), text).unwrap();
    }
    let analyze = |arguments: &[&str], unit: &str| {
        let mut command = Command::new("systemd-analyze");
        let output = command.args(arguments).arg(folder.path().join(unit)).output();
        let output = output.unwrap_or_else(|error| {
            let line = quorate_support::install_line(["systemd"; 5]);
            panic!("systemd-analyze: {error}; install it: {line}")
        });
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    };
    // Of 10, where 10 is a service that may do everything.
    for (name, starts, threshold) in [
        ("quorate-node", "service", 15),
        ("nightly-report", "timer", 20),
        ("quorate-agent", "service", 20),
    ] {
        let (taken, said) = analyze(&["verify"], &format!("{name}.{starts}"));
        // Of other units of the machine it may say something.
        assert!(taken && !said.contains(name), "{said}");
        let threshold = format!("--threshold={threshold}");
        let security = ["security", "--offline=yes", &threshold, "--no-pager"];
        let (safe, said) = analyze(&security, &format!("{name}.service"));
        assert!(safe, "{said}");
    }
}

// `systemctl start` returns at this message, so the next node of a rolling restart goes no sooner.
#[test]
fn a_node_tells_systemd_when_it_is_ready() {
    // It waits for that, starts with a right clock, and comes back.
    assert_eq!((&*unit("Type"), &*unit("Restart")), ("notify", "always"));
    assert!(unit("After").contains("time-sync.target"));
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().to_str().unwrap();
    assert!(make_passwords(dir.path()).status.success());
    let ours = read_file("deploy/redis.conf").replace(&conf("dir"), folder);
    let ours = ours.replace(&conf("aclfile"), &format!("{folder}/users.acl"));
    let ours = ours.replace(&format!("port {}", conf("port")), "port 0");
    fs::write(dir.path().join("redis.conf"), ours).unwrap();
    let socket = UnixDatagram::bind(dir.path().join("notify")).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let start = unit("ExecStart");
    let program = start.split(' ').next().unwrap().rsplit('/').next().unwrap();
    let mut server = Command::new(program);
    server.args([&format!("{folder}/redis.conf"), "--unixsocket", &format!("{folder}/socket")]);
    server.env("NOTIFY_SOCKET", dir.path().join("notify")).stdout(std::process::Stdio::null());
    let watched = Watched::start(&mut server, Signal::KILL, dir).unwrap();
    let (mut told, mut message) = (String::new(), [0; 1024]);
    while !told.contains("READY=1") {
        let length = socket.recv(&mut message).unwrap_or_else(|error| panic!("{error}: {told}"));
        told.push_str(&String::from_utf8_lossy(&message[..length]));
    }
    // By the file alone: the nodes of the other tests are told so by a flag too.
    assert!(watched.dir.path().join("appendonlydir").exists(), "it keeps nothing on disk");
}
