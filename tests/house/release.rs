//! What a release needs: its address, and pages that say truly what it was tested with.

use std::{env, fs, path::Path, process::Command};

use quorate_tests::prelude::*;

use crate::{book::targets, tree::files};

/// The value of a line of `Cargo.toml`.
fn of_manifest(name: &str) -> String {
    let manifest = read_file("Cargo.toml");
    let package = manifest.split_once("\n[package]").expect("it is a package").1;
    let value = package.split_once(&format!("\n{name} = \"")).expect("it is set").1;
    value.split('"').next().expect("it ends").to_owned()
}

/// The address that `Cargo.toml` has.
pub(crate) fn repository() -> String {
    of_manifest("repository")
}

#[test]
fn one_command_sets_the_address_of_the_repository_everywhere() {
    let (files, copy) = (files(), tempfile::tempdir().unwrap());
    for (path, text) in &files {
        let path = copy.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let set = |address: &str| {
        let set = Command::new("sh").arg(copy.path().join("deploy/address")).arg(address).output();
        set.expect("there is a shell").status.code()
    };
    // In two pieces, so that this file does not have it.
    let (old, new) = (repository(), concat!("https://git.example", ".com/team.a/locks"));
    let having = |address: &str| -> Vec<&str> {
        let has =
            |path: &String| fs::read_to_string(copy.path().join(path)).unwrap().contains(address);
        files.iter().map(|(path, _)| path).filter(|path| has(path)).map(String::as_str).collect()
    };
    let repeated = having(&old);
    for wanted in ["Cargo.toml", "deploy/Dockerfile", "deploy/prometheus/quorate.rules.yml"] {
        assert!(repeated.contains(&wanted), "{wanted} does not have it");
    }
    // What a user types first works: from a checkout as long as there is no address.
    let is_placeholder = old.contains(".example.org/");
    let added = |from: &str| {
        let begin = format!("\ncargo add quorate {from}");
        let page = |page: &str| fs::read_to_string(copy.path().join(page)).unwrap();
        ["README.md", "docs/start.md"].iter().all(|name| page(name).contains(&begin))
    };
    assert!(added(&if is_placeholder {
        "--path ../quorate".into()
    } else {
        format!("--git {old}")
    }));
    assert_eq!(set(new), Some(0));
    assert!(added(&format!("--git {new}")));
    let mut expected = repeated;
    if is_placeholder {
        expected.extend(["README.md", "docs/start.md"]);
    }
    expected.sort_unstable();
    assert_eq!((having(&old), having(new)), (vec![], expected));
    for wrong in ["git.example.com/locks", "https://a", "https://a/b/", "https://a/b c", ""] {
        assert_eq!(set(wrong), Some(64), "`{wrong}` is no address");
    }
    // Back again: nothing else has changed.
    assert_eq!(set(&old), Some(0));
    for (path, text) in &files {
        let now = fs::read_to_string(copy.path().join(path)).unwrap();
        assert!(now == *text, "{path} has changed");
    }
}

fn script(name: &str, in_tree: &Path) -> Command {
    Command::new(in_tree.join("deploy/release").join(name))
}

/// The exit code, what was printed, and the errors.
fn end(command: &mut Command) -> (Option<i32>, String, String) {
    let output = command.output().expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Cargo.toml and the change log, with the scripts.
fn tree_of_release() -> tempfile::TempDir {
    let tree = tempfile::tempdir().unwrap();
    fs::create_dir_all(tree.path().join("deploy/release")).unwrap();
    for path in ["Cargo.toml", "deploy/release/check", "deploy/release/publish"] {
        fs::copy(Path::new(ROOT).join(path), tree.path().join(path)).unwrap();
    }
    let manifest = read_file("Cargo.toml").replace(&repository(), "https://git.test/locks");
    fs::write(tree.path().join("Cargo.toml"), manifest).unwrap();
    let version = of_manifest("version");
    let log = format!("# Changelog\n\n## [{version}] - 2027-01-31\n\nYou can.\n\n## [0.0.1]\n");
    fs::write(tree.path().join("CHANGELOG.md"), log).unwrap();
    tree
}

#[test]
fn a_tag_is_released_if_manifest_and_change_log_have_its_version_and_the_address_is_real() {
    let (tree, tag) = (tree_of_release(), format!("v{}", of_manifest("version")));
    let check = |tag: &str| end(script("check", tree.path()).arg(tag));
    let (code, notes, errors) = check(&tag);
    assert_eq!((code, notes.trim(), &*errors), (Some(0), "You can.", ""));
    let (code, notes, errors) = check("v9.9.9");
    assert!(
        code == Some(1) && notes.is_empty() && errors.contains("the tag is v9.9.9"),
        "{errors}"
    );
    let log = tree.path().join("CHANGELOG.md");
    fs::write(&log, read(&log).replace(" - 2027-01-31", "")).unwrap();
    let (code, _, errors) = check(&tag);
    assert!(code == Some(1) && errors.contains("has no line"), "{errors}");
    fs::write(&log, "# Changelog\n\n## [Unreleased]\n\n- more\n").unwrap();
    let (code, _, errors) = check(&tag);
    assert!(code == Some(1) && errors.contains("says nothing about"), "{errors}");
    fs::copy(Path::new(ROOT).join("Cargo.toml"), tree.path().join("Cargo.toml")).unwrap();
    let (code, _, errors) = check(&tag);
    let is_placeholder = repository().contains("example");
    assert_eq!((code, errors.contains("is a placeholder")), (Some(1), is_placeholder), "{errors}");
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("it is there")
}

// A registry shows the page far from the files that its links name.
#[test]
fn the_packaged_pages_have_links_with_the_address_and_the_tag() {
    let target = tempfile::tempdir().unwrap();
    let mut package = script("crate", Path::new(ROOT));
    package.args(["package", "--offline", "--no-verify"]).env("CARGO_TARGET_DIR", target.path());
    let (code, _, errors) = end(&mut package);
    assert_eq!(code, Some(0), "{errors}");
    let name = format!("quorate-{}", of_manifest("version"));
    let mut unpack = Command::new("tar");
    unpack.arg("-xzf").arg(target.path().join(format!("package/{name}.crate")));
    assert_eq!(end(unpack.arg("-C").arg(target.path())).0, Some(0));
    let packaged = target.path().join(&name);
    for (page, folder) in [("README.md", ""), ("docs/metrics.md", "docs/")] {
        let (ours, theirs) = (read_file(page), read(&packaged.join(page)));
        let (ours, theirs) = (targets(&ours), targets(&theirs));
        assert!(ours.len() > 5 && ours.len() == theirs.len(), "{page}");
        for ((_, ours), (line, theirs)) in ours.iter().zip(&theirs) {
            let stays = ours.contains("://") || ours.starts_with('#');
            let is_picture = Path::new(ours).extension().is_some_and(|end| end == "svg");
            let kind = if is_picture { "raw" } else { "blob" };
            let tag = of_manifest("version");
            let path = format!("{folder}{ours}").replace("docs/../", "");
            let absolute = format!("{}/{kind}/v{tag}/{path}", repository());
            assert_eq!(theirs, if stays { ours } else { &absolute }, "{page}:{line}");
        }
    }
    let (_, files, _) = end(package.arg("--list"));
    let is_compiled = |path: &&str| path.starts_with("src/") || path.starts_with("lua/");
    let others: Vec<_> = files.lines().filter(|path| !is_compiled(path)).collect();
    assert!(
        files.len() > 100 && others.len() < 12,
        "what users do not need is packaged: {others:?}"
    );
    assert!(!files.contains("tests"), "tests are packaged, which cannot run");
}

/// Has a program stand in for another: it says what it was called with.
#[cfg(target_os = "linux")]
fn stand_in(folder: &Path, name: &str, more: &str) {
    let file = folder.join(name);
    fs::write(&file, format!("#!/bin/sh\necho {name} \"$@\"\n{more}\n")).unwrap();
    fs::set_permissions(file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

// On a machine with Rust and nothing else: it says all of what to install, and compiles nothing.
#[test]
#[cfg(target_os = "linux")]
fn what_the_program_needs_is_named_before_it_is_compiled() {
    let programs = tempfile::tempdir().unwrap();
    let path = env::var_os("PATH").expect("there is one");
    for name in ["mkdir", "dirname", "realpath", "sed", "head", "git", "date", "ls"] {
        let all = env::split_paths(&path).map(|folder| folder.join(name));
        let found = all.into_iter().find(|file| file.exists()).expect("each system has it");
        std::os::unix::fs::symlink(found, programs.path().join(name)).unwrap();
    }
    stand_in(programs.path(), "cargo", "echo compiled >&2");
    stand_in(programs.path(), "rustc", "");
    let mut program = script("program", Path::new(ROOT));
    program.arg("x86_64-unknown-linux-musl").arg(programs.path().join("files"));
    let (code, _, errors) = end(program.env("PATH", programs.path()).env_remove("TARGET_CC"));
    let expected = "deploy/release/program: this is missing:
  Rust's library for x86_64-unknown-linux-musl: rustup target add x86_64-unknown-linux-musl
  the linker cc: apt-get install gcc, or gcc of your system
  the C compiler musl-gcc: apt-get install musl-tools, or musl-gcc of your system
  readelf: apt-get install binutils, or binutils of your system
  dpkg-deb: apt-get install dpkg, or dpkg of your system
";
    assert_eq!((code, &*errors), (Some(1), expected));
}

#[test]
#[cfg(target_os = "linux")]
fn what_takes_an_account_is_asked_of_the_programs_that_have_it() {
    let (programs, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = format!("{}:{}", programs.path().display(), env::var("PATH").unwrap());
    let ends_with = |command: &mut Command, said: &str| {
        let (code, printed, errors) = end(command.env("PATH", &path));
        assert!(code == Some(0) && printed.contains(said), "{said}: {printed}{errors}");
    };
    let root = Path::new(ROOT);
    let version = of_manifest("version");
    stand_in(programs.path(), "docker", "");
    stand_in(programs.path(), "git", "echo 0123456");
    let image = |of: &str| {
        let mut image = script("image", root);
        image.args(["ghcr.test/Team/Quorate", of]);
        image
    };
    let tag = format!("--tag ghcr.test/team/quorate:{version}");
    ends_with(&mut image("arm64"), &format!("{tag}-arm64 "));
    ends_with(&mut image("all"), &format!("{tag} "));

    stand_in(programs.path(), "gh", "cat SHA256SUMS");
    fs::write(folder.path().join("a.tar.gz"), "a").unwrap();
    let tree = tree_of_release();
    let mut publish = script("publish", tree.path());
    // The sum of the letter.
    let sum = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb  a.tar.gz\n";
    ends_with(publish.arg(format!("v{version}")).arg(folder.path()), sum);
    stand_in(programs.path(), "gh", "");
    ends_with(&mut publish, "-- SHA256SUMS a.tar.gz");

    for name in [format!("quorate-linux-x64-{version}.tgz"), format!("quorate-{version}.tgz")] {
        fs::write(folder.path().join(name), "").unwrap();
    }
    let mut clients = script("clients", root);
    clients.arg(folder.path()).arg("publish");
    stand_in(programs.path(), "twine", "");
    stand_in(programs.path(), "npm", "");
    ends_with(
        &mut clients,
        &format!("--access public {}/quorate-linux-x64", folder.path().display()),
    );
    ends_with(&mut clients, &format!("public {}/quorate-{version}.tgz", folder.path().display()));
    ends_with(&mut clients, &format!("/quorate-{version}.tar.gz"));

    let made = "for last do :; done; echo {} >\"${3%/*}/$last.json\"";
    stand_in(programs.path(), "cargo-cyclonedx", made);
    let mut sbom = script("sbom", root);
    sbom.env("CARGO_TARGET_DIR", folder.path()).env("CARGO_NET_OFFLINE", "true");
    ends_with(sbom.arg("a-target").arg(folder.path()), "--features cli --target a-target");
    assert!(folder.path().join(format!("quorate-{version}-a-target.cdx.json")).exists());

    stand_in(programs.path(), "cargo-semver-checks", "");
    ends_with(script("semver", root).arg("v0.0.1"), "--baseline-rev v0.0.1");
}

// What the workflow runs is a script that was tried, and each script is run by one.
#[test]
fn the_workflows_run_the_scripts_that_there_are() {
    let workflows =
        ["ci", "release"].map(|name| read_file(&format!(".github/workflows/{name}.yml")));
    let run = workflows.iter().flat_map(|text| text.split("deploy/release/").skip(1));
    let run: BTreeSet<_> = run.filter_map(|rest| rest.split([' ', '\n', ',']).next()).collect();
    let scripts = files().into_iter().filter(|(path, _)| path.starts_with("deploy/release/"));
    let scripts: Vec<_> =
        scripts.map(|(path, _)| path["deploy/release/".len()..].to_owned()).collect();
    assert_eq!(run.into_iter().collect::<Vec<_>>(), scripts);
}

// A page that names another server or another Rust promises what nobody has tried.
#[test]
fn the_pages_name_the_servers_and_the_rust_that_the_public_tests_run_on() {
    let (page, workflow) = (read_file("docs/versions.md"), read_file(".github/workflows/ci.yml"));
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let is_server = |row: &&str| row.starts_with("Redis ") || row.starts_with("Valkey ");
    let named: Vec<_> = rows.filter(is_server).collect();
    let matrix = workflow.lines().filter_map(|line| line.trim().strip_prefix("- { name: "));
    let run: Vec<_> = matrix.filter_map(|line| line.split(',').next()).collect();
    assert!(named.len() > 3 && named == run, "{named:?} {run:?}");
    let rust = of_manifest("rust-version");
    assert!(workflow.contains(&format!("cargo +{rust} check ")), "{rust}");
    for page in ["README.md", "docs/versions.md"] {
        assert!(read_file(page).contains(&format!("needs Rust {rust} ")), "{page}: {rust}");
    }
}
