//! What users read in errors and in the log: the tables and the tests have all of it.

use std::collections::BTreeSet;

use crate::tidy::tree::files;

/// The string literals of code, without line breaks inside them.
fn literals(code: &str) -> Vec<String> {
    let (mut found, mut rest) = (Vec::new(), code);
    while let Some(at) = rest.find(['"', '/', '\'']) {
        let (sign, after) = (&rest[at..=at], &rest[at + 1..]);
        match sign {
            "/" if after.starts_with('/') => {
                rest = after.split_once('\n').map_or("", |(_, rest)| rest);
            }
            "'" if after.starts_with("\"'") => rest = &after[2..],
            "\"" => {
                let mut escaped = false;
                let end = after.find(|sign| {
                    let ends = sign == '"' && !escaped;
                    escaped = sign == '\\' && !escaped;
                    ends
                });
                let Some(end) = end else { break };
                found.push(joined(&after[..end]));
                rest = &after[end + 1..];
            }
            _ => rest = after,
        }
    }
    found
}

/// A backslash at the end of a line continues the text behind the next line's blanks.
fn joined(text: &str) -> String {
    let mut parts = text.split("\\\n");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |joined, part| joined + part.trim_start())
}

/// What stands between the bracket that `code` begins with and the one that closes it.
fn inside(code: &str) -> &str {
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    let end = code.find(|sign| {
        match sign {
            '"' if !escaped => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth -= 1,
            _ => {}
        }
        escaped = sign == '\\' && !escaped;
        depth == 0
    });
    &code[1..end.unwrap_or(code.len())]
}

fn is_rust(path: &str) -> bool {
    path.strip_suffix(".rs").is_some()
}

/// The code of the library without its tests.
fn library() -> Vec<(String, String)> {
    let is_source =
        |path: &str| path.starts_with("src/") && is_rust(path) && !path.contains("test");
    let code = |text: String| match text.split_once("#[cfg(test)]\nmod tests {") {
        Some((code, _)) => code.to_owned(),
        None => text,
    };
    let sources = files().into_iter().filter(|(path, _)| is_source(path));
    sources.map(|(path, text)| (path, code(text))).collect()
}

/// All text of the tests, as literals have it.
fn tests() -> String {
    let tests = files().into_iter().filter_map(|(path, text)| match &*path {
        // What is excused here is held by nothing.
        path if !is_rust(path) || path == "tests/house/texts.rs" => None,
        path if path.starts_with("tests/") || path.contains("test") => Some(text),
        path if path.starts_with("src/") => {
            text.split_once("#[cfg(test)]\nmod tests {").map(|(_, tests)| tests.to_owned())
        }
        _ => None,
    });
    tests.map(|text| literals(&text).join("\n")).collect::<Vec<_>>().join("\n")
}

/// The arguments of each call that begins so.
fn calls<'code>(code: &'code str, call: &str) -> Vec<&'code str> {
    code.match_indices(call).map(|(at, _)| inside(&code[at + call.len() - 1..])).collect()
}

#[test]
fn every_event_of_the_log_is_in_the_table_of_the_crate_and_every_row_is_one() {
    let mut logged = BTreeSet::new();
    for (path, code) in library() {
        for level in ["error", "warn", "info", "debug"] {
            for call in calls(&code, &format!("tracing::{level}!(")) {
                let message = literals(call).pop();
                let message = message.unwrap_or_else(|| panic!("{path}: {call}"));
                logged.insert(format!("{level} | {message}"));
            }
        }
    }
    let lib = include_str!("../../src/lib.rs");
    let rows = lib.lines().filter_map(|line| line.strip_prefix("//! | ")?.strip_suffix(" |"));
    let rows = rows.filter_map(|row| {
        let (event, _fields) = row.rsplit_once(" | ")?;
        let (level, _) = event.split_once(" | ")?;
        ["error", "warn", "info", "debug"].contains(&level).then(|| event.to_owned())
    });
    assert!(logged.len() > 20, "{logged:?}");
    assert_eq!(logged, rows.collect());
}

/// The longest piece of a text that has no values in it.
fn fixed_piece(text: &str) -> &str {
    let pieces = text.split(['{', '}']).step_by(2);
    pieces.max_by_key(|piece| piece.len()).unwrap_or_default().trim()
}

/// What a server that keeps to its protocol and a system with room for a thread never say.
const NOT_BROUGHT_ABOUT: [&str; 9] = [
    "the thread of a blocking client cannot be started",
    "no servers in the answer",
    "no identity",
    "unexpected answer",
    "unexpected reply",
    "the answer to INFO is no text",
    "SCAN answers",
    "it still loads its data",
    "expected code, ms, id but got",
];

#[test]
fn every_text_of_an_error_is_held_by_a_test() {
    let tests = tests();
    let mut unheld = Vec::new();
    for (path, code) in library() {
        let calls = ["Error::invalid(", "Error::refused(", "refuse(", "Cause::Rejected("];
        let calls = calls.iter().flat_map(|call| self::calls(&code, call));
        let written = ["write!(", ".write_str("].iter().flat_map(|call| self::calls(&code, call));
        let shown = ["error.rs", "verdict.rs", "quarantine.rs", "taker.rs", "loss.rs"];
        let written = written.filter(|_| shown.iter().any(|file| path.ends_with(file)));
        for text in calls.chain(written).flat_map(literals) {
            let piece = fixed_piece(&text);
            let is_excused = NOT_BROUGHT_ABOUT.iter().any(|excused| text.starts_with(excused));
            if piece.len() >= 8 && !tests.contains(piece) && !is_excused {
                unheld.push(format!("{path}: {text}"));
            }
        }
    }
    assert!(unheld.is_empty(), "no test has these:\n{}", unheld.join("\n"));
}

#[test]
fn literals_are_read_as_the_compiler_reads_them() {
    let code = "a(\"b \\\"c\\\" \\\n     d\", '\"') // \"e\"\nf(\"g\")";
    assert_eq!(literals(code), [r#"b \"c\" d"#, "g"]);
    assert_eq!(inside("(a(\")\"), b) c"), "a(\")\"), b");
    assert_eq!(fixed_piece("no {number} for {hold} at all"), "at all");
}
