//! Who may import whom: the folders of `src/` stand on floors, and name only what is not above.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    code::{code, first_word, in_word, names},
    rules::{Finding, Rule},
};

/// From low to high.
const FLOORS: [&[&str]; 12] = [
    &["proto", "mutant", "metric"],
    &["clock", "signal", "fence", "series"],
    &["settings", "keys"],
    &["scripts"],
    &["voter"],
    &["acquire", "embedded"],
    &["hold"],
    &["locks"],
    &["redisson"],
    &["client"],
    &["blocking"],
    &["lib", "main", "bin", "program"],
];
const TOP: usize = FLOORS.len() - 1;

pub(crate) const NO_IMPORT_FROM_ABOVE: Rule = |path, text| {
    let Some(module) = module_of(path) else { return Vec::new() };
    let Some(own) = floor_of(&module[0]) else {
        let complaint = format!("`{}` stands on no floor: give it one in tests/house", module[0]);
        return vec![Finding { line: 1, complaint }];
    };
    let above = |(line, name): (usize, String)| {
        // What is no module is one of the names that lib.rs shows to users.
        let is_above = floor_of(&name).unwrap_or(TOP) > own;
        let complaint = format!("`{name}` is above `{}`", module[0]);
        is_above.then_some(Finding { line, complaint })
    };
    imports(text, module.len()).into_iter().filter_map(above).collect()
};

/// `src/voter/single/mod.rs` is `voter::single`.
fn module_of(path: &str) -> Option<Vec<String>> {
    let path = path.strip_prefix("src/")?.strip_suffix(".rs")?;
    let path = path.strip_suffix("/mod").unwrap_or(path);
    Some(path.split('/').map(str::to_owned).collect())
}

fn floor_of(name: &str) -> Option<usize> {
    FLOORS.iter().position(|names| names.contains(&name))
}

/// The names directly under the crate's root that the code names, with their lines; `depth` is how
/// many `super` lead from the file to the root.
fn imports(text: &str, depth: usize) -> Vec<(usize, String)> {
    let (lines, mut found) = (code(text), Vec::new());
    let text = lines.join("\n");
    let line_of = |at: usize| text[..at].matches('\n').count();
    // Unit tests could name the library as its users do.
    for root in ["crate::", "quorate::", "super::"] {
        for (at, _) in text.match_indices(root) {
            let path = text[at..].trim_start_matches(root);
            let start = text.len() - path.len();
            // Further ones of a row of `super` came with the first.
            if text[..at].ends_with(in_word) || text[..at].ends_with("super::") {
                continue;
            }
            let up = (start - at) / root.len();
            let is_root = root != "super::" || up >= depth + modules_around(&lines[..=line_of(at)]);
            let heads = heads(path).into_iter().map(|(at, name)| (start + at, name));
            // A `super` within a group may lead to the root too.
            let heads = heads.filter(|(_, name)| is_root || *name == "super");
            found.extend(heads.map(|(at, name)| (line_of(at) + 1, name.to_owned())));
        }
    }
    found
}

/// What a path begins with, or each path of a group, and where.
fn heads(path: &str) -> Vec<(usize, &str)> {
    let (mut found, mut depth, mut begins) = (Vec::new(), 0, true);
    for (at, sign) in path.char_indices() {
        match sign {
            '{' => (depth, begins) = (depth + 1, depth == 0),
            '}' => (depth, begins) = (depth - 1, false),
            ',' if depth == 1 => begins = true,
            sign if begins && !sign.is_whitespace() => {
                begins = false;
                let word = first_word(&path[at..]);
                found.push((at, if word.is_empty() { &path[at..=at] } else { word }));
            }
            _ => {}
        }
        if depth == 0 && !begins {
            break;
        }
    }
    found
}

/// How many modules of the file the last of these lines stands in: one or none, as rustfmt has it.
fn modules_around(lines: &[String]) -> usize {
    let opens = |line: &String| {
        !line.starts_with(' ') && names(line, "mod") && line.trim_end().ends_with('{')
    };
    let inside = lines.iter().fold(false, |inside, line| opens(line) || inside && line != "}");
    usize::from(inside)
}

/// Circles among the modules of one folder: each with the folder, and two that lead to one another.
pub(crate) fn circles(files: &[(String, String)]) -> Vec<String> {
    let mut modules: BTreeMap<Vec<String>, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for (path, text) in files.iter().filter(|(path, _)| !path.contains("/tests/")) {
        let Some(module) = module_of(path) else { continue };
        for depth in 0..module.len() {
            let named = siblings(text, &module[..depth], module.len() - depth);
            let of_folder = modules.entry(module[..depth].to_vec()).or_default();
            of_folder.entry(module[depth].clone()).or_default().extend(named);
        }
    }
    let mut found = Vec::new();
    for (folder, mut named) in modules {
        let names: BTreeSet<String> = named.keys().cloned().collect();
        for (own, leads) in &mut named {
            leads.retain(|to| names.contains(to) && to != own);
        }
        // Whoever is named leads on to whom it names.
        for through in &names {
            let further = named[through].clone();
            for leads in named.values_mut().filter(|leads| leads.contains(through)) {
                leads.extend(further.iter().cloned());
            }
        }
        let at = folder.join("/");
        let both =
            |one: &String, other: &String| named[one].contains(other) && named[other].contains(one);
        for one in &names {
            let others = names.range(one.clone()..).skip(1).filter(|other| both(one, other));
            found.extend(others.map(|other| format!("src/{at}: `{one}` and `{other}`")));
        }
    }
    found
}

/// What a file names directly under this folder, which is so many `super` above it.
fn siblings(text: &str, folder: &[String], up: usize) -> BTreeSet<String> {
    let text = code(text).join("\n");
    // What unit tests name is no matter.
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let supers = "super::".repeat(up);
    let above = ["crate".to_owned()].into_iter().chain(folder.iter().cloned());
    let absolute = above.collect::<Vec<_>>().join("::") + "::";
    let mut found = BTreeSet::new();
    for (root, is_super) in [(&supers, true), (&absolute, false)] {
        for (at, _) in text.match_indices(root.as_str()) {
            let path = &text[at + root.len()..];
            let goes_on =
                is_super && (text[..at].ends_with("super::") || path.starts_with("super::"));
            if !goes_on && !text[..at].ends_with(in_word) {
                found.extend(heads(path).into_iter().map(|(_, name)| name.to_owned()));
            }
        }
    }
    found
}
