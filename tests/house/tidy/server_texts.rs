//! What servers say is read in one file, and compared with nothing elsewhere.

use super::code;
use crate::tree::files;

/// The file that reads it.
const READER: &str = "src/proto/server_error.rs";
/// Those that say it themselves: servers inside the process, and advice to operators.
const SPEAKERS: [&str; 2] = ["src/embedded/", "src/bin/quorate/doctor/checks.rs"];
/// How a text is compared with another.
const COMPARED: [&str; 8] = [
    ".contains(\"",
    ".starts_with(\"",
    ".ends_with(\"",
    ".strip_prefix(\"",
    ".split_once(\"",
    ".find(\"",
    "== \"",
    "!= \"",
];

/// The texts that the table of the reader has.
fn known(reader: &str) -> Vec<&str> {
    let (_, table) = reader.split_once("const ERRORS").expect("the reader has a table");
    let (table, _) = table.split_once("\n];").expect("the table ends");
    let rows = table.lines().filter(|row| row.trim_start().starts_with("(\""));
    rows.map(|row| row.split('"').nth(1).expect("a row has a text")).collect()
}

/// The part of a file that is no test.
fn shipped(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default()
}

/// Whether a text begins as the errors of servers do: with a word in capitals.
fn is_error(text: &str) -> bool {
    let capitals = text.bytes().take_while(u8::is_ascii_uppercase).count();
    capitals >= 3 && text.as_bytes().get(capitals).is_none_or(|next| b" \"".contains(next))
}

/// The lines of a file that have a text of servers.
fn misplaced(path: &str, text: &str, known: &[&str]) -> Vec<String> {
    let Some(file) = path.strip_prefix("src/").and_then(|path| path.strip_suffix(".rs")) else {
        return Vec::new();
    };
    if file.ends_with("tests") || file.contains("/tests/") {
        return Vec::new();
    }
    let speaks = path == READER || SPEAKERS.iter().any(|speaker| path.starts_with(speaker));
    let has_one = |line: &str| {
        let has_known = line
            .split('"')
            .skip(1)
            .step_by(2)
            .any(|literal| known.iter().any(|known| literal.contains(known)));
        let compares = COMPARED
            .iter()
            .any(|how| line.match_indices(how).any(|(at, _)| is_error(&line[at + how.len()..])));
        has_known && !speaks || compares && path != READER
    };
    let lines = shipped(text).lines().zip(code(text)).zip(1..);
    // Comments may name them.
    let lines = lines.filter(|((_, code), _)| !code.trim().is_empty());
    let found = lines.filter(|((line, _), _)| has_one(line));
    found.map(|((line, _), number)| format!("{path}:{number}: {}", line.trim())).collect()
}

#[test]
fn no_other_file_compares_what_a_server_says() {
    let files = files();
    let reader = files.iter().find(|(path, _)| path == READER).expect("the reader is there");
    let known = known(&reader.1);
    assert!(known.contains(&"NOSCRIPT") && known.len() > 15, "{known:?}");
    for (path, planted) in [
        ("src/voter/task.rs", "\nif why.starts_with(\"NOPERM\") {}"),
        ("src/bin/quorate/console.rs", "\nconst LOGIN: &str = \"NOAUTH\";"),
        ("src/embedded/server.rs", "\nif text.contains(\"EXECABORT\") {}"),
        ("src/client/status.rs", "\nlet is_late = text == \"ERR timeout\";"),
    ] {
        let found = misplaced(path, planted, &known);
        assert!(found.len() == 1 && found[0].starts_with(&format!("{path}:2: ")), "{found:?}");
    }
    for (path, permitted) in [
        (READER, "(\"NOPERM\", NotPermitted)"),
        ("src/embedded/commands.rs", "Err(\"OOM command not allowed\".into())"),
        ("src/voter/task.rs", "// NOPERM: \"NOPERM\"\nif why.is(UnknownScript) {}"),
        ("src/bin/quorate/setup.rs", "name.starts_with(\"QUORATE_\")"),
        ("src/voter/pauses.rs", "#[cfg(test)]\nmod tests {\n    of(\"NOAUTH\")\n}"),
        ("src/voter/single/tests/met.rs", "why.starts_with(\"NOPERM\")"),
    ] {
        assert_eq!(misplaced(path, permitted, &known), [""; 0]);
    }
    let found: Vec<_> =
        files.iter().flat_map(|(path, text)| misplaced(path, text, &known)).collect();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}
