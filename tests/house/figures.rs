//! Figures of benches stand between markers, where one command writes them, each table from one
//! run: README and docs hold no others.

use std::path::Path;

use crate::tidy::tree;

const END: &str = "<!-- end -->";
/// Begins the name of a block that repeats some figures of a bench.
const PART: &str = "from ";
const MANIFESTS: [&str; 2] = ["benches/Cargo.toml", "benches/peers/Cargo.toml"];

/// Words in the header of a table that only measured values have.
const MEASURED: [&str; 9] = [
    "floor",
    "p50",
    "p99",
    "median",
    "percentile",
    "per second",
    "`set`s",
    "in bytes",
    "attempts per grant",
];

/// What stands between two markers.
struct Block<'a> {
    bench: &'a str,
    at: String,
    lines: Vec<&'a str>,
}

/// A page, split at the markers.
struct Page<'a> {
    blocks: Vec<Block<'a>>,
    /// Where, and the line.
    outside: Vec<(String, &'a str)>,
    wrong: Vec<String>,
}

impl<'a> Page<'a> {
    fn read(path: &str, text: &'a str) -> Self {
        let mut page = Self { blocks: Vec::new(), outside: Vec::new(), wrong: Vec::new() };
        let mut open: Option<Block<'a>> = None;
        for (line, number) in text.lines().zip(1..) {
            let at = format!("{path}:{number}");
            let begins = line.strip_prefix("<!-- figures: ").and_then(|rest| {
                let bench = rest.strip_suffix(" -->")?;
                Some(Block { bench, at: at.clone(), lines: Vec::new() })
            });
            match (begins, &mut open) {
                (Some(_), Some(block)) => {
                    page.wrong.push(format!("{at}: {} has not ended", block.bench));
                }
                (Some(block), None) => open = Some(block),
                (None, Some(_)) if line == END => page.blocks.extend(open.take()),
                (None, Some(block)) => block.lines.push(line),
                (None, None) => page.outside.push((at, line)),
            }
        }
        page.wrong.extend(open.map(|block| format!("{}: it does not end", block.at)));
        page
    }
}

impl Block<'_> {
    fn commit(&self) -> Option<&str> {
        let (_, rest) = self.lines.iter().find_map(|line| line.split_once("commit `"))?;
        let (commit, _) = rest.split_once('`')?;
        let is_hash = commit.len() >= 7 && commit.chars().all(|sign| sign.is_ascii_hexdigit());
        is_hash.then_some(commit)
    }

    /// The bench that measured, also where only a part of its figures is shown.
    fn measured_by(&self) -> &str {
        self.bench.strip_prefix(PART).unwrap_or(self.bench)
    }

    fn is_part(&self) -> bool {
        self.bench.starts_with(PART)
    }

    fn wrong(&self) -> Vec<String> {
        let bench = self.measured_by();
        let is_of_peers = matches!(bench, "peers" | "languages");
        let package = if is_of_peers { "quorate-peers" } else { "quorate-benches" };
        let command = format!("`cargo bench -p {package} --bench {bench}`");
        let has = |found: &dyn Fn(&str) -> bool| self.lines.iter().any(|line| found(line));
        let needed = [
            ("the command", has(&|line| line.contains(&command))),
            ("the commit", self.commit().is_some()),
            ("a table", has(&|line| line.starts_with("|---"))),
            (
                "the bars",
                self.is_part() || has(&|line| line == "All bars hold." || line == "Missed:"),
            ),
        ];
        let missing = needed.iter().filter(|(_, is_there)| !is_there);
        let told = |what| format!("{}: figures of {} without {what}", self.at, self.bench);
        missing.map(|(what, _)| told(what)).collect()
    }
}

/// Everything that is wrong with the figures of these pages.
fn complaints(manifest: &str, pages: &[(String, String)]) -> Vec<String> {
    let pages: Vec<_> = pages.iter().map(|(path, text)| Page::read(path, text)).collect();
    let mut found: Vec<String> = pages.iter().flat_map(|page| page.wrong.clone()).collect();
    let blocks = || pages.iter().flat_map(|page| &page.blocks);
    found.extend(blocks().flat_map(Block::wrong));
    let benches: Vec<_> = benches(manifest).collect();
    for bench in &benches {
        let count = blocks().filter(|block| block.bench == *bench).count();
        if count != 1 {
            found.push(format!("{count} blocks have the figures of {bench}"));
        }
    }
    let unknown = blocks().filter(|block| !benches.contains(&block.measured_by()));
    found.extend(unknown.map(|block| format!("{}: there is no bench {}", block.at, block.bench)));
    found.extend(pages.iter().flat_map(|page| figures_outside(&page.outside)));
    found
}

fn is_of_the_book(path: &str) -> bool {
    path.starts_with("docs/") && Path::new(path).extension().is_some_and(|ending| ending == "md")
}

fn benches(manifest: &str) -> impl Iterator<Item = &str> {
    manifest.split("[[bench]]").skip(1).filter_map(|rest| rest.split('"').nth(1))
}

/// Tables and sentences of figures where no command writes them.
fn figures_outside(lines: &[(String, &str)]) -> Vec<String> {
    let mut found = Vec::new();
    let mut before = "";
    for (at, line) in lines {
        let is_header = line.starts_with('|') && !before.starts_with('|');
        let header = line.to_lowercase();
        let is_measured = is_header && MEASURED.iter().any(|word| header.contains(word));
        if is_measured || line.starts_with('|') && line.split('|').any(is_measured_cell) {
            found.push(format!("{at}: a table of figures outside the markers: {line}"));
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.windows(2).any(|pair| is_decimal(pair[0]) && pair[1].starts_with("times")) {
            found.push(format!("{at}: a figure outside the markers: {line}"));
        }
        before = line;
    }
    found
}

fn is_measured_cell(cell: &str) -> bool {
    is_decimal(cell.trim().trim_matches('*'))
}

/// Digits, a point, and digits.
fn is_decimal(text: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|sign| sign.is_ascii_digit());
    text.split_once('.').is_some_and(|(whole, part)| is_number(whole) && is_number(part))
}

const ONE_BENCH: &str = "[[bench]]\nname = \"rw\"\n";
const GOOD: &str = "\
text

<!-- figures: rw -->
`cargo bench -p quorate-benches --bench rw` at commit `0123456789ab`, on 2 cores:

| waiters | p50 |
|---|---|
| 2 | 1.20 |

All bars hold.
<!-- end -->
";

#[track_caller]
fn catches(text: &str, complaint: &str) {
    let found = complaints(ONE_BENCH, &[("README.md".to_owned(), text.to_owned())]);
    assert!(found.iter().any(|found| found.contains(complaint)), "{complaint}: {found:?}");
}

#[test]
fn figures_without_their_origin_are_found() {
    assert!(complaints(ONE_BENCH, &[("README.md".to_owned(), GOOD.to_owned())]).is_empty());
    catches(
        &GOOD.replace("--bench rw", "--bench handoff"),
        "README.md:3: figures of rw without the command",
    );
    catches(&GOOD.replace("0123456789ab", "the last one"), "without the commit");
    catches(&GOOD.replace("|---|---|\n", ""), "without a table");
    catches(&GOOD.replace("All bars hold.\n", ""), "without the bars");
    catches(&GOOD.replace("<!-- end -->", ""), "README.md:3: it does not end");
    catches(
        &GOOD.replace("All bars hold.", "<!-- figures: x -->"),
        "README.md:10: rw has not ended",
    );
    catches(&GOOD.replace("figures: rw", "figures: old"), "there is no bench old");
    catches("text", "0 blocks have the figures of rw");
    catches(&GOOD.repeat(2), "2 blocks have the figures of rw");
    let part = GOOD.replace("figures: rw", "figures: from rw").replace("All bars hold.\n", "");
    let page = format!("{GOOD}{part}");
    assert!(complaints(ONE_BENCH, &[("README.md".to_owned(), page.clone())]).is_empty());
    catches(&part, "0 blocks have the figures of rw");
    catches(&page.replace("from rw", "from old"), "there is no bench from old");
}

#[test]
fn figures_outside_the_markers_are_found() {
    let outside = "a table of figures outside the markers";
    catches(&format!("{GOOD}\n| waiters | mutex / floor |\n|---|---|\n| 2 | some |"), outside);
    catches(&format!("{GOOD}\n| waiters | mutex |\n|---|---|\n| 2 | **1.27** |"), outside);
    catches(&format!("{GOOD}\nIt took 1.13 times the floor."), "README.md:13: a figure outside");
    let others = "| setting | default |\n|---|---|\n| `drift` | 0.05% of the lease, 3 times |";
    let page = format!("{GOOD}\n{others}\nRust 1.95 or later, at 10.0.0.1, three times.");
    assert!(complaints(ONE_BENCH, &[("README.md".to_owned(), page)]).is_empty());
}

#[test]
fn every_figure_of_readme_and_docs_is_written_by_the_command_that_it_names() {
    let files = tree::files();
    let is_page = |path: &str| path == "README.md" || is_of_the_book(path);
    let manifests = files.iter().filter(|(path, _)| MANIFESTS.contains(&&**path));
    let manifest: String = manifests.map(|(_, text)| &**text).collect();
    let pages: Vec<_> = files.iter().filter(|(path, _)| is_page(path)).cloned().collect();
    let found = complaints(&manifest, &pages);
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}
