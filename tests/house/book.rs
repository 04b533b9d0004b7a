//! The book: `docs/SUMMARY.md` lists every page, each link leads somewhere, all code is compiled, and
//! `mdbook` builds the pages without a warning. The page of the crate lists all events of the log.

use std::path::Path;

use quorate_tests::prelude::*;

use crate::{release::repository, tree::files};

/// The lines of a page that are no code, each with its number.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence: Option<&str> = None;
    text.lines().zip(1..).filter_map(move |(line, number)| {
        let begin = line.trim_start();
        let marks = ["```", "~~~"].into_iter().find(|marks| begin.starts_with(marks));
        match fence {
            Some(end) if marks == Some(end) => fence = None,
            None if marks.is_some() => fence = marks,
            Some(_) => {}
            None => return Some((number, line)),
        }
        None
    })
}

/// Where the links of a page lead to: `[text](target)`, also where the text is on the line before.
pub(crate) fn targets(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let line: String = line.split('`').step_by(2).collect();
        let targets = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        found.extend(targets.map(|(target, _)| (number, target.to_owned())));
    }
    found
}

/// The paths of the tree that a page names in its code: those that begin with a folder of the root.
/// What stands for several (`*`, `..`, `NAME`) names none.
fn paths<'a>(text: &'a str, roots: &BTreeSet<&str>) -> Vec<(usize, &'a str)> {
    let is_path = |word: &&str| {
        let named = |sign: char| {
            sign.is_ascii_lowercase() || sign.is_ascii_digit() || "-_./".contains(sign)
        };
        word.split_once('/').is_some_and(|(root, _)| roots.contains(root))
            && word.strip_suffix("README.md").unwrap_or(word).chars().all(named)
            && !word.contains("..")
    };
    let code = |(number, line): (usize, &'a str)| {
        line.split('`')
            .skip(1)
            .step_by(2)
            .flat_map(str::split_whitespace)
            .map(move |it| (number, it))
    };
    prose(text).flat_map(code).filter(|(_, word)| is_path(word)).collect()
}

/// The anchors that a page offers: those of its headings, as git hosts and mdbook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let anchor = |title: &str| {
        let title = title.trim().to_lowercase();
        let kept = title.chars().filter(|sign| sign.is_alphanumeric() || " -_".contains(*sign));
        kept.map(|sign| if sign == ' ' { '-' } else { sign }).collect()
    };
    let headings = prose(text).filter_map(|(_, line)| {
        let title = line.trim_start_matches('#');
        (title.len() < line.len() && title.starts_with(' ')).then_some(title)
    });
    headings.map(anchor).collect()
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

/// The links and named paths that lead nowhere: those of Markdown files, and links of alerts to
/// pages of the repository. The change log names files of its time.
fn dead_links(files: &[(String, String)]) -> Vec<String> {
    let text_of = |path: &str| files.iter().find(|(name, _)| name == path).map(|(_, text)| text);
    let is_there = |path: &str| {
        let folder = format!("{path}/");
        files.iter().any(|(name, _)| name == path || name.starts_with(&folder))
    };
    let roots = files.iter().filter_map(|(path, _)| Some(path.split_once('/')?.0)).collect();
    let mut dead = Vec::new();
    for (page, text) in files {
        let (targets, named) = match Path::new(page).extension().and_then(|it| it.to_str()) {
            Some("md") if page == "CHANGELOG.md" => (targets(text), Vec::new()),
            Some("md") => (targets(text), paths(text, &roots)),
            Some("yml") => (runbooks(page, text), Vec::new()),
            _ => continue,
        };
        let gone = named.iter().filter(|(_, path)| !is_there(path.trim_end_matches('/')));
        dead.extend(gone.map(|(line, path)| format!("{page}:{line}: `{path}`")));
        for (line, target) in targets {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let path = if path.is_empty() { page.clone() } else { resolved(page, path) };
            let has_anchor = |text: &String| anchor.is_empty() || anchors(text).contains(anchor);
            let leads = is_there(&path) && text_of(&path).is_none_or(has_anchor);
            dead.extend((!leads).then(|| format!("{page}:{line}: {target}")));
        }
    }
    dead
}

/// The pages that alerts name by the address of the repository, as links from where they stand.
fn runbooks(page: &str, text: &str) -> Vec<(usize, String)> {
    let pages = format!("{}/blob/main/", repository());
    let named = text.lines().zip(1..).filter_map(|(line, number)| {
        let (_, path) = line.split_once("runbook_url: ")?;
        let path =
            path.strip_prefix(&pages).map(|path| "../".repeat(page.matches('/').count()) + path);
        Some((number, path.unwrap_or_else(|| "elsewhere".to_owned())))
    });
    named.collect()
}

fn page(path: &str, text: &str) -> (String, String) {
    (path.to_owned(), text.to_owned())
}

// What a reader takes in at one sitting.
#[test]
fn the_readme_has_a_thousand_words_at_most() {
    let words = read_file("README.md").split_whitespace().count();
    assert!(words <= 1_000, "it has {words}");
}

#[test]
fn every_link_leads_somewhere() {
    let rule = format!("runbook_url: {}/blob/main/docs/b.md#one-two", repository());
    let files_of_test = [
        page("docs/a.md", "# Of `a`, *b*\n[there](../c/d.rs) [b](b.md#one-two)\n`[x](y)`"),
        page("docs/b.md", "## One: two\n[up](#one-two) [web](https://example.org)\n"),
        page("c/d.rs", "[not read](nowhere)"),
        page(
            "e.md",
            "[folder](docs) [page](docs/a.md#of-a-b)\n`run c/d.rs` `x/y` `c/..`\n\
             ```text\n[no](link) `c/e.rs`\n```\n",
        ),
        page("c/f.yml", &rule),
    ];
    assert_eq!(dead_links(&files_of_test), [""; 0]);
    for (good, bad) in [
        ("](b.md#", "](b.md#x"),
        ("(../c", "(c"),
        ("(docs)", "(doc)"),
        ("(#", "(#_"),
        ("main/docs", "main/doc"),
        ("run c/d.rs", "run c/e.rs"),
        ("https://git", "https://got"),
    ] {
        let broken = files_of_test.clone().map(|(path, text)| (path, text.replace(good, bad)));
        assert_eq!(dead_links(&broken).len(), 1, "{bad}");
    }
    assert_eq!(dead_links(&files()), [""; 0]);
}

/// Pages of the book that the summary does not list just once, and others that it lists.
fn unlisted(summary: &str, files: &[(String, String)]) -> Vec<String> {
    let listed: Vec<_> = targets(summary).into_iter().map(|(_, page)| page).collect();
    let pages = files.iter().filter_map(|(path, _)| path.strip_prefix("docs/"));
    let pages = pages.filter(|page| Path::new(page).extension().is_some_and(|it| it == "md"));
    let pages: Vec<_> = pages.filter(|page| *page != "SUMMARY.md").map(str::to_owned).collect();
    let count = |page: &String| listed.iter().filter(|other| *other == page).count();
    let missing = pages.iter().filter(|page| count(page) != 1);
    missing.chain(listed.iter().filter(|page| !pages.contains(page))).cloned().collect()
}

#[test]
fn the_summary_lists_every_page_once() {
    let files_of_test = [page("docs/a.md", ""), page("docs/SUMMARY.md", ""), page("b.md", "")];
    for (summary, found) in [
        ("- [A](a.md)", &[][..]),
        ("", &["a.md"]),
        ("- [A](a.md)\n- [A](a.md)", &["a.md"]),
        ("- [A](a.md)\n- [B](b.md)", &["b.md"]),
    ] {
        assert_eq!(unlisted(summary, &files_of_test), found);
    }
    assert_eq!(unlisted(&read_file("docs/SUMMARY.md"), &files()), [""; 0]);
}

// The doctests of the library are those of the pages that it includes.
#[test]
fn the_rust_code_of_every_page_is_compiled() {
    let library = read_file("src/lib.rs");
    let has_code = |path: &str, text: &str| path.starts_with("docs/") && text.contains("```rust");
    let files = files().into_iter().filter(|(path, text)| has_code(path, text));
    let pages: Vec<_> = files.map(|(path, _)| format!("include_str!(\"../{path}\")")).collect();
    assert!(pages.len() > 5, "pages have code");
    let forgotten: Vec<_> = pages.iter().filter(|page| !library.contains(*page)).collect();
    assert!(forgotten.is_empty(), "{forgotten:?}");
}

// Who watches the log goes by this table. What else is written `tests/log.rs` finds.
#[test]
fn every_event_that_the_page_of_the_crate_lists_is_written() {
    let sources = files().into_iter().filter(|(path, _)| path.starts_with("src/"));
    let lines: Vec<_> = sources
        .flat_map(|(_, text)| {
            text.lines()
                .filter(|line| !line.contains("//!"))
                .map(|it| it.trim().to_owned())
                .collect::<Vec<_>>()
        })
        .collect();
    let written = lines.concat().replace('\\', "");
    let library = read_file("src/lib.rs");
    let (_, table) = library.split_once("| level | event | fields |").expect("it has the table");
    let rows = table.lines().skip(2).map_while(|line| line.strip_prefix("//! | "));
    let events: Vec<_> = rows.filter_map(|row| row.split(" | ").nth(1)).collect();
    assert!(events.len() > 20, "{events:?}");
    for event in events {
        assert!(written.contains(&format!("\"{}", event.trim_end_matches(".."))), "{event}");
    }
}

#[cfg(feature = "full")]
#[test]
fn mdbook_builds_the_book_without_a_warning() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut mdbook = std::process::Command::new("mdbook");
    mdbook.args(["build", "docs", "--dest-dir"]).arg(folder.path()).env("RUST_LOG", "info");
    let output = mdbook.current_dir(quorate_support::ROOT).output();
    let output = output.expect("mdbook runs; `tests/run full` installs it");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !told.contains("WARN") && !told.contains("ERROR"), "{told}");
    assert!(folder.path().join("failures.html").exists(), "{told}");
}
