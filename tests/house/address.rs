//! The address of the repository: it stands in `Cargo.toml`, and one command changes it everywhere.

use std::{fs, path::Path, process::Command};

use crate::tidy::tree;

const SETTER: &str = "deploy/address";

/// The address that `Cargo.toml` has.
pub(crate) fn repository() -> &'static str {
    let manifest = include_str!("../../Cargo.toml");
    let (_, rest) = manifest.split_once("\nrepository = \"").expect("it has one");
    rest.split('"').next().expect("it ends")
}

/// The files that have an address, of those in a folder.
fn having(folder: &Path, files: &[(String, String)], address: &str) -> Vec<String> {
    let has = |path: &String| fs::read_to_string(folder.join(path)).unwrap().contains(address);
    files.iter().map(|(path, _)| path).filter(|path| has(path)).cloned().collect()
}

#[test]
fn one_command_sets_the_address_of_the_repository_everywhere() {
    let files = tree::files();
    let copy = tempfile::tempdir().unwrap();
    for (path, text) in &files {
        let path = copy.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let set = |address: &str| {
        let set = Command::new("sh").arg(copy.path().join(SETTER)).arg(address).output();
        set.expect("there is a shell").status.code()
    };
    // In two pieces, so that this file does not have it.
    let (old, new) = (repository(), concat!("https://git.example", ".com/team.a/locks"));
    let repeated = having(copy.path(), &files, old);
    for wanted in ["README.md", "Cargo.toml", "deploy/prometheus/quorate.rules.yml"] {
        assert!(repeated.iter().any(|path| path == wanted), "{wanted} does not have it");
    }
    assert_eq!(set(new), Some(0));
    assert_eq!(having(copy.path(), &files, old), [""; 0], "these still have the old address");
    assert_eq!(having(copy.path(), &files, new), repeated);

    for wrong in ["git.example.com/locks", "https://a", "https://a/b/", "https://a/b c", ""] {
        assert_eq!(set(wrong), Some(64), "`{wrong}` is no address");
    }
    // Back again: nothing else has changed.
    assert_eq!(set(old), Some(0));
    for (path, text) in &files {
        let now = fs::read_to_string(copy.path().join(path)).unwrap();
        assert!(now == *text, "{path} has changed");
    }
}
