//! The rules for single files: each is a function of a path and a text.

use std::{collections::BTreeMap, path::Path};

use super::code::{code, names};

/// What is wrong, and on which line.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) line: usize,
    pub(crate) complaint: String,
}

pub(crate) type Rule = fn(path: &str, text: &str) -> Vec<Finding>;

const COLUMNS: usize = 100;
const NOTE_WORDS: usize = 5;

pub(crate) const FRED_ONLY_IN_SINGLE: Rule =
    |path, text| only_under("src/voter/single/", "fred", path, text);

pub(crate) const MLUA_ONLY_IN_EMBEDDED: Rule =
    |path, text| only_under("src/embedded/", "mlua", path, text);

fn only_under(folder: &str, name: &str, path: &str, text: &str) -> Vec<Finding> {
    if !is_source(path) || path.starts_with(folder) {
        return Vec::new();
    }
    named(&[name], text)
}

pub(crate) const DECISIONS_ARE_PURE: Rule = |path, text| {
    let impure = ["async", "tokio", "Instant", "SystemTime", "rand::rng", "rng()", "rand::random"];
    if path.starts_with("src/proto/") { named(&impure, text) } else { Vec::new() }
};

/// That of the library, and that of the program.
const CLOCKS: [&str; 2] = ["src/clock/mod.rs", "src/bin/quorate/clock.rs"];

/// Clippy counts the lines of functions, and knows what reads a clock, however it is written.
pub(crate) const NOBODY_IS_EXCUSED_BY_CLIPPY: Rule = |path, text| {
    if !is_rust(path) {
        return Vec::new();
    }
    let may_read_clocks = !is_source(path) || CLOCKS.contains(&path);
    let excused = ["clippy::too_many_lines", "clippy::disallowed_methods"];
    named(&excused[..if may_read_clocks { 1 } else { 2 }], text)
};

pub(crate) const SHORT_LINES: Rule = |path, text| {
    if !is_code(path) {
        return Vec::new();
    }
    let long = |line: &str| {
        let columns = line.chars().count();
        (columns > COLUMNS).then(|| format!("{columns} columns; {COLUMNS} are the most"))
    };
    by_line(text, long)
};

pub(crate) const NOTES_ARE_SENTENCES: Rule = |_, text| {
    let note = concat!("TO", "DO");
    let bare = |line: &str| {
        let (before, after) = line.split_once(note)?;
        let is_note = !before.ends_with(char::is_alphanumeric) && !after.starts_with(is_in_name);
        let words = after.split_whitespace().filter(|word| word.contains(char::is_alphabetic));
        (is_note && words.count() < NOTE_WORDS).then(|| format!("{note} without a sentence"))
    };
    by_line(text, bare)
};

pub(crate) const NO_MACHINE_PATHS: Rule = |_, text| {
    // In two pieces each, so that this file may stand in the repository.
    let roots = [concat!("/wo", "rk/"), concat!("/tm", "p/wt-"), concat!("/ro", "ot/")];
    let names_one = |line: &str| {
        let starts_path = |at: usize| !line[..at].ends_with(|sign| is_in_name(sign) || sign == '.');
        let found =
            roots.iter().find(|root| line.match_indices(*root).any(|(at, _)| starts_path(at)));
        found.map(|root| format!("`{root}` is a path of one machine"))
    };
    by_line(text, names_one)
};

fn by_line(text: &str, judge: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    let judged = text.lines().zip(1..).filter_map(|(text, line)| Some((line, judge(text)?)));
    judged.map(|(line, complaint)| Finding { line, complaint }).collect()
}

/// Where the code, comments and strings aside, has one of these.
fn named(patterns: &[&str], text: &str) -> Vec<Finding> {
    let judge = |(line, code): (usize, &String)| {
        let pattern = patterns.iter().find(|pattern| names(code, pattern))?;
        Some(Finding { line: line + 1, complaint: format!("`{pattern}`") })
    };
    code(text).iter().enumerate().filter_map(judge).collect()
}

fn is_in_name(sign: char) -> bool {
    sign.is_alphanumeric() || sign == '_' || sign == '-'
}

pub(crate) fn is_rust(path: &str) -> bool {
    is_code(path) && extension(path) == Some("rs")
}

pub(crate) fn is_source(path: &str) -> bool {
    path.starts_with("src/") && extension(path) == Some("rs")
}

/// Rust, Lua and scripts (which have no extension), in the folders that hold them.
fn is_code(path: &str) -> bool {
    let folders = ["src/", "tests/", "benches/", "examples/", "lua/"];
    folders.iter().any(|folder| path.starts_with(folder))
        && matches!(extension(path), None | Some("rs" | "lua" | "sh"))
}

fn extension(path: &str) -> Option<&str> {
    Path::new(path).extension()?.to_str()
}

/// Names that several types of the library have, with their files; those of its unit tests aside.
///
/// What users see of `src/blocking/` has the names of what it does without async, as users know it
/// from other crates: `blocking::Mutex` beside `Mutex`. Each of these is the only one of its name
/// there.
pub(crate) fn names_of_several_types(files: &[(String, String)]) -> Vec<String> {
    let mut types: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let is_test = |path: &str| path.ends_with("_tests.rs") || path.contains("/tests/");
    for (path, text) in files.iter().filter(|(path, _)| is_source(path) && !is_test(path)) {
        for line in text.lines() {
            if let Some(name) = type_named(line) {
                let is_namesake = path.starts_with("src/blocking/") && line.starts_with("pub ");
                let place = if is_namesake { "blocking::" } else { "" };
                types.entry(format!("{place}{name}")).or_default().push(path.clone());
            }
        }
    }
    let several = types.into_iter().filter(|(_, paths)| paths.len() > 1);
    several.map(|(name, paths)| format!("{name}: {}", paths.join(", "))).collect()
}

/// The type that a line at the left edge begins to define.
fn type_named(line: &str) -> Option<&str> {
    let rest = match line.strip_prefix("pub") {
        Some(rest) => rest
            .strip_prefix('(')
            .and_then(|rest| rest.split_once(')'))
            .map_or(rest, |(_, rest)| rest),
        None => line,
    };
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    let kinds = ["struct ", "enum ", "trait ", "type "];
    let name = kinds.iter().find_map(|kind| rest.strip_prefix(kind))?;
    name.split(|sign: char| !sign.is_alphanumeric()).next()
}
