//! The files of the repository.

use std::{fs, path::Path};

use quorate_support::ROOT;

/// Every text file of the repository: its path from the root, and its text.
pub(crate) fn files() -> Vec<(String, String)> {
    let mut found = Vec::new();
    walk("", &mut found);
    found.sort();
    found
}

fn walk(under: &str, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(Path::new(ROOT).join(under)).expect("a folder of the tree") {
        let entry = entry.expect("an entry of the tree");
        let name = entry.file_name().into_string().expect("names are text");
        let path = if under.is_empty() { name.clone() } else { format!("{under}/{name}") };
        // The history, and what `.gitignore` names.
        if [".git", "target", "secrets"].contains(&&*name) {
            continue;
        }
        if entry.file_type().expect("an entry has a type").is_dir() {
            walk(&path, found);
        } else if let Ok(text) = fs::read_to_string(entry.path()) {
            found.push((path, text));
        }
    }
}
