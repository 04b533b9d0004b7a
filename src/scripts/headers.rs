//! Compares the header of each script with its code, as comments alone would go stale.

use super::{ALL, Script, Text};
use crate::settings::Settings;

/// Whether a script or its libraries take these names from a list, as in
/// `local a, b = unpack(KEYS, key + 1, key + 2)`.
fn reads(script: &Script, names: &[&str], list: &str, from: &str) -> bool {
    let of = |at: usize| if from.is_empty() { at.to_string() } else { format!("{from} + {at}") };
    let all = names.iter().enumerate();
    // The first ones may be taken one by one, by the library that needs them, and the others
    // together by the script.
    (0..names.len()).any(|first| {
        let (one_by_one, together) = names.split_at(first);
        let one_by_one = one_by_one.iter().zip(1..);
        let mut lines = one_by_one.map(|(name, at)| format!("local {name} = {list}[{}]\n", of(at)));
        let last = format!(
            "local {} = unpack({list}, {}, {})\n",
            together.join(", "),
            of(first + 1),
            of(names.len())
        );
        lines.all(|line| script.source.contains(&line)) && script.source.contains(&last)
    }) || all
        .map(|(at, name)| format!("local {name} = {list}[{}]\n", of(at + 1)))
        .all(|line| script.source.contains(&line))
}

#[test]
fn the_code_takes_what_the_header_names() {
    for script in ALL {
        let function = script.name.rsplit('/').next().unwrap();
        let Text { shared, args: own, .. } = &***script;
        assert!(reads(script, &script.keys, "KEYS", "key"), "{}: its keys", script.name);
        assert!(reads(script, shared, "ARGV", ""), "{}: {shared:?}", script.name);
        assert!(reads(script, own, "args", "arg"), "{}: {own:?}", script.name);
        let counts = [script.keys.len(), shared.len(), own.len(), script.width];
        let counts = counts.map(|count| count.to_string()).join(", ");
        let last = format!("return each({counts}, {function})");
        assert_eq!(script.source.lines().last(), Some(last.as_str()), "{}", script.name);
    }
}

#[test]
fn the_header_says_what_it_returns_and_why_it_must_be_atomic() {
    for script in ALL {
        let first = format!("-- {}: ", script.name);
        for needed in [first.as_str(), "-- returns, for each request: code, ms, id", "-- atomic, "]
        {
            let found = script.source.lines().any(|line| line.starts_with(needed));
            assert!(found, "{}: no line `{needed}`", script.name);
        }
    }
}

#[test]
fn every_part_of_every_file_under_lua_is_in_a_script() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("lua");
    for file in std::fs::read_dir(&root).unwrap() {
        let file = file.unwrap().path();
        let text = std::fs::read_to_string(&file).unwrap();
        let parts: Vec<_> = text.split("\n----\n").skip(1).collect();
        assert!(!parts.is_empty(), "{} has none", file.display());
        for part in parts {
            let used = ALL.iter().any(|script| script.source.contains(part));
            assert!(used, "a part of {} is in no script:\n{part}", file.display());
        }
    }
}

// A voter drops places beyond this as written by somebody else. A shorter limit than a lease would
// drop the place of a holder.
#[test]
fn the_longest_time_that_a_place_counts_is_the_longest_lease() {
    let line = "local LONGEST_MS = 24 * 3600 * 1000\n";
    let queues: Vec<_> = ALL.iter().filter(|script| script.source.contains("-- queue: ")).collect();
    assert!(!queues.is_empty() && queues.iter().all(|script| script.source.contains(line)));
    assert_eq!(Settings::LONGEST_LEASE.as_millis(), 24 * 3600 * 1000);
}
