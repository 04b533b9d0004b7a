//! The service for a host of its own.

use std::{
    fs,
    os::unix::net::UnixDatagram,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use crate::{
    kubernetes,
    passwords::make_passwords,
    support::{Watchdog, install_line},
    tree::{Finding, Tree, bytes, ensure, holds, list_at, same},
};

const UNIT: &str = "deploy/systemd/quorate-node.service";
/// Where `install_line` has a manager for another system, the test is not run.
const SYSTEMD: [&str; 5] = ["systemd"; 5];
/// The manager of Alpine, which has no systemd.
const APK: &str = "/sbin/apk";

/// The value of a line of the unit; empty where there is none.
fn setting(tree: &Tree, name: &str) -> String {
    let text = tree.text(UNIT);
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    lines.next().unwrap_or_default().to_owned()
}

/// How long it waits before it starts without data, in seconds.
fn wait(tree: &Tree) -> String {
    let wait = setting(tree, "Environment");
    wait.strip_prefix("WITHOUT_DATA_WAIT=").unwrap_or_default().to_owned()
}

#[test]
fn the_service_is_made_for_our_configuration() {
    let claim = |tree: &Tree| -> Finding {
        let users = tree.conf("aclfile");
        let configuration = users.replace("users.acl", "redis.conf");
        same(
            "start",
            setting(tree, "ExecStart"),
            format!("/usr/bin/redis-server {configuration}"),
        )?;
        same("folder", setting(tree, "WorkingDirectory"), tree.conf("dir"))?;
        let state = format!("/var/lib/{}", setting(tree, "StateDirectory"));
        same("folder", state, tree.conf("dir"))?;
        same("type", setting(tree, "Type"), "notify".to_owned())?;
        same("supervised", tree.conf("supervised"), "auto".to_owned())?;
        let number = |text: &str| text.parse::<u64>().map_err(|error| format!("{text}: {error}"));
        let files = number(&setting(tree, "LimitNOFILE"))?;
        // The server keeps 32 for itself.
        ensure(files >= number(&tree.conf("maxclients"))? + 32, format!("{files} files"))?;
        let memory = bytes(&setting(tree, "MemoryMax"));
        ensure(memory >= 2 * bytes(&tree.conf("maxmemory")), format!("{memory} bytes"))?;
        ensure(setting(tree, "After").contains("time-sync.target"), "it starts with any clock")?;
        same("restart", setting(tree, "Restart"), "always".to_owned())
    };
    holds(
        claim,
        &[
            (
                UNIT,
                "ExecStart=/usr/bin/redis-server /etc/quorate",
                "ExecStart=/usr/bin/redis-server /etc/redis",
            ),
            (UNIT, "StateDirectory=quorate", "StateDirectory=redis"),
            (UNIT, "WorkingDirectory=/var/lib/quorate", "WorkingDirectory=/var/lib/redis"),
            (UNIT, "Type=notify", "Type=simple"),
            (UNIT, "LimitNOFILE=10240", "LimitNOFILE=10000"),
            (UNIT, "MemoryMax=512M", "MemoryMax=256M"),
            (UNIT, "After=network-online.target time-sync.target", "After=network-online.target"),
            (UNIT, "Restart=always", "Restart=no"),
            ("deploy/redis.conf", "supervised auto", "supervised no"),
            ("deploy/redis.conf", "maxclients 10000", "maxclients 20000"),
        ],
    );
}

#[test]
fn a_node_without_its_data_waits_for_longer_than_the_longest_lease() {
    let claim = |tree: &Tree| -> Finding {
        let number = |text: &str| text.parse::<u64>().map_err(|error| format!("{text}: {error}"));
        let waits = number(&wait(tree))?;
        ensure(waits > tree.longest_lease(), format!("{waits} s are too short"))?;
        let start = number(&setting(tree, "TimeoutStartSec"))?;
        ensure(start > 2 * waits, format!("{start} s end the wait"))?;
        let nodes = tree.yaml(kubernetes::NODES);
        let first = "/spec/template/spec/initContainers/0/command";
        let same_wait = list_at(&nodes, first)[2].ends_with(&format!("|| exec sleep {waits}"));
        ensure(same_wait, "it is another wait in Kubernetes")
    };
    holds(
        claim,
        &[
            (UNIT, "WITHOUT_DATA_WAIT=31", "WITHOUT_DATA_WAIT=30"),
            (UNIT, "TimeoutStartSec=300", "TimeoutStartSec=30"),
            (kubernetes::NODES, "sleep 31", "sleep 30"),
            ("README.md", "| `longest_lease` | 30 s", "| `longest_lease` | 60 s"),
        ],
    );
}

// A time that is none makes the wait fail at once, so whether it would wait is seen without a
// wait.
#[test]
fn only_a_node_without_its_data_waits() {
    let tree = Tree::default();
    let dir = tempfile::tempdir().unwrap();
    let before = setting(&tree, "ExecStartPre");
    let of_unit = before.strip_prefix("/bin/sh -c '").and_then(|rest| rest.strip_suffix('\''));
    let of_unit = of_unit.expect("it is a shell's").replace("${WITHOUT_DATA_WAIT}", "never");
    let nodes = tree.yaml(kubernetes::NODES);
    let of_pod = list_at(&nodes, "/spec/template/spec/initContainers/0/command")[2].clone();
    let of_pod = of_pod.replace(&tree.conf("dir"), dir.path().to_str().unwrap());
    let of_pod = of_pod.replace(&format!("sleep {}", wait(&tree)), "sleep never");
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
#[cfg(target_os = "linux")]
fn systemd_takes_the_service_and_finds_little_that_it_could_harm() {
    if Path::new(APK).exists() {
        return;
    }
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join(UNIT);
    let analyze = |arguments: &[&str]| {
        let output = Command::new("systemd-analyze").args(arguments).arg(&unit).output();
        let output = output.unwrap_or_else(|error| {
            panic!("systemd-analyze: {error}; install it: {}", install_line(SYSTEMD))
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
    let start = setting(&tree, "ExecStart");
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
