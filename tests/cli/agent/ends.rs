//! What ends a hold, and when.

use std::{io::Write, net::Shutdown, os::unix::net::UnixStream};

use quorate_support::eventually;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Client, ClientProcess, Daemon, PATIENCE, mutex, now_us};
use crate::voters::Voters;

fn deadline(told: &str) -> u64 {
    told.parse().expect("microseconds")
}

/// When this client has it.
fn acquired_at(client: &mut Client, name: &str) -> u64 {
    client.lock(name);
    now_us()
}

// The best of some: what a busy machine delays says nothing of the agent.
#[test]
fn a_killed_programs_locks_are_free_within_50_ms_whether_or_not_its_children_live() {
    let voters = Voters::start();
    let daemon = Daemon::start(&voters);
    for inherits in [false, true] {
        let took = (0..5).map(|run| {
            let name = format!("{inherits}{run}");
            let holder = ClientProcess::start(&daemon.socket, &mutex(&name), inherits);
            holder.says("held");
            let mut next = daemon.client();
            let waits = next.send(mutex(&name));
            eventually("it waits", || {
                let seen = json!({ "op": "inspect", "kind": "mutex", "name": &name });
                let seen = next.ask(seen).unwrap();
                seen["holders"].as_array().is_some_and(|holders| !holders.is_empty())
            });
            let killed = now_us();
            holder.signal(Signal::KILL);
            next.answer(waits).expect("its turn");
            now_us() - killed
        });
        let best = took.min().expect("some");
        assert!(best < 50_000, "free after {best} us; children: {inherits}");
    }
}

#[test]
fn a_lock_that_outlives_its_program_stays_until_its_deadline() {
    let voters = Voters::start();
    let daemon = Daemon::start(&voters);
    let mut fields = mutex("a");
    fields["on_exit"] = "expire".into();
    let holder = ClientProcess::start(&daemon.socket, &fields, false);
    let told = deadline(&holder.says("held"));
    holder.signal(Signal::KILL);
    let at = acquired_at(&mut daemon.client(), "a");
    assert!(told <= at && at < told + 5_000_000, "had at {at}, its deadline was {told}");
}

#[test]
fn a_connection_that_ends_leaves_its_locks_until_the_deadline() {
    let voters = Voters::start();
    let daemon = Daemon::start(&voters);
    let socket = UnixStream::connect(&daemon.socket).unwrap();
    let mut holder = Client::greet(socket.try_clone().unwrap());
    let told = holder.lock("a")["deadline_us"].as_u64().unwrap();
    socket.shutdown(Shutdown::Both).unwrap();
    let at = acquired_at(&mut daemon.client(), "a");
    assert!(told <= at && at < told + 1_000_000, "had at {at}, the deadline was {told}");
}

#[test]
fn a_stopped_program_loses_its_lock_at_its_deadline_and_others_keep_theirs() {
    let voters = Voters::start();
    let daemon = Daemon::start(&voters);
    let mut other = daemon.client();
    let kept = other.lock("b");
    let stopped = ClientProcess::start(&daemon.socket, &mutex("a"), false);
    let mut told = deadline(&stopped.says("held"));
    // Renewed at least once.
    while deadline(&stopped.says("deadline")) == told {}
    stopped.signal(Signal::STOP);
    let at = acquired_at(&mut daemon.client(), "a");
    stopped.signal(Signal::CONT);
    // What it was told, it was told before that.
    loop {
        let line = stopped.lines.recv_timeout(PATIENCE).expect("it goes on");
        let mut words = line.split(' ');
        match (words.next(), words.next()) {
            (Some("deadline"), Some(moved)) => told = told.max(deadline(moved)),
            (Some("lost"), _) => break,
            _ => {}
        }
    }
    assert!(told <= at && at < told + 1_000_000, "had at {at}, its deadline was {told}");
    let release = json!({ "op": "release", "hold": kept["hold"] });
    assert_eq!(other.ask(release), Ok(json!({})), "it was held throughout");
}

#[test]
fn the_programs_of_a_killed_agent_know_of_their_loss_before_the_lock_is_free() {
    let voters = Voters::start();
    let mut daemon = Daemon::start(&voters);
    let holder = ClientProcess::start(&daemon.socket, &mutex("a"), false);
    holder.says("held");
    daemon.process.kill().unwrap();
    daemon.process.wait().unwrap();
    holder.says("gone");
    let next = Daemon::start(&voters);
    let at = acquired_at(&mut next.client(), "a");
    let over = deadline(&holder.says("over"));
    assert!(over <= at, "lost at {over}, and had by the next at {at}");
}

#[test]
fn a_program_that_does_not_read_is_closed_and_its_locks_go_with_its_deadline() {
    let voters = Voters::start();
    let daemon = Daemon::start(&voters);
    let mut socket = UnixStream::connect(&daemon.socket).unwrap();
    writeln!(socket, r#"{{"v":1}}"#).unwrap();
    let mut fields = mutex("a");
    fields["id"] = 1.into();
    writeln!(socket, "{fields}").unwrap();
    eventually("it has the lock", || voters.is_held("a"));
    let (held, name) = (now_us(), "a".repeat(500));
    let wrong = json!({ "id": 2, "op": name }).to_string();
    let closed = (0..100_000).any(|_| writeln!(socket, "{wrong}").is_err());
    assert!(closed, "it goes on writing");
    let at = acquired_at(&mut daemon.client(), "a");
    // Of a lease of four seconds.
    assert!(at - held > 3_000_000, "free after {} us", at - held);
    drop(socket);
}

#[test]
fn an_agent_that_is_told_to_end_lets_its_programs_end_their_work() {
    let voters = Voters::start();
    let mut daemon = Daemon::start(&voters);
    let (mut worker, mut waiter) = (daemon.client(), daemon.client());
    let held = worker.lock("a");
    let waiting = waiter.send(mutex("a"));
    let _ = waiter.ask(json!({ "op": "inspect", "kind": "mutex", "name": "a" }));
    daemon.signal(Signal::TERM);
    assert_eq!(waiter.answer(waiting).expect_err("it is shut down")["kind"], "closed");
    assert_eq!(worker.event("ending")["hold"], held["hold"]);
    assert_eq!(worker.ask(mutex("b")).expect_err("it is shut down")["kind"], "closed");
    let release = json!({ "op": "release", "hold": held["hold"] });
    assert_eq!(worker.ask(release), Ok(json!({})));
    assert_eq!(daemon.ends_with(), Some(0));
    assert!(!daemon.socket.exists());
    assert!(!voters.is_held("a"));
}

#[test]
fn an_agent_that_is_told_to_end_waits_for_no_longer_than_the_last_deadline() {
    let voters = Voters::start();
    let mut daemon = Daemon::start(&voters);
    let mut worker = daemon.client();
    let told = worker.lock("a")["deadline_us"].as_u64().unwrap();
    daemon.signal(Signal::TERM);
    worker.event("ending");
    let lost = worker.event("lost");
    let at = now_us();
    assert!(told <= at && at < told + 1_000_000, "lost at {at}, the deadline was {told}");
    let text = lost["error"]["text"].as_str().unwrap();
    assert!(text.ends_with("the agent is being shut down"), "{text}");
    assert_eq!(daemon.ends_with(), Some(0));
    assert!(!voters.is_held("a"));
}

#[test]
fn an_agent_that_is_told_twice_ends_at_once_and_releases_nothing() {
    let voters = Voters::start();
    let mut daemon = Daemon::start(&voters);
    let mut worker = daemon.client();
    worker.lock("a");
    daemon.signal(Signal::TERM);
    worker.event("ending");
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.ends_with(), Some(143));
    assert!(voters.is_held("a"), "its program may rely on it");
}

#[test]
fn a_lost_lock_is_told_with_the_librarys_reason() {
    let mut voters = Voters::start();
    let daemon = Daemon::start(&voters);
    let mut client = daemon.client();
    let held = client.lock("a");
    let broken = voters.quorate(&["break", "a", "--yes"]).output().unwrap();
    assert!(broken.status.success());
    let lost = client.event("lost");
    assert_eq!((&lost["hold"], &lost["error"]["kind"]), (&held["hold"], &"lost".into()));
    let text = lost["error"]["text"].as_str().unwrap();
    assert!(text.ends_with("it was ended by force") || text.contains("by force"), "{text}");
    // Without a majority: at the deadline, and not because the program did not answer.
    let held = client.lock("b");
    for server in &mut voters.0 {
        server.stop();
    }
    let ending: Value = client.event("ending");
    let lost = client.event("lost");
    assert!(lost["hold"] == held["hold"] && ending["hold"] == held["hold"], "{lost} {ending}");
    let text = lost["error"]["text"].as_str().unwrap();
    assert!(text.contains("without a renewal by a majority"), "{text}");
    for server in &mut voters.0 {
        server.resume();
    }
}
