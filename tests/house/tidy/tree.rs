//! The files of the repository.

use quorate_support::ROOT;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Every text file that belongs to the repository: its path from the root, and its text.
pub(crate) fn files() -> Vec<(String, String)> {
    let root = Path::new(ROOT);
    let mut paths = listed_by_git(root).unwrap_or_else(|| {
        let mut paths = Vec::new();
        walk(root, "", &mut paths);
        paths
    });
    paths.sort();
    assert!(paths.iter().any(|path| path == "src/lib.rs"), "the tree was not found: {paths:?}");
    // What is no text (or was just deleted) has no lines to judge.
    let read = |path: String| fs::read_to_string(root.join(&path)).ok().map(|text| (path, text));
    paths.into_iter().filter_map(read).collect()
}

/// Committed or not, but not what `.gitignore` names; nothing where this is no git checkout.
fn listed_by_git(root: &Path) -> Option<Vec<String>> {
    let listing = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git").args(listing).current_dir(root).output().ok()?;
    let names = String::from_utf8(output.stdout).ok()?;
    let paths: Vec<_> =
        names.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    (output.status.success() && !paths.is_empty()).then_some(paths)
}

fn walk(root: &Path, under: &str, paths: &mut Vec<String>) {
    for entry in fs::read_dir(root.join(under)).expect("a folder of the tree") {
        let entry = entry.expect("an entry of the tree");
        let name = entry.file_name().into_string().expect("names are text");
        let path = if under.is_empty() { name.clone() } else { format!("{under}/{name}") };
        if !entry.file_type().expect("an entry has a type").is_dir() {
            paths.push(path);
        } else if name != ".git" && name != "target" {
            walk(root, &path, paths);
        }
    }
}

#[test]
fn the_tree_without_git_holds_all_that_git_lists() {
    let root = Path::new(ROOT);
    let mut walked = Vec::new();
    walk(root, "", &mut walked);
    for listed in listed_by_git(root).unwrap_or_default() {
        assert!(walked.contains(&listed) || !root.join(&listed).exists(), "{listed}");
    }
}
