//! What `deploy/` has works as it stands there.
//!
//! That the suites of the locks pass on such nodes is seen in these: `on_one_lock_node` is one.

mod containers;
mod node;
mod passwords;
mod servers;
mod systemd;
mod walk;

use std::{env, fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use quorate_tests::prelude::*;

const COMPOSE: &str = "deploy/compose/compose.yaml";
const NODES: &str = "deploy/kubernetes/nodes.yaml";
const UNIT: &str = "deploy/systemd/quorate-node.service";

/// What stands in a file behind this, up to a blank or the end of a line.
#[track_caller]
fn after(path: &str, before: &str) -> String {
    let text = read_file(path);
    let rest = text.split_once(before).map(|(_, rest)| rest.split([' ', '\n']).next());
    rest.flatten().unwrap_or_else(|| panic!("{path} has no {before}")).to_owned()
}

/// The value of a line of `deploy/redis.conf`, by its name.
fn conf(name: &str) -> String {
    after("deploy/redis.conf", &format!("\n{name} "))
}

/// The value of a line of the unit for systemd.
fn unit(name: &str) -> String {
    let text = read_file(UNIT);
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    lines.next().unwrap_or_else(|| panic!("the unit has no {name}")).to_owned()
}

/// Runs a script in this folder, where programs of the folder `programs` stand in for others.
fn run(script: &str, folder: &Path, programs: &Path) -> String {
    let path = format!("{}:{}", programs.display(), env::var("PATH").expect("there is one"));
    let mut shell = Command::new("sh");
    let shell = shell.args(["-euc", script]).current_dir(folder).env("PATH", path).output();
    let shell = shell.expect("there is a shell");
    assert!(shell.status.success(), "{script}\n{}", String::from_utf8_lossy(&shell.stderr));
    String::from_utf8(shell.stdout).expect("it is text")
}

fn program(folder: &Path, name: &str, text: &str) {
    let file = folder.join(name);
    fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A server with the users of this file, that lets the tests in too.
fn server_with(users: &Path) -> RedisServer {
    let users = fs::read_to_string(users).unwrap();
    let users: Vec<_> = users.lines().map(|line| line.strip_prefix("user ").unwrap()).collect();
    RedisServer::start_as(&Settings::new().users(&users))
}

fn lets_in(server: &RedisServer, user: &str, password: &str) -> bool {
    server.anonymous(&[&["AUTH", user, password]]).unwrap()[0].is_ok()
}
