//! What the containers of the Compose file run, run here with their folders in a temporary one.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use super::files::{COMPOSE, DOCKERFILE, Tree};
use crate::tidy::tree;
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

/// What a stage of the Dockerfile says.
fn stage<'text>(dockerfile: &'text str, name: &str) -> &'text str {
    let (_, stage) =
        dockerfile.split_once(&format!(" AS {name}\n")).expect("there is such a stage");
    stage.split("\nFROM ").next().expect("it ends")
}

// The image of the program, as far as it shows without Docker: cargo finds the whole workspace and
// all that the library includes in what is copied, and nothing in it runs as root.
#[test]
fn the_image_of_the_program_has_all_that_cargo_needs_and_no_root() {
    let dockerfile = Tree::default().text(DOCKERFILE);
    let ignored = Tree::default().text("deploy/Dockerfile.dockerignore");
    let copies =
        stage(&dockerfile, "sources").lines().filter_map(|line| line.strip_prefix("COPY "));
    let copied = copies.flat_map(|copy| copy.rsplit_once(' ').expect("from, to").0.split(' '));
    let copied: Vec<_> = copied.collect();
    let context = tempfile::tempdir().unwrap();
    let is_copied = |path: &str| copied.iter().any(|&from| path.split('/').next() == Some(from));
    for (path, text) in tree::files().iter().filter(|(path, _)| is_copied(path)) {
        let path = context.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    for from in &copied {
        let shown = from.split('.').next().filter(|name| *name == "Cargo").map(|_| "Cargo.*");
        let shown = format!("!{}\n", shown.unwrap_or(from));
        assert!(ignored.contains(&shown), "{from} is hidden from the build");
    }
    let cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--locked", "--offline", "--no-deps", "--format-version=1"])
        .current_dir(context.path())
        .output()
        .expect("cargo runs");
    assert!(cargo.status.success(), "{}", String::from_utf8_lossy(&cargo.stderr));
    let metadata = String::from_utf8(cargo.stdout).expect("it is text");
    for (name, package, program) in
        [("build-program", "quorate", "quorate"), ("build-service", "web", "service")]
    {
        let build = format!("cargo build --locked --release --package {package} ");
        let stage = stage(&dockerfile, name);
        assert!(stage.contains(&build) && stage.contains(&format!("--bin {program} ")), "{stage}");
        let target = format!(r#""kind":["bin"],"crate_types":["bin"],"name":"{program}""#);
        assert!(metadata.contains(&target), "there is no program {program}");
    }
    for name in ["program", "service"] {
        assert!(stage(&dockerfile, name).contains("\nUSER 65534:65534\n"), "{name} runs as root");
    }
    // Docker builds the last stage where none is named.
    assert!(dockerfile.ends_with(stage(&dockerfile, "program")));
}
