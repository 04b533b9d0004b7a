//! The order of the tree. Each test first shows that its rule finds planted violations and nothing
//! else, and then holds the rule against every file.

mod carrier;
mod floors;
mod guarantees;
mod record;
mod server_texts;
mod specification;

use crate::tree::files;

/// The code of each line, without comments and strings. From its second line on a string counts as
/// code: at worst a word of a text is found that is none of the code.
fn code(text: &str) -> Vec<String> {
    let code_of = |line: &str| {
        let line = line.replace(r"\\", "").replace("\\\"", "").replace("'\"'", "");
        let outside: Vec<_> = line.split('"').step_by(2).collect();
        outside.join("\"\"").split("//").next().unwrap_or_default().to_owned()
    };
    text.lines().map(code_of).collect()
}

/// Whether the code has these signs, and not as a part of a longer word.
fn names(code: &str, what: &str) -> bool {
    code.match_indices(what).any(|(at, _)| {
        let (before, after) = (&code[..at], &code[at + what.len()..]);
        let goes_on_before = before.ends_with(in_word) && what.starts_with(in_word);
        let goes_on_after = after.starts_with(in_word) && what.ends_with(in_word);
        !goes_on_before && !goes_on_after
    })
}

fn in_word(sign: char) -> bool {
    sign.is_alphanumeric() || sign == '_'
}

/// Words that only files under these paths may have. What reads a clock, clippy knows: here nobody
/// else is excused from it.
const RESERVED: [(&str, &[&str]); 3] = [
    ("fred", &["src/voter/single/carrier.rs"]),
    ("mlua", &["src/embedded/"]),
    ("clippy::disallowed_methods", &["src/clock/mod.rs", "src/bin/quorate/clock.rs"]),
];

/// Decisions have no runtime, no clock, and no chance of their own.
const IMPURE: [&str; 7] =
    ["async", "tokio", "Instant", "SystemTime", "rand::rng", "rng()", "rand::random"];

/// The words of a file that do not belong there, each with its line.
fn misplaced(path: &str, text: &str) -> Vec<String> {
    if !path.starts_with("src/") || path.strip_suffix(".rs").is_none() {
        return Vec::new();
    }
    let reserved = RESERVED.iter().filter(|(_, at)| !at.iter().any(|at| path.starts_with(at)));
    let impure = IMPURE.iter().filter(|_| path.starts_with("src/proto/"));
    let words: Vec<_> = reserved.map(|(word, _)| word).chain(impure).collect();
    // A forked process may find it locked for ever: `PerProcess` is for that.
    let is_static =
        |line: &str| line.split_whitespace().any(|word| word == "static") && names(line, "Mutex");
    let lines = code(text).into_iter().zip(1..);
    let found = lines.filter_map(|(line, number)| {
        let word = words.iter().find(|word| names(&line, word)).copied();
        let word = word.or_else(|| is_static(&line).then_some(&"static Mutex"))?;
        Some(format!("{path}:{number}: `{word}`"))
    });
    found.collect()
}

#[test]
fn fred_lua_clocks_chance_and_statics_stay_in_their_places() {
    for (path, planted) in [
        ("src/voter/single/link.rs", "use tokio::sync;\nuse fred::prelude::*;"),
        ("src/proto/error.rs", "\nimpl From<mlua::Error> for Error {}"),
        ("src/hold/watchdog.rs", "\n#[expect(clippy::disallowed_methods, reason = \"haste\")]"),
        ("src/proto/votes.rs", "\nasync fn count() {}"),
        ("src/proto/votes.rs", "// now\nuse std::time::{Duration, Instant};"),
        ("src/proto/votes.rs", "\nlet pause = rng().random_range(0..9);"),
        ("src/log.rs", "\nstatic QUEUE: Mutex<u32> = Mutex::new(0);"),
    ] {
        let found = misplaced(path, planted);
        assert!(found.len() == 1 && found[0].starts_with(&format!("{path}:2: ")), "{found:?}");
    }
    for (path, permitted) in [
        ("src/voter/voter.rs", "// fred is late\nlet alfred = \"fred \\\" // \"; async {}"),
        ("src/embedded/lua.rs", "use mlua::Lua;"),
        ("src/clock/mod.rs", "#[expect(clippy::disallowed_methods)]"),
        ("tests/log.rs", "#[expect(clippy::disallowed_methods)]"),
        ("src/log.rs", "static QUEUE: PerProcess<u32> = PerProcess::new(); // no Mutex"),
        ("src/proto/votes.rs", "// async\nuse std::time::Duration; fn f(rng: &mut impl Rng) {}"),
    ] {
        assert_eq!(misplaced(path, permitted), [""; 0]);
    }
    let found: Vec<_> = files().iter().flat_map(|(path, text)| misplaced(path, text)).collect();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

// Anybody may read the repository, on a machine of their own.
#[test]
fn no_file_names_a_path_of_one_machine() {
    // In two pieces each, so that this file may stand in the repository.
    let roots = [concat!("/wo", "rk/"), concat!("/tm", "p/wt-"), concat!("/ro", "ot/")];
    let starts = |before: &str| !before.ends_with(|sign| in_word(sign) || "-.".contains(sign));
    let is_named = |text: &str| {
        let mut found = roots.iter().flat_map(|root| text.match_indices(root));
        found.any(|(at, _)| starts(&text[..at]))
    };
    assert!(is_named(concat!("see `/wo", "rk/notes`")));
    assert!(!is_named(concat!("https://example.org/wo", "rk/ and ./wo", "rk/")));
    let found: Vec<_> = files().into_iter().filter(|(_, text)| is_named(text)).collect();
    assert!(found.is_empty(), "{:?}", found.iter().map(|(path, _)| path).collect::<Vec<_>>());
}
