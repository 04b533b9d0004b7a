//! What the containers of the Compose file run, run here with their folders in a temporary one.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use super::files::{COMPOSE, Tree};
use quorate_support::{RedisServer, Settings};

/// The script of a service that is `sh -ec SCRIPT`, with each folder of the container moved.
fn script(compose: &str, service: &str, folders: &[(&str, String)]) -> String {
    let (_, service_and_more) =
        compose.split_once(&format!("\n  {service}:\n")).expect("it is there");
    let (_, script) =
        service_and_more.split_once("- sh\n      - -ec\n      - |\n").expect("a script");
    let lines = script.lines().map_while(|line| line.strip_prefix("        "));
    // Compose reads `$$` as `$`.
    let mut script = lines.collect::<Vec<_>>().join("\n").replace("$$", "$");
    for (from, to) in folders {
        assert!(script.contains(from), "{service} does nothing with {from}");
        script = script.replace(from, to);
    }
    script
}

fn run(script: &str, path: &Path) -> String {
    let all = format!("{}:{}", path.display(), std::env::var("PATH").expect("there is one"));
    let shell = Command::new("sh").args(["-ec", script]).env("PATH", all).output();
    let shell = shell.expect("there is a shell");
    assert!(shell.status.success(), "{}", String::from_utf8_lossy(&shell.stderr));
    String::from_utf8(shell.stdout).expect("it is text")
}

pub(crate) fn program(folder: &Path, name: &str, text: &str) {
    let file = folder.join(name);
    fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

// From nothing to the addresses that the service is started with; one of them, with its host as it
// is here, lets a client in at a node by the files that were made.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_start_makes_nodes_and_a_service_that_knows_them() {
    let dir = tempfile::tempdir().unwrap();
    let compose = Tree::default().text(COMPOSE);
    let place = |name: &str| {
        let folder = dir.path().join(name);
        fs::create_dir_all(&folder).unwrap();
        folder.to_str().unwrap().to_owned()
    };
    // Only root may give files away, which tests need not be.
    program(dir.path(), "chown", "[ \"$1\" = 999:999 ]");
    program(dir.path(), "service", "printf %s \"$QUORATE_VOTERS\"");
    let deploy = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy").to_owned();
    let prepare = script(
        &compose,
        "prepare",
        &[
            ("/deploy", deploy),
            (" /passwords", format!(" {}", place("passwords"))),
            ("/configuration", place("configuration")),
            ("/data", place("data")),
        ],
    );
    run(&prepare, dir.path());
    // Again, as with each `up`: what is there stays.
    let password = fs::read_to_string(dir.path().join("passwords/quorate.password")).unwrap();
    run(&prepare, dir.path());
    let service = script(&compose, "service", &[("/passwords", place("passwords"))]);
    let voters = run(&service, dir.path());
    let port = Tree::default().conf("port");
    let wanted = (1..=5).map(|node| format!("redis://quorate:{password}@lock-{node}:{port}"));
    assert_eq!(voters.split_whitespace().collect::<Vec<_>>(), wanted.collect::<Vec<_>>());

    let users = fs::read_to_string(dir.path().join("configuration/users.acl")).unwrap();
    let users: Vec<_> = users.lines().map(|line| line.strip_prefix("user ").unwrap()).collect();
    let node = RedisServer::start_as(&Settings::new().users(&users));
    let voter = voters.split_whitespace().next().unwrap();
    let voter = voter.replace(&format!("lock-1:{port}"), &format!("127.0.0.1:{}", node.port()));
    let quorum = quorate::Quorate::connect([voter]).await.unwrap();
    quorum.mutex("a").lock().await.unwrap().release().await.unwrap();
}
