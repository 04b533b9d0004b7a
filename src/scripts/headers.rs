//! Headers rot: this holds each against its code and against the catalog.

use super::{ALL, Script};
use crate::{
    mutant::{IN_SCRIPTS, ScriptMutant},
    settings::Settings,
};

/// The names behind `label` in the script's header.
fn named(script: &Script, label: &str) -> Vec<&'static str> {
    let prefix = format!("-- {label}, for each request: ");
    let line = script.source.lines().find_map(|line| line.strip_prefix(&prefix));
    let names = line.unwrap_or_else(|| panic!("{}: no line `{prefix}`", script.name));
    if names == "none" { Vec::new() } else { names.split(", ").collect() }
}

#[test]
fn the_header_names_the_keys_and_arguments_of_the_catalog() {
    for script in ALL {
        assert_eq!(named(script, "KEYS"), script.keys, "{}", script.name);
        assert_eq!(named(script, "ARGV"), script.args, "{}", script.name);
    }
}

#[test]
fn the_code_takes_what_the_header_names() {
    for script in ALL {
        let function = script.name.rsplit('/').next().unwrap();
        let parameters: Vec<_> = script.keys.iter().chain(script.args).copied().collect();
        let signature = format!("local function {function}({}) ", parameters.join(", "));
        // It may go over several lines.
        let code = script.source.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(code.contains(&signature), "{}: no `{signature}`", script.name);
        let last = format!("return each({}, {}, {function})", script.keys.len(), script.args.len());
        assert_eq!(script.source.lines().last(), Some(last.as_str()), "{}", script.name);
    }
}

#[test]
fn the_header_says_what_it_returns_and_why_it_must_be_atomic() {
    for script in ALL {
        let first = format!("-- {}: ", script.name);
        for needed in
            [first.as_str(), "-- returns, for each request: code, ms, text", "-- atomic, "]
        {
            let found = script.source.lines().any(|line| line.starts_with(needed));
            assert!(found, "{}: no line `{needed}`", script.name);
        }
    }
}

/// Whoever changes a script sees here which mutant has to move with it.
#[test]
fn every_mutant_of_a_script_fits_it_once() {
    for ScriptMutant { name, script, find, replace } in IN_SCRIPTS {
        let script = ALL.iter().find(|known| known.name == *script);
        let source = script.unwrap_or_else(|| panic!("{name}: no such script")).source;
        assert_eq!(source.matches(find).count(), 1, "{name}: how often is this there: {find}");
        assert_ne!(source, source.replace(find, replace), "{name}");
    }
}

#[test]
fn every_file_under_lua_is_in_the_catalog() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("lua");
    for folder in std::fs::read_dir(&root).unwrap() {
        let folder = folder.unwrap().path();
        for file in std::fs::read_dir(&folder).unwrap() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            let used = ALL.iter().any(|script| script.source.contains(&text));
            assert!(used, "a file of {} is in no script:\n{text}", folder.display());
        }
    }
}

/// No place counts for longer than a lease can last.
#[test]
fn the_longest_time_that_a_place_counts_is_the_longest_lease() {
    let line = "local LONGEST_MS = 24 * 3600 * 1000\n";
    let queues: Vec<_> = ALL.iter().filter(|script| script.source.contains("-- queue: ")).collect();
    assert!(!queues.is_empty() && queues.iter().all(|script| script.source.contains(line)));
    assert_eq!(Settings::LONGEST_LEASE.as_millis(), 24 * 3600 * 1000);
}
