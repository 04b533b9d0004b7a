//! What is said, and what is answered.

use std::{
    fs,
    io::Write,
    os::unix::{fs::PermissionsExt, net::UnixStream},
    process::{Command, Stdio},
};

use quorate_support::read_file;
use serde_json::{Value, json};

use super::{Client, Daemon, mutex};
use crate::{
    listen::Desk,
    program::{output, quorate},
    voters::Voters,
};

#[test]
fn a_program_in_any_language_has_every_kind_of_lock() {
    let voters = Voters::start();
    let daemon = Daemon::start(&voters);
    let mut client = daemon.client();
    let mut tokens = Vec::new();
    for (kind, more) in [
        ("mutex", json!({})),
        ("fair", json!({})),
        ("read", json!({})),
        ("write", json!({})),
        ("semaphore", json!({ "permits": 2 })),
        ("election", json!({ "value": "10.0.0.1:80" })),
        ("once", json!({ "firing": 7 })),
    ] {
        let mut fields = json!({
            "op": "acquire", "kind": kind, "name": "a", "wait_ms": 0, "note": "job 42",
        });
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let told = client.ask(fields.clone()).unwrap_or_else(|why| panic!("{kind}: {why}"));
        assert_eq!(told["token"].is_u64(), !["read", "semaphore"].contains(&kind), "{told}");
        assert_eq!(told["slot"].is_u64(), kind == "semaphore", "{told}");
        tokens.extend(told["token"].as_u64().filter(|_| ["mutex", "fair"].contains(&kind)));
        let seen = client.ask(json!({ "op": "inspect", "kind": kind, "name": "a" })).unwrap();
        assert_eq!(seen["holders"][0]["hold"], told["hold_id"], "{kind}: {seen}");
        assert_eq!(seen["holders"][0]["note"], "job 42", "{kind}: {seen}");
        let done = kind == "once";
        let release = json!({ "op": "release", "hold": told["hold"], "done": done });
        assert_eq!(client.ask(release), Ok(json!({})), "{kind}");
        if done {
            assert_eq!(client.ask(fields), Ok(json!({ "passed": true })));
        }
    }
    assert!(tokens[0] < tokens[1], "{tokens:?}");
}

#[test]
fn a_lock_that_is_taken_names_its_holder_and_a_caller_gives_up() {
    let voters = Voters::start();
    let daemon = Daemon::start(&voters);
    let (mut first, mut second) = (daemon.client(), daemon.client());
    let held = first.lock("a");
    let mut now = mutex("a");
    now["wait_ms"] = 0.into();
    let why = second.ask(now).expect_err("it is taken");
    assert!(why["kind"] == "busy" && why["holder"].is_string(), "{why}");
    assert!(why["lease_left_ms"].as_u64().is_some_and(|left| left > 1_000), "{why}");
    let waiting = second.send(mutex("a"));
    second.ask(json!({ "op": "cancel", "request": waiting })).unwrap();
    assert_eq!(second.answer(waiting).expect_err("it gave up")["kind"], "cancelled");
    let waiting = second.send(mutex("a"));
    first.ask(json!({ "op": "release", "hold": held["hold"] })).unwrap();
    let told = second.answer(waiting).expect("its turn");
    assert!(told["token"].as_u64() > held["token"].as_u64(), "{told} after {held}");
    // Whoever gave up stands in nobody's way.
    second.ask(json!({ "op": "release", "hold": told["hold"] })).unwrap();
    first.lock("a");
}

#[test]
fn a_lock_is_extended_and_kept() {
    let voters = Voters::start();
    let daemon = Daemon::start(&voters);
    let mut client = daemon.client();
    let mut short = mutex("a");
    short["lease_ms"] = 2_000.into();
    let told = client.ask(short).unwrap();
    let extend = json!({ "op": "extend", "hold": told["hold"], "lease_ms": 4_000 });
    let extended = client.ask(extend).unwrap();
    let moved = extended["deadline_us"].as_u64().unwrap() - told["deadline_us"].as_u64().unwrap();
    assert!(moved > 1_500_000, "{moved}");
    client.ask(json!({ "op": "keep_for", "hold": told["hold"], "time_ms": 3_000 })).unwrap();
    let mut now = mutex("a");
    now["wait_ms"] = 0.into();
    assert_eq!(client.ask(now).expect_err("it is kept")["kind"], "busy");
    let gone = client.ask(json!({ "op": "release", "hold": told["hold"] }));
    assert_eq!(gone.expect_err("it was left")["kind"], "lost");
}

#[test]
fn each_change_of_the_leader_is_told() {
    let voters = Voters::start();
    let daemon = Daemon::start(&voters);
    let (mut leader, mut follower) = (daemon.client(), daemon.client());
    let observe = follower.send(json!({ "op": "observe", "name": "a" }));
    assert!(follower.event("leader")["leader"].is_null());
    let lead = json!({ "op": "acquire", "kind": "election", "name": "a", "value": "b" });
    let held = leader.ask(lead).unwrap();
    let seen = follower.event("leader");
    assert_eq!((&seen["request"], &seen["leader"]["value"]), (&observe.into(), &"b".into()));
    assert_eq!(seen["leader"]["token"], held["token"]);
    leader.ask(json!({ "op": "release", "hold": held["hold"] })).unwrap();
    assert!(follower.event("leader")["leader"].is_null());
    follower.ask(json!({ "op": "cancel", "request": observe })).unwrap();
    assert_eq!(follower.answer(observe).expect_err("it ended")["kind"], "cancelled");
}

#[test]
fn what_cannot_be_understood_is_said_and_ends_the_connection() {
    let voters = Voters::start();
    let daemon = Daemon::start(&voters);
    let connect = || {
        let socket = UnixStream::connect(&daemon.socket).unwrap();
        (Client::new(socket.try_clone().unwrap(), std::io::sink()), socket)
    };
    for (line, named) in [
        (r#"{"v":2}"#.to_owned(), "version 1, and not 2"),
        ("GET / HTTP/1.1".to_owned(), "JSON"),
        (format!("{{\"v\":1,\"a\":\"{}\"}}", "a".repeat(70_000)), "at most 65536 bytes"),
    ] {
        let (mut client, mut socket) = connect();
        let _ = writeln!(socket, "{line}");
        let said = client.hears().expect("it says why");
        assert_eq!(said["error"]["kind"], "protocol", "{said}");
        assert!(said["error"]["text"].as_str().unwrap().contains(named), "{said}");
        assert_eq!(client.hears(), None);
    }
    // What is wrong with one call ends nothing.
    let mut client = daemon.client();
    for (fields, kind) in [
        (json!({ "op": "clear", "name": "a" }), "protocol"),
        (json!({ "op": "acquire", "kind": "mutex", "name": "a", "lease": 1 }), "protocol"),
        (json!({ "op": "acquire", "kind": "semaphore", "name": "a" }), "protocol"),
        (json!({ "op": "acquire", "kind": "mutex", "name": "" }), "invalid"),
        (json!({ "op": "release", "hold": 99 }), "lost"),
    ] {
        assert_eq!(client.ask(fields.clone()).expect_err("it is wrong")["kind"], kind, "{fields}");
    }
    let many = 1_024;
    let waiting: Vec<_> =
        (0..many).map(|_| client.send(json!({ "op": "observe", "name": "a" }))).collect();
    assert_eq!(client.ask(mutex("a")).expect_err("it is full")["kind"], "overloaded");
    client.ask(json!({ "op": "cancel", "request": waiting[0] })).unwrap();
    client.lock("a");
}

#[test]
fn a_socket_is_in_a_folder_that_nobody_else_enters() {
    let voters = Voters::start();
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("open");
    fs::create_dir(&at).unwrap();
    let path = at.join("agent.sock");
    let agent = || output(&mut voters.quorate(&["agent", "--socket", path.to_str().unwrap()]));
    fs::set_permissions(&at, fs::Permissions::from_mode(0o755)).unwrap();
    let (code, _, errors) = agent();
    assert!(code == 78 && errors.contains("lets others enter"), "{errors}");
    fs::set_permissions(&at, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(&path, "").unwrap();
    let (code, _, errors) = agent();
    assert!(code == 78 && errors.contains("it is no socket"), "{errors}");
    let daemon = Daemon::start(&voters);
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(daemon.socket.parent().unwrap()), 0o700);
    assert_eq!(mode(&daemon.socket), 0o600);
    let again = ["agent", "--socket", daemon.socket.to_str().unwrap()];
    let (code, _, errors) = output(&mut voters.quorate(&again));
    assert!(code == 78 && errors.contains("another agent listens there"), "{errors}");
    daemon.client().lock("a");
}

#[test]
fn what_an_agent_measures_is_asked_for_over_http() {
    let voters = Voters::start();
    let desk = Desk::new();
    let daemon = Daemon::start_by(&voters, "4s", &["--metrics", &desk.0.to_string()]);
    daemon.client().lock("a");
    assert_eq!(desk.asks("GET", "/healthz"), Some((200, "ok\n".to_owned())));
    let (status, page) = desk.asks("GET", "/metrics").expect("it listens");
    let is_there = |line: &str| page.lines().any(|found| found.starts_with(line));
    assert!(status == 200 && is_there("quorate_acquire_seconds_bucket"), "{page}");
    assert_eq!(desk.asks("GET", "/leader").map(|(status, _)| status), Some(404));
}

// The group is that of whoever tests, and the folder a temporary one.
#[test]
fn the_agents_of_deploy_start_as_they_stand_there() {
    let voters = Voters::start();
    let group = Command::new("id").arg("-gn").output().unwrap().stdout;
    let group = String::from_utf8(group).unwrap();
    let service = read_file("deploy/jobs/quorate-agent.service");
    let service = service.lines().find_map(|line| line.strip_prefix("ExecStart="));
    let service = service.expect("it starts something").replace(" locks ", " GROUP ");
    let pod = read_file("deploy/jobs/agent.yaml");
    let pod = pod.lines().find_map(|line| line.trim().strip_prefix("command: ["));
    let pod = pod.expect("it starts something").trim_end_matches(']').replace(", ", " ");
    for line in [service, pod] {
        let (folder, desk) = (tempfile::tempdir().unwrap(), Desk::new());
        let there = folder.path().join("quorate");
        let line = line.replace("/run/quorate", there.to_str().unwrap());
        let line = line.replace("127.0.0.1:4040", &desk.0.to_string());
        // A folder of a folder: as systemd or Kubernetes have made the first.
        fs::create_dir(&there).unwrap();
        fs::set_permissions(&there, fs::Permissions::from_mode(0o750)).unwrap();
        let words: Vec<_> =
            line.replace("GROUP", group.trim()).split(' ').map(str::to_owned).collect();
        let (program, arguments) = words.split_first().unwrap();
        assert_eq!(program, "quorate");
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let socket = arguments.iter().skip_while(|word| **word != "--socket").nth(1).unwrap();
        let daemon = Daemon::run(&mut voters.quorate(&arguments), socket.into(), None);
        daemon.client().lock("a");
        drop(daemon);
        fs::remove_file(socket).unwrap();
    }
}

#[test]
fn an_agent_that_cannot_go_on_says_so_to_its_program() {
    let (code, said, errors) = output(&mut quorate(["agent"]));
    assert!(code == 71 && errors.contains("pipes are needed"), "{said}{errors}");
    let nowhere = ["--voter", "redis://127.0.0.1:1"];
    for (arguments, expected, kind) in
        [(&[][..], 64, "invalid"), (&nowhere[..], 69, "not_connected")]
    {
        let mut command = quorate([&["agent"], arguments].concat());
        let (code, said, _) = output(command.stdin(Stdio::piped()));
        let said: Value = serde_json::from_str(&said).expect("a line of JSON");
        assert_eq!((code, &said["error"]["kind"]), (expected, &kind.into()), "{said}");
    }
}
