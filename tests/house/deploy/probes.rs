//! The commands by which Compose and Kubernetes ask a node, asked of one.

use std::process::Command;

use super::files::{COMPOSE, NODES, Tree, command};
use quorate_support::{RedisServer, Settings, eventually, lock_node};

/// Each command, and whether it is content with an error.
fn probes() -> [(&'static str, Vec<String>, bool); 3] {
    let (nodes, compose) = (Tree::default().text(NODES), Tree::default().text(COMPOSE));
    // Readiness is asked as the start is.
    assert!(nodes.contains("startupProbe:\n            exec: &answers\n"));
    assert!(nodes.contains("readinessProbe:\n            exec: *answers\n"));
    let health = command(&compose, "  healthcheck:\n").split_off(1);
    [
        ("readiness", command(&nodes, "startupProbe:"), false),
        ("liveness", command(&nodes, "livenessProbe:"), true),
        ("health", health, false),
    ]
}

/// Whether the command is content with what stands at this port.
fn is_content(command: &[String], port: u16) -> bool {
    let (program, arguments) = command.split_first().expect("there is a command");
    assert_eq!(program, "redis-cli");
    let cli = Command::new(program).args(["-p", &port.to_string()]).args(arguments).output();
    cli.expect("redis-cli comes with redis-server").status.success()
}

#[test]
fn every_probe_is_content_with_a_node_and_none_with_nothing() {
    let mut node = RedisServer::start_as(&lock_node());
    for (name, command, _) in probes() {
        assert!(is_content(&command, node.port()), "{name}: {command:?}");
    }
    node.kill();
    for (name, command, _) in probes() {
        assert!(!is_content(&command, node.port()), "{name}: {command:?}");
    }
}

// As after a mistake with the files: it answers, and is no voter. Killing it would not help.
#[test]
fn a_node_without_its_users_is_alive_and_not_ready() {
    let node = RedisServer::start_as(&Settings::new().users(&[]));
    for (name, command, takes_errors) in probes() {
        assert_eq!(is_content(&command, node.port()), takes_errors, "{name}: {command:?}");
    }
}

// The server is told to take its time for each change, so it loads for some seconds, and looks up
// every thousand changes. Killing it would make it begin again.
#[test]
fn a_node_that_loads_its_data_is_alive_and_not_ready() {
    let slow = lock_node().flags(&["--key-load-delay", "200"]);
    let mut node = RedisServer::start_as(&slow);
    // In parts: each is to be done before a client gives up on its answer.
    let changes = "for at = 1, 1000 do redis.call('SET', ARGV[1] .. at, '1') end";
    for part in 0..40 {
        node.command(&["EVAL", changes, "0", &format!("key{part}:")]).unwrap();
    }
    node.restart();
    for (name, command, takes_errors) in probes() {
        let content = is_content(&command, node.port());
        // Still, so it was while it was asked.
        let loading = node.info(&["INFO", "persistence"], "loading");
        assert_eq!(loading.as_deref(), Ok("1"), "it was loaded too soon to see it");
        assert_eq!(content, takes_errors, "{name}: {command:?}");
    }
    eventually("it is ready once it has loaded", || {
        probes().iter().all(|(_, command, _)| is_content(command, node.port()))
    });
}
