//! What the containers of the Compose file run, run here with their folders in a temporary one.

use std::{fs, path::Path, process::Command};

use quorate_tests::prelude::*;

use super::{COMPOSE, conf, program, run, server_with};
use crate::tree::files;

/// The script of a service that is `sh -ec SCRIPT`, with each folder of the container moved.
fn script(service: &str, folders: &[(&str, &Path)]) -> String {
    let compose = read_file(COMPOSE);
    let service_and_more = compose.split_once(&format!("\n  {service}:\n")).expect("it is there").1;
    let script = service_and_more.split_once("- sh\n      - -ec\n      - |\n").expect("a script").1;
    let lines = script.lines().map_while(|line| line.strip_prefix("        "));
    // Compose reads `$$` as `$`.
    let script = lines.collect::<Vec<_>>().join("\n").replace("$$", "$");
    folders.iter().fold(script, |script, (from, to)| {
        assert!(script.contains(from), "{service} does nothing with {from}");
        let blank = if from.starts_with(' ') { " " } else { "" };
        script.replace(from, &format!("{blank}{}", to.display()))
    })
}

/// What the service and the program have in their environment to reach the nodes.
fn client() -> Vec<(String, String)> {
    let compose = read_file(COMPOSE);
    let (_, block) = compose.split_once("\nx-client: &client\n").expect("it is there");
    let lines = block.lines().map_while(|line| line.strip_prefix("  "));
    let pairs = lines.filter_map(|line| line.split_once(": "));
    for used in ["environment: *client", "environment:\n      <<: *client\n"] {
        assert_eq!(compose.matches(used).count(), 1, "{used}");
    }
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

// From nothing to nodes, and to clients that are let in by the files that were made: their
// variables stand as they are but for the places of the nodes and of the folder.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_start_makes_nodes_and_clients_that_are_let_in() {
    let dir = tempfile::tempdir().unwrap();
    let [passwords, configuration, data] =
        ["passwords", "configuration", "data"].map(|name| dir.path().join(name));
    for folder in [&passwords, &configuration, &data] {
        fs::create_dir(folder).unwrap();
    }
    // Only root may give files away, which tests need not be.
    program(dir.path(), "chown", "[ \"$1\" = 999:999 ]");
    let prepare = script(
        "prepare",
        &[
            ("/deploy", &Path::new(ROOT).join("deploy")),
            (" /passwords", &passwords),
            ("/configuration", &configuration),
            ("/data", &data),
        ],
    );
    run(&prepare, dir.path(), dir.path());
    let password = || fs::read_to_string(passwords.join("quorate.password")).unwrap();
    let first = password();
    // Again, as with each `up`: what is there stays.
    run(&prepare, dir.path(), dir.path());
    assert_eq!(first, password());

    let users = configuration.join("users.acl");
    let nodes = [1, 2, 3].map(|number| (number, server_with(&users)));
    let variables = client().into_iter().map(|(name, value)| {
        let value = value.replace("/passwords", &passwords.display().to_string());
        let value = nodes.iter().fold(value, |value, (number, node)| {
            let named = format!("lock-{number}:{}", conf("port"));
            value.replace(&named, &format!("127.0.0.1:{}", node.port()))
        });
        (name, value)
    });
    let quorum = patient(Builder::from_variables(variables).unwrap()).connect().await.unwrap();
    let guard = quorum.mutex("a").lock().await.unwrap();
    until!("all three vote", {
        guard.reenter().await.unwrap().release().await.unwrap();
        guard.votes() == 3
    });
    guard.release().await.unwrap();
}

// The image of the program, as far as it shows without Docker: cargo finds the whole workspace and
// all that the library includes in what is copied, and nothing in it runs as root.
#[test]
fn the_image_of_the_program_has_all_that_cargo_needs_and_no_root() {
    let (dockerfile, shown) =
        (read_file("deploy/Dockerfile"), read_file("deploy/Dockerfile.dockerignore"));
    let copies = dockerfile.lines().filter_map(|line| line.strip_prefix("COPY "));
    let copies = copies.filter(|copy| !copy.starts_with("--from="));
    let copied: Vec<_> = copies.flat_map(|it| it.rsplit_once(' ').unwrap().0.split(' ')).collect();
    for from in &copied {
        let is_shown =
            |it: &str| it == format!("!{from}") || it == "!Cargo.*" && from.starts_with("Cargo.");
        assert!(shown.lines().any(is_shown), "{from} is hidden from the build");
    }
    let context = tempfile::tempdir().unwrap();
    let is_copied = |path: &str| copied.iter().any(|&from| path.split('/').next() == Some(from));
    for (path, text) in files().iter().filter(|(path, _)| is_copied(path)) {
        let path = context.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--locked", "--offline", "--no-deps", "--format-version=1"])
        .current_dir(context.path())
        .output()
        .expect("cargo runs");
    assert!(cargo.status.success(), "{}", String::from_utf8_lossy(&cargo.stderr));
    let metadata = String::from_utf8(cargo.stdout).expect("it is text");
    for built in dockerfile.split("cargo build ").skip(1) {
        let words: Vec<_> = built.split_whitespace().collect();
        let [.., bin, name] = &words[..words.iter().position(|word| *word == "\\").unwrap()] else {
            panic!("{built}")
        };
        let target = format!(r#""kind":["bin"],"crate_types":["bin"],"name":"{name}""#);
        assert!(*bin == "--bin" && metadata.contains(&target), "there is no program {name}");
    }
    let images: Vec<_> = dockerfile.split("\nFROM debian:").skip(1).collect();
    assert!(images.len() == 2 && images.iter().all(|it| it.contains("\nUSER 65534:65534\n")));
    // Docker builds the last stage where none is named.
    assert!(images[1].contains(" AS program\n"));
}
