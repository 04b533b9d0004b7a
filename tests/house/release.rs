//! What a release needs: its address, licences that may be passed on, and pages that say truly what
//! it was tested with.

use std::{collections::BTreeSet, env, fs, process::Command};

use quorate_support::{ROOT, read_file};

use crate::tree::files;

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
    for wanted in ["README.md", "Cargo.toml", "deploy/prometheus/quorate.rules.yml"] {
        assert!(repeated.contains(&wanted), "{wanted} does not have it");
    }
    assert_eq!(set(new), Some(0));
    assert_eq!((having(&old), having(new)), (vec![], repeated));
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

/// Licences that allow to link, to change and to pass on, if their text goes along.
const PERMITTED: [&str; 9] = [
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Zlib",
];

/// Whether the licence, an expression by SPDX, can be fulfilled by permitted ones.
fn is_permitted(licence: &str) -> bool {
    // An older form of OR. What stands in brackets is a choice in all dependencies that have any.
    let licence = licence.replace('/', " OR ").replace(['(', ')'], "");
    let is_permitted = |choice: &str| PERMITTED.contains(&choice.trim());
    let parts = licence.split(" AND ");
    parts.into_iter().all(|part| part.split(" OR ").any(is_permitted))
}

#[test]
fn every_dependency_has_a_licence_that_is_permitted() {
    for (licence, permitted) in [
        ("MIT", true),
        ("GPL-3.0 OR MIT", true),
        ("(MIT OR X) AND Unicode-3.0", true),
        ("X/Apache-2.0", true),
        ("GPL-3.0", false),
        ("MIT AND GPL-3.0", false),
        ("(MIT OR X) AND Y", false),
        ("", false),
    ] {
        assert_eq!(is_permitted(licence), permitted, "{licence}");
    }
    // Those of other systems too, which may have to be downloaded.
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let tree = ["tree", "--locked", "--workspace", "--all-features", "--target=all"];
    let format = ["--prefix=none", "--format={l}|{p}"];
    let output = Command::new(cargo).args(tree).args(format).current_dir(ROOT).output();
    let output = output.expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let packages = String::from_utf8(output.stdout).expect("it is text");
    let packages =
        packages.lines().filter_map(|line| line.trim_end_matches(" (*)").split_once('|'));
    let packages: BTreeSet<_> = packages.collect();
    for expected in ["quorate v", "fred v", "tokio v", "windows-sys v"] {
        let is_read = packages.iter().any(|(_, package)| package.starts_with(expected));
        assert!(is_read, "{expected} is not read");
    }
    let others: Vec<_> = packages.iter().filter(|(licence, _)| !is_permitted(licence)).collect();
    assert!(others.is_empty(), "{others:?}");
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
