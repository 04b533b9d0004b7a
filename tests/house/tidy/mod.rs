//! The tree keeps its own rules. Each test first shows that its rule finds planted violations and
//! nothing else, and then holds the rule against every file.

mod code;
mod floors;
mod guarantees;
mod rules;
pub(crate) mod tree;

use floors::NO_IMPORT_FROM_ABOVE;
use rules::{
    DECISIONS_ARE_PURE, FRED_ONLY_IN_SINGLE, Finding, MLUA_ONLY_IN_EMBEDDED, NO_MACHINE_PATHS,
    NOBODY_IS_EXCUSED_BY_CLIPPY, NOTES_ARE_SENTENCES, Rule, SHORT_LINES,
};

/// The planted text is found wrong, on that line and no other.
#[track_caller]
fn catches(rule: Rule, path: &str, text: &str, line: usize) {
    let found: Vec<usize> = rule(path, text).iter().map(|finding| finding.line).collect();
    assert_eq!(found, [line], "{path}: {text}");
}

#[track_caller]
fn permits(rule: Rule, path: &str, text: &str) {
    let found = rule(path, text);
    assert!(found.is_empty(), "{path}: {text}: {found:?}");
}

#[track_caller]
fn holds_in_the_tree(rule: Rule) {
    let mut broken = Vec::new();
    for (path, text) in tree::files() {
        let told = |finding: Finding| format!("{path}:{}: {}", finding.line, finding.complaint);
        broken.extend(rule(&path, &text).into_iter().map(told));
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

#[test]
fn no_file_imports_a_floor_above_its_own() {
    let rule = NO_IMPORT_FROM_ABOVE;
    catches(rule, "src/proto/name.rs", "\nuse crate::clock::Clock;", 2);
    let group = "use crate::{\n proto::{A, B},\n voter::Node,\n};";
    catches(rule, "src/proto/votes.rs", group, 3);
    catches(rule, "src/proto/votes.rs", "use super::super::hold::Guard;", 1);
    catches(rule, "src/proto/mod.rs", "use super::{proto::A, locks};", 1);
    catches(rule, "src/proto/votes.rs", "use super::{\n A,\n super::locks::Mutex};", 3);
    catches(rule, "src/clock/mod.rs", "mod tests {\n use super::super::voter::Node;\n}", 2);
    catches(rule, "src/scripts/mod.rs", "fn f() {}\nfn g(x: crate::client::Client) {}", 2);
    catches(rule, "src/hold/guard.rs", "use crate::Error;", 1);
    catches(rule, "src/client.rs", "use super::*;", 1);
    catches(rule, "src/locks/fair.rs", "#[cfg(test)] mod tests { use quorate::Mutex; }", 1);
    catches(rule, "src/elsewhere.rs", "", 1);
    let group = "use crate::{proto::{Error, HoldId}, hold::Reaper, voter};";
    permits(rule, "src/hold/guard.rs", group);
    permits(rule, "src/proto/error.rs", "/// [`Mutex`](crate::Mutex)\nuse super::HoldId;");
    permits(
        rule,
        "src/clock/mod.rs",
        "mod tests {\n use super::*;\n use super::super::proto::A;\n}",
    );
    permits(
        rule,
        "src/voter/single/mod.rs",
        "use super::{Call, task}; pub(in crate::voter) fn f() {}",
    );
    permits(rule, "src/voter/single/tests.rs", "use quorate_support::RedisServer;");
    permits(rule, "src/settings.rs", "use crate::keys::Prefix;");
    permits(rule, "src/lib.rs", "use crate::client::Client;\nmod tests {\n use super::*;\n}");
    permits(rule, "src/main.rs", "use quorate::Mutex;");
    permits(rule, "tests/harness.rs", "use crate::anything;");
    holds_in_the_tree(rule);
}

#[test]
fn no_two_modules_of_a_folder_lead_to_one_another() {
    let found = |files: &[(&str, &str)]| {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
        floors::circles(&files.collect::<Vec<_>>())
    };
    let (a, b) =
        (("src/x/a.rs", "use super::b::B;"), ("src/x/b.rs", "fn f() {}\nuse super::{c, d::D};"));
    let back = "use super::{\n    a::{A, B},\n};";
    let circle = ["src/x: `a` and `b`", "src/x: `a` and `c`", "src/x: `b` and `c`"];
    assert_eq!(found(&[a, b, ("src/x/c.rs", back)]), circle);
    assert_eq!(found(&[a, b, ("src/x/c/e.rs", "use super::super::a;")]), circle);
    assert_eq!(found(&[a, b, ("src/x/c/mod.rs", "use crate::x::a::A;")]), circle);
    let tests = "// super::a\n#[cfg(test)]\nmod tests {\n    use super::super::a;\n}";
    assert!(found(&[a, b, ("src/x/c.rs", tests), ("src/x/tests/d.rs", back)]).is_empty());
    let circles = floors::circles(&tree::files());
    assert!(circles.is_empty(), "\n{}", circles.join("\n"));
}

#[test]
fn only_the_single_server_node_names_fred() {
    let rule = FRED_ONLY_IN_SINGLE;
    catches(rule, "src/voter/voter.rs", "use tokio::sync;\nuse fred::prelude::*;", 2);
    permits(rule, "src/voter/voter.rs", "// fred answers late\nlet alfred = \"fred\";");
    permits(rule, "src/voter/single/mod.rs", "use fred::prelude::*;");
    holds_in_the_tree(rule);
}

#[test]
fn only_the_embedded_node_names_mlua() {
    let rule = MLUA_ONLY_IN_EMBEDDED;
    catches(rule, "src/proto/error.rs", "impl From<mlua::Error> for Error {}", 1);
    permits(rule, "src/embedded/lua.rs", "use mlua::Lua;");
    holds_in_the_tree(rule);
}

#[test]
fn the_decisions_have_no_runtime_no_clock_and_no_chance_of_their_own() {
    let rule = DECISIONS_ARE_PURE;
    let path = "src/proto/votes.rs";
    catches(rule, path, "\nasync fn count() {}", 2);
    catches(rule, path, "use tokio::sync::mpsc;", 1);
    catches(rule, path, "use std::time::{Duration, Instant};", 1);
    catches(rule, path, "let pause = rand::rng;", 1);
    catches(rule, path, "let pause = rng().random_range(0..9);", 1);
    permits(rule, path, "// async\nuse std::time::Duration; fn f(rng: &mut impl rand::Rng) {}");
    permits(rule, "src/voter/voter.rs", "async fn ask() {}");
    holds_in_the_tree(rule);
}

// By `clippy.toml`, which says how long a function may be, and what reads a clock.
#[test]
fn nobody_but_the_file_that_reads_clocks_is_excused_from_what_clippy_judges() {
    let rule = NOBODY_IS_EXCUSED_BY_CLIPPY;
    let clocks = "\n#[expect(clippy::disallowed_methods, reason = \"in a hurry\")]";
    catches(rule, "src/hold/watchdog.rs", clocks, 2);
    permits(rule, "src/clock/mod.rs", clocks);
    permits(rule, "tests/locks/main.rs", clocks);
    let lines = "#[allow(clippy::too_many_lines)]";
    catches(rule, "src/clock/mod.rs", lines, 1);
    catches(rule, "tests/locks/main.rs", lines, 1);
    permits(rule, "src/hold/watchdog.rs", "// clippy::too_many_lines");
    holds_in_the_tree(rule);
}

#[test]
fn every_name_is_that_of_one_type() {
    let named = |files: &[(&str, &str)]| {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
        rules::names_of_several_types(&files.collect::<Vec<_>>())
    };
    let one = ("src/a.rs", "pub(crate) struct Line<T> {\n");
    assert_eq!(named(&[one, ("src/b/c.rs", "/// A\nenum Line {")]), ["Line: src/a.rs, src/b/c.rs"]);
    assert_eq!(named(&[one, ("src/b.rs", "type Line = u8;")]), ["Line: src/a.rs, src/b.rs"]);
    assert!(
        named(&[
            one,
            ("src/b.rs", "impl A {\n    type Line = u8;"),
            ("tests/c.rs", "struct Line;")
        ])
        .is_empty()
    );
    assert!(
        named(&[one, ("src/b_tests.rs", "struct Line;"), ("src/tests/c.rs", "struct Line;")])
            .is_empty()
    );
    let blocking = ("src/blocking/a.rs", "pub struct Line {");
    assert!(named(&[one, blocking]).is_empty());
    assert_eq!(
        named(&[blocking, ("src/blocking/b.rs", "pub enum Line {")]),
        ["blocking::Line: src/blocking/a.rs, src/blocking/b.rs"]
    );
    assert_eq!(
        named(&[one, ("src/blocking/b.rs", "pub(super) struct Line;")]),
        ["Line: src/a.rs, src/blocking/b.rs"]
    );
    let several = rules::names_of_several_types(&tree::files());
    assert!(several.is_empty(), "\n{}", several.join("\n"));
}

#[test]
fn no_line_has_more_than_100_columns() {
    let rule = SHORT_LINES;
    catches(rule, "lua/a.lua", &format!("\n{}", "ä".repeat(101)), 2);
    permits(rule, "src/a.rs", &"ä".repeat(100));
    permits(rule, "README.md", &"a".repeat(101));
    holds_in_the_tree(rule);
}

#[test]
fn every_note_left_behind_is_a_sentence() {
    let rule = NOTES_ARE_SENTENCES;
    let note = concat!("TO", "DO");
    catches(rule, "src/a.rs", &format!("fn f() {{}}\n// {note}: fix this"), 2);
    permits(rule, "src/a.rs", &format!("// {note}: ask again once the server names it"));
    permits(rule, "src/a.rs", &format!("const {note}S: u8 = 1;"));
    holds_in_the_tree(rule);
}

#[test]
fn no_file_names_a_path_of_one_machine() {
    let rule = NO_MACHINE_PATHS;
    catches(rule, "docs/a.md", concat!("\nsee `/wo", "rk/notes`"), 2);
    catches(rule, "tests/a.rs", concat!("open(\"/tm", "p/wt-a/b\")"), 1);
    catches(rule, "Cargo.toml", concat!("path = \"/ro", "ot/a\""), 1);
    permits(rule, "docs/a.md", concat!("https://example.org/wo", "rk/ and ./wo", "rk/"));
    holds_in_the_tree(rule);
}
