//! The book: `docs/SUMMARY.md` lists every page, each link in a Markdown file leads somewhere, all
//! code is compiled, and `mdbook` builds the pages without a warning. The page of the crate lists
//! all events of the log.

use std::{collections::BTreeSet, path::Path};

use crate::tidy::tree;

const SUMMARY: &str = "docs/SUMMARY.md";
const LIBRARY: &str = include_str!("../../src/lib.rs");

/// The lines of a page that are no code, each with its number.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence: Option<&str> = None;
    text.lines().zip(1..).filter_map(move |(line, number)| {
        let begin = line.trim_start();
        match fence {
            Some(end) if begin.starts_with(end) => fence = None,
            Some(_) => {}
            None if begin.starts_with("```") => fence = Some("```"),
            None if begin.starts_with("~~~") => fence = Some("~~~"),
            None => return Some((number, line)),
        }
        None
    })
}

/// A line without what stands between backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

/// Where the links of a page lead to: `[text](target)`, also where the text is on the line before.
fn targets(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let line = without_code(line);
        for rest in line.split("](").skip(1) {
            found.extend(rest.split_once(')').map(|(target, _)| (number, target.to_owned())));
        }
    }
    found
}

/// The anchors that a page offers: those of its headings, as git hosts and mdbook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let heading = |(_, line): (usize, &str)| {
        let title = line.trim_start_matches('#');
        (title.len() < line.len() && title.starts_with(' ')).then(|| anchor(title))
    };
    prose(text).filter_map(heading).collect()
}

fn anchor(title: &str) -> String {
    let kept = title.trim().to_lowercase();
    let kept = kept.chars().filter(|sign| sign.is_alphanumeric() || " -_".contains(*sign));
    kept.map(|sign| if sign == ' ' { '-' } else { sign }).collect()
}

/// The path of a target that is named on a page, from the root of the repository on.
fn resolved(page: &str, target: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The links of Markdown files that lead nowhere.
fn dead_links(files: &[(String, String)]) -> Vec<String> {
    let text_of = |path: &str| files.iter().find(|(name, _)| name == path).map(|(_, text)| text);
    let is_there = |path: &str| {
        let folder = format!("{path}/");
        files.iter().any(|(name, _)| name == path || name.starts_with(&folder))
    };
    let mut dead = Vec::new();
    for (page, text) in files.iter().filter(|(path, _)| is_markdown(path)) {
        for (line, target) in targets(text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let path = if path.is_empty() { page.clone() } else { resolved(page, path) };
            let is_dead = !is_there(&path)
                || !anchor.is_empty()
                    && text_of(&path).is_none_or(|text| !anchors(text).contains(anchor));
            dead.extend(is_dead.then(|| format!("{page}:{line}: {target}")));
        }
    }
    dead
}

fn is_markdown(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|ending| ending == "md")
}

/// Pages of the book that the summary does not list just once, and others that it lists.
fn unlisted(summary: &str, files: &[(String, String)]) -> Vec<String> {
    let listed: Vec<_> = targets(summary).into_iter().map(|(_, page)| page).collect();
    let paths = files.iter().map(|(path, _)| path).filter(|path| is_markdown(path));
    let pages: Vec<_> = paths.filter_map(|path| path.strip_prefix("docs/")).collect();
    let pages: Vec<_> = pages.into_iter().filter(|page| *page != "SUMMARY.md").collect();
    let count = |page: &str| listed.iter().filter(|other| *other == page).count();
    let missing = pages.iter().filter(|page| count(page) != 1).map(|page| (*page).to_owned());
    let unknown = listed.iter().filter(|page| !pages.contains(&page.as_str())).cloned();
    missing.chain(unknown).collect()
}

/// Pages with Rust code that the library does not include, so that nobody compiles it.
fn not_compiled(library: &str, files: &[(String, String)]) -> Vec<String> {
    let pages = files.iter().filter(|(path, text)| {
        path.starts_with("docs/") && is_markdown(path) && text.contains("```rust")
    });
    let is_included = |path: &str| library.contains(&format!("include_str!(\"../{path}\")"));
    pages.filter(|(path, _)| !is_included(path)).map(|(path, _)| path.clone()).collect()
}

fn page(path: &str, text: &str) -> (String, String) {
    (path.to_owned(), text.to_owned())
}

#[test]
fn every_link_in_a_markdown_file_leads_somewhere() {
    let files = [
        page("docs/a.md", "# Of `a`, *b*\n[there](../c/d.rs) [b](b.md#one-two)\n`[x](y)`"),
        page("docs/b.md", "## One: two\n[up](#one-two) [web](https://example.org)\n"),
        page("c/d.rs", "[not read](nowhere)"),
        page("e.md", "[folder](docs) [page](docs/a.md#of-a-b)\n```text\n[no](link)\n```\n"),
    ];
    assert_eq!(dead_links(&files), [""; 0]);
    for (good, bad) in [("b.md#", "b.md#x"), ("(../c", "(c"), ("(docs)", "(doc)"), ("(#", "(#_")] {
        let broken = files.clone().map(|(path, text)| (path, text.replace(good, bad)));
        assert_eq!(dead_links(&broken).len(), 1, "{bad}");
    }
    assert_eq!(dead_links(&tree::files()), [""; 0]);
}

#[test]
fn the_summary_lists_every_page_once() {
    let files = [page("docs/a.md", ""), page("docs/SUMMARY.md", ""), page("b.md", "")];
    assert_eq!(unlisted("- [A](a.md)", &files), [""; 0]);
    assert_eq!(unlisted("", &files), ["a.md"]);
    assert_eq!(unlisted("- [A](a.md)\n- [A](a.md)", &files), ["a.md"]);
    assert_eq!(unlisted("- [A](a.md)\n- [B](b.md)", &files), ["b.md"]);
    let files = tree::files();
    let (_, summary) = files.iter().find(|(path, _)| path == SUMMARY).expect("it is there");
    assert_eq!(unlisted(summary, &files), [""; 0]);
}

#[test]
fn the_rust_code_of_every_page_is_compiled() {
    let files = [page("docs/a.md", "```rust\n```"), page("docs/b.md", "```text\n```")];
    assert_eq!(not_compiled("include_str!(\"../docs/a.md\")", &files), [""; 0]);
    assert_eq!(not_compiled("include_str!(\"../docs/b.md\")", &files), ["docs/a.md"]);
    assert_eq!(not_compiled(LIBRARY, &tree::files()), [""; 0]);
}

/// An event of the log: its level and message, and what else is said of it.
type Event = (String, String, String);

/// The events that a source file writes.
fn events(text: &str) -> Vec<Event> {
    let macros = text.split("tracing::").skip(1).filter_map(|rest| {
        let (level, rest) = rest.split_once("!(")?;
        let is_level = ["error", "warn", "info", "debug"].contains(&level);
        is_level.then(|| rest.split_once(");").map(|(body, _)| (level, body))).flatten()
    });
    let event = |(level, body): (&str, &str)| {
        let message = body.rsplit('"').nth(1).expect("an event has a message");
        let lines: Vec<_> = message.split("\\\n").map(str::trim_start).collect();
        (level.to_owned(), lines.concat(), body.to_owned())
    };
    macros.map(event).collect()
}

/// Rows of the table of events that the sources do not write, and events without a row. A message
/// may end with `..` in the table.
fn wrong_events(page: &str, written: &[Event]) -> Vec<String> {
    let (_, table) = page.split_once("| level | event | fields |").expect("it has the table");
    let rows = table.lines().skip(2).map_while(|line| line.strip_prefix("//! | "));
    let rows: Vec<Vec<&str>> =
        rows.map(|row| row.trim_end_matches(" |").split(" | ").collect()).collect();
    let fits = |row: &[&str], (level, message, body): &Event| {
        let is_message = match row[1].strip_suffix("..") {
            Some(beginning) => message.starts_with(beginning),
            None => message == row[1],
        };
        let mut fields = row[2].split('`').skip(1).step_by(2);
        row[0] == level && is_message && fields.all(|field| body.contains(field))
    };
    let unwritten = rows.iter().filter(|row| !written.iter().any(|event| fits(row, event)));
    let unlisted = written.iter().filter(|event| !rows.iter().any(|row| fits(row, event)));
    let unwritten = unwritten.map(|row| row.join(" "));
    unwritten.chain(unlisted.map(|(level, message, _)| format!("{level} {message}"))).collect()
}

#[test]
fn the_page_of_the_crate_lists_every_event_of_the_log() {
    let page =
        "//! | level | event | fields |\n//! |---|---|---|\n//! | warn | lost | `lock` |\n//!";
    let source = "tracing::warn!(lock, \"lo\\\n    st\");";
    assert_eq!(wrong_events(page, &events(source)), [""; 0]);
    assert_eq!(wrong_events(page, &[]), ["warn lost `lock`"]);
    for broken in ["warn!(hold, \"lost", "info!(lock, \"lost", "warn!(lock, \"gone"] {
        let broken = format!("tracing::{broken}\");");
        assert_eq!(wrong_events(page, &events(&broken)).len(), 2, "{broken}");
    }
    let sources = tree::files().into_iter().filter(|(path, _)| path.starts_with("src/"));
    let written: Vec<_> = sources.flat_map(|(_, text)| events(&text)).collect();
    assert!(written.len() > 20, "the library writes to a log");
    assert_eq!(wrong_events(LIBRARY, &written), [""; 0]);
}

#[cfg(feature = "full")]
#[test]
fn mdbook_builds_the_book_without_a_warning() {
    use std::{fs, process::Command};

    use quorate_support::ROOT;

    let folder = tempfile::tempdir().expect("a folder");
    let output = Command::new("mdbook")
        .arg("build")
        .arg(Path::new(ROOT).join("docs"))
        .arg("--dest-dir")
        .arg(folder.path())
        .env("RUST_LOG", "info")
        .output()
        .expect("mdbook runs; `tests/run full` installs it");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let is_complaint = |line: &&str| ["WARN", "ERROR"].iter().any(|level| line.contains(level));
    assert_eq!(told.lines().filter(is_complaint).collect::<Vec<_>>(), [""; 0]);
    // As a reader of the book meets it: the page, with what it is about.
    let page = fs::read_to_string(folder.path().join("failures.html")).expect("a page");
    assert!(page.contains("<h1") && page.contains("Failures"), "{page}");
}
