//! Who may import whom: the folders of `src/` stand on floors, and name only what is not above.

use quorate_tests::prelude::*;

use super::{code, in_word};
use crate::tree::files;

/// From low to high.
const FLOORS: [&[&str]; 14] = [
    &["proto", "mutant", "metric", "sync"],
    &["client_thread", "log"],
    &["clock", "signal", "fence", "series"],
    &["settings", "keys"],
    &["scripts"],
    &["voter"],
    &["kinds", "embedded"],
    &["acquire"],
    &["hold"],
    &["locks"],
    &["redisson"],
    &["client"],
    &["blocking"],
    &["lib", "main", "bin", "program"],
];

fn floor_of(name: &str) -> Option<usize> {
    FLOORS.iter().position(|names| names.contains(&name))
}

/// `src/voter/single/mod.rs` is `voter::single`.
fn module_of(path: &str) -> Option<Vec<String>> {
    let path = path.strip_prefix("src/")?.strip_suffix(".rs")?;
    let path = path.strip_suffix("/mod").unwrap_or(path);
    Some(path.split('/').map(str::to_owned).collect())
}

/// A path from the root of the crate on.
type Import = Vec<String>;

/// What a file names of the crate, each with its line.
fn imports(module: &[String], text: &str) -> Vec<(usize, Import)> {
    let lines = code(text);
    let text = lines.join("\n");
    let mut found = Vec::new();
    // Unit tests could name the library as its users do.
    for root in ["crate::", "quorate::", "super::"] {
        for (at, _) in text.match_indices(root) {
            // Further ones of a row of `super` come with the first.
            if text[..at].ends_with(in_word) || text[..at].ends_with("::") {
                continue;
            }
            let line = text[..at].matches('\n').count();
            let mut base = Vec::new();
            if root == "super::" {
                base = module.to_vec();
                // Of a module within the file, which rustfmt ends by a bracket at the left edge.
                let mut around = lines[..=line].iter().rev().take_while(|line| *line != "}");
                let opens = |line: &&String| line.starts_with("mod ") && line.ends_with('{');
                base.extend(around.find(opens).map(|_| "tests".to_owned()));
            }
            let named = expand(&text[at..]).into_iter().map(|path| {
                let path = path.into_iter().filter(|part| !["crate", "quorate"].contains(part));
                path.fold(base.clone(), |mut path, part| {
                    if part == "super" {
                        drop(path.pop());
                    } else {
                        path.push(part.to_owned());
                    }
                    path
                })
            });
            found.extend(named.map(|path| (line + 1, path)));
        }
    }
    found
}

/// The path that begins here; those of a group one by one.
fn expand(text: &str) -> Vec<Vec<&str>> {
    let Some(group) = text.strip_prefix('{') else {
        let end = text.find(|sign| !in_word(sign)).unwrap_or(text.len());
        // Such as `*`.
        let end = if end == 0 { text.chars().next().map_or(0, char::len_utf8) } else { end };
        let Some(rest) = text[end..].strip_prefix("::") else { return vec![vec![&text[..end]]] };
        return expand(rest)
            .into_iter()
            .map(|path| [&[&text[..end]], &path[..]].concat())
            .collect();
    };
    let (mut depth, mut start, mut found) = (1, 0, Vec::new());
    for (at, sign) in group.char_indices() {
        depth = match sign {
            '{' => depth + 1,
            '}' => depth - 1,
            _ => depth,
        };
        if depth == 0 || depth == 1 && sign == ',' {
            found.extend(expand(group[start..at].trim()));
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    found.retain(|path| *path != [""]);
    found
}

/// What a file imports from above its own floor.
fn from_above(path: &str, text: &str) -> Vec<String> {
    let Some(module) = module_of(path) else { return Vec::new() };
    let Some(own) = floor_of(&module[0]) else {
        return vec![format!("`{}` stands on no floor: give it one in tests/house", module[0])];
    };
    // What is no module is one of the names that lib.rs shows to users.
    let is_above = |name: &str| floor_of(name).unwrap_or(FLOORS.len() - 1) > own;
    let above = imports(&module, text).into_iter().filter(|(_, path)| is_above(&path[0]));
    above.map(|(line, name)| format!("{path}:{line}: `{}` is above it", name.join("::"))).collect()
}

/// Circles among the modules of one folder: each with the folder, and two that lead to one another.
fn circles(files: &[(String, String)]) -> Vec<String> {
    let mut folders: BTreeMap<Import, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for (path, text) in files.iter().filter(|(path, _)| !path.contains("/tests/")) {
        let Some(module) = module_of(path) else { continue };
        // What unit tests name is no matter.
        let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let imports = imports(&module, text);
        for depth in 0..module.len() {
            let (folder, own) = (&module[..depth], &module[depth]);
            let named = imports.iter().filter(|(_, path)| path.starts_with(folder));
            let named = named.filter_map(|(_, path)| path.get(depth).filter(|name| *name != own));
            let of_folder = folders.entry(folder.to_vec()).or_default();
            of_folder.entry(own.clone()).or_default().extend(named.cloned());
        }
    }
    let mut found = Vec::new();
    for (folder, mut named) in folders {
        let names: Vec<String> = named.keys().cloned().collect();
        // Whoever is named leads on to whom it names.
        for through in &names {
            let further = named[through].clone();
            for leads in named.values_mut().filter(|leads| leads.contains(through)) {
                leads.extend(further.iter().cloned());
            }
        }
        for (at, one) in names.iter().enumerate() {
            let both = |other: &&String| named[one].contains(*other) && named[*other].contains(one);
            let others = names[at + 1..].iter().filter(both);
            let folder = folder.join("/");
            found.extend(others.map(|other| format!("src/{folder}: `{one}` and `{other}`")));
        }
    }
    found
}

#[test]
fn no_file_imports_a_floor_above_its_own() {
    for (path, planted) in [
        ("src/proto/votes.rs", "use crate::{\n proto::{A, B},\n voter::Voter,\n};"),
        ("src/proto/votes.rs", "use super::{\n A,\n super::locks::Mutex};"),
        ("src/proto/mod.rs", "use super::{proto::A, locks};"),
        ("src/clock/mod.rs", "mod tests {\n use super::super::voter::Voter;\n}"),
        ("src/scripts/mod.rs", "fn f() {}\nfn g(x: crate::client::Client) {}"),
        ("src/client.rs", "use super::*;"),
        ("src/locks/fair.rs", "#[cfg(test)] mod tests { use quorate::Mutex; }"),
        ("src/elsewhere.rs", ""),
    ] {
        let found = from_above(path, planted);
        assert_eq!(found.len(), 1, "{path}: {planted}: {found:?}");
    }
    for (path, permitted) in [
        ("src/hold/guard.rs", "use crate::{proto::{Error, HoldId}, hold::Reaper, voter};"),
        ("src/proto/error.rs", "/// [`Mutex`](crate::Mutex)\nuse super::HoldId;"),
        ("src/clock/mod.rs", "mod tests {\n use super::*;\n use super::super::proto::A;\n}"),
        ("src/voter/single/mod.rs", "use super::{Call, task}; pub(in crate::voter) fn f() {}"),
        ("src/lib.rs", "use crate::client::Client;\nmod tests {\n use super::*;\n}"),
        ("tests/log.rs", "use crate::anything;"),
    ] {
        assert_eq!(from_above(path, permitted), [""; 0], "{path}: {permitted}");
    }
    let found: Vec<_> = files().iter().flat_map(|(path, text)| from_above(path, text)).collect();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn no_two_modules_of_a_folder_lead_to_one_another() {
    let found = |third: &[(&str, &str)]| {
        let two = [("src/x/a.rs", "use super::b::B;"), ("src/x/b.rs", "\nuse super::{c, d::D};")];
        let files = two.iter().chain(third);
        let files = files.map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
        circles(&files.collect::<Vec<_>>())
    };
    let back = "use super::{\n    a::{A, B},\n};";
    let circle = ["src/x: `a` and `b`", "src/x: `a` and `c`", "src/x: `b` and `c`"];
    assert_eq!(found(&[("src/x/c.rs", back)]), circle);
    assert_eq!(found(&[("src/x/c/e.rs", "use super::super::a;")]), circle);
    assert_eq!(found(&[("src/x/c/mod.rs", "use crate::x::a::A;")]), circle);
    let tests = "// super::a\n#[cfg(test)]\nmod tests {\n    use super::super::a;\n}";
    assert_eq!(found(&[("src/x/c.rs", tests), ("src/x/tests/d.rs", back)]), [""; 0]);
    let circles = circles(&files());
    assert!(circles.is_empty(), "\n{}", circles.join("\n"));
}
