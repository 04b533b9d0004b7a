//! The page of claims and the numbers on the tests say the same.
//!
//! `docs/claims.md` has an entry for each claim, with the tests that hold it. Each test has the
//! numbers of its claims in a comment line above its function, with other comments and attributes
//! only in between: `// Claim N`, or `// Claims N, M`.

use std::collections::BTreeSet;

use super::{
    code::{code, first_word},
    rules::is_rust,
    tree,
};

const PAGE: &str = "docs/claims.md";

/// How an entry begins that is kept for its number only.
const NO_CLAIM: &str = "No claim: ";

/// A claim of the page.
struct Entry {
    number: u32,
    /// It keeps its number and says nothing.
    is_free: bool,
    /// Files and functions, as the page names them.
    tests: Vec<(String, String)>,
}

/// A function in one of the test files.
#[derive(Debug)]
struct Function {
    path: String,
    line: usize,
    name: String,
    is_test: bool,
    claims: BTreeSet<u32>,
}

/// Everything on which the page and the tests do not agree.
fn disagreements(page: &str, sources: &[(String, String)]) -> Vec<String> {
    let (entries, mut found) = entries(page);
    let mut functions = Vec::new();
    for (path, text) in sources {
        let (read, wrong) = functions_of(path, text);
        functions.extend(read);
        found.extend(wrong);
    }
    for (entry, expected) in entries.iter().zip(1..) {
        if entry.number != expected {
            found.push(format!("claim {} stands where {expected} is expected", entry.number));
        }
        if entry.is_free != entry.tests.is_empty() {
            found.push(format!("claim {} needs a test, or `{NO_CLAIM}`", entry.number));
        }
        found
            .extend(entry.tests.iter().filter_map(|test| not_held(entry.number, test, &functions)));
    }
    found.extend(functions.iter().flat_map(|function| not_listed(function, &entries)));
    found
}

/// Why a test that the page names does not hold the claim.
fn not_held(
    number: u32,
    (file, name): &(String, String),
    functions: &[Function],
) -> Option<String> {
    let named: Vec<_> = functions.iter().filter(|function| function.is_named(file, name)).collect();
    let why = match named[..] {
        [] => "does not exist",
        [test] if !test.is_test => "is no test",
        [test] if !test.claims.contains(&number) => "does not have this number",
        [_] => return None,
        _ => "exists more than once",
    };
    Some(format!("claim {number}: `{name}` in {file} {why}"))
}

/// The numbers of a test that the page does not list with it.
fn not_listed(function: &Function, entries: &[Entry]) -> Vec<String> {
    let listed = |number: u32| {
        let mut entries = entries.iter().filter(|entry| entry.number == number);
        entries.any(|entry| entry.tests.iter().any(|(file, name)| function.is_named(file, name)))
    };
    let Function { path, line, name, .. } = function;
    let missing = function.claims.iter().filter(|number| !listed(**number));
    missing.map(|number| format!("{path}:{line}: `{name}` is not listed for {number}")).collect()
}

impl Function {
    /// A page may leave out folders at the beginning.
    fn is_named(&self, file: &str, name: &str) -> bool {
        let is_there = self
            .path
            .strip_suffix(file)
            .is_some_and(|before| before.is_empty() || before.ends_with('/'));
        is_there && self.name == name
    }
}

/// The claims of the page, and what cannot be read there.
fn entries(page: &str) -> (Vec<Entry>, Vec<String>) {
    let (mut entries, mut wrong) = (Vec::<Entry>::new(), Vec::new());
    // A paragraph is a claim, or a list of tests under it.
    for paragraph in page.split("\n\n").map(str::trim) {
        let bold = paragraph.strip_prefix("**").and_then(|rest| rest.split_once(".** "));
        if let Some((number, claim)) = bold {
            let Ok(number) = number.parse() else {
                wrong.push(format!("`{number}` is no number of a claim"));
                continue;
            };
            entries.push(Entry { number, is_free: claim.starts_with(NO_CLAIM), tests: Vec::new() });
        } else if paragraph.starts_with("- `") {
            let Some(entry) = entries.last_mut() else { continue };
            entry.tests.extend(paragraph.split("\n- ").flat_map(tests_of_file));
        }
    }
    (entries, wrong)
}

/// Of an item of a list: the file is the first that stands in backquotes, tests are the others.
fn tests_of_file(item: &str) -> Vec<(String, String)> {
    let mut quoted = item.split('`').skip(1).step_by(2).map(str::to_owned);
    let Some(file) = quoted.next() else { return Vec::new() };
    quoted.map(|name| (file.clone(), name)).collect()
}

/// The functions of a file, and the comments that look like numbers of claims and are none.
fn functions_of(path: &str, text: &str) -> (Vec<Function>, Vec<String>) {
    let (code, lines) = (code(text), text.lines().map(str::trim).collect::<Vec<_>>());
    let code_of_all = code.join(" ");
    let (in_macro, mut read, mut numbered) = (in_macro(&code_of_all), Vec::new(), BTreeSet::new());
    for (end, code) in code.iter().enumerate() {
        let Some(name) = function(code) else { continue };
        let block = end - lines[..end].iter().rev().take_while(|line| leads(line)).count()..end;
        let is_test = in_macro.contains(name) || lines[block.clone()].iter().any(|l| marks_test(l));
        let mut claims = BTreeSet::new();
        for at in block.filter(|_| is_test) {
            if let Some(numbers) = claims_in(lines[at]) {
                numbered.insert(at);
                claims.extend(numbers);
            }
        }
        let (path, line, name) = (path.to_owned(), end + 1, name.to_owned());
        read.push(Function { path, line, name, is_test, claims });
    }
    let stray =
        lines.iter().enumerate().filter(|(at, line)| !numbered.contains(at) && names_claims(line));
    let stray = stray
        .map(|(at, line)| format!("{path}:{}: `{line}` is no `// Claim N` above a test", at + 1));
    (read, stray.collect())
}

/// The name of the function that begins on a line of code.
fn function(line: &str) -> Option<&str> {
    let (before, rest) = line.split_once("fn ")?;
    let name = first_word(rest);
    let begins = before.is_empty() || before.ends_with(' ');
    (begins && !name.is_empty()).then_some(name)
}

/// What `claims!(everywhere: one, other)` and `on_three!(one, other)` and their like make tests of.
fn in_macro(code: &str) -> BTreeSet<&str> {
    let claims = code.split("claims!(").skip(1);
    let claims = claims.filter_map(|rest| Some(rest.split_once(')')?.0.split_once(": ")?.1));
    let on_three = code.split("on_three!(").skip(1);
    let on_three = on_three.filter_map(|rest| Some(rest.split_once(')')?.0));
    claims.chain(on_three).flat_map(|names| names.split(',').map(str::trim)).collect()
}

/// Whether a line belongs to the function below it.
fn leads(line: &str) -> bool {
    line.starts_with("//") || line.starts_with("#[")
}

fn marks_test(line: &str) -> bool {
    line == "#[test]" || line.starts_with("#[tokio::test]") || line.starts_with("#[tokio::test(")
}

/// A comment that has numbers of claims in any form.
fn names_claims(line: &str) -> bool {
    let Some(comment) = line.strip_prefix("//") else { return false };
    let words: Vec<String> = comment.split_whitespace().map(str::to_lowercase).collect();
    let is_number = |word: &str| word.starts_with(|sign: char| sign.is_ascii_digit());
    words.windows(2).any(|pair| {
        let [word, number] = pair else { return false };
        matches!(word.trim_start_matches('/'), "claim" | "claims") && is_number(number)
    })
}

/// The numbers in a comment line of the one form that there is, in ascending order.
fn claims_in(line: &str) -> Option<Vec<u32>> {
    let (one, several) = (line.strip_prefix("// Claim "), line.strip_prefix("// Claims "));
    let numbers: Vec<u32> =
        one.or(several)?.split(", ").map(|number| number.parse().ok()).collect::<Option<_>>()?;
    let is_plural = numbers.len() > 1;
    let ascends = numbers.is_sorted_by(|one, next| one < next);
    (ascends && is_plural == several.is_some()).then_some(numbers)
}

/// The one thing that is found wrong is this.
#[track_caller]
fn catches(page: &str, test: &str, complaint: &str) {
    let sources = [("tests/mutex/basics.rs".to_owned(), test.to_owned())];
    assert_eq!(disagreements(page, &sources), [complaint], "{page}\n{test}");
}

#[track_caller]
fn permits(page: &str, test: &str) {
    let sources = [("tests/mutex/basics.rs".to_owned(), test.to_owned())];
    let found = disagreements(page, &sources);
    assert!(found.is_empty(), "{page}\n{test}\n{found:?}");
}

const ONE: &str = "# Claims\n\n- none\n\n**1.** It holds.\n\n- `mutex/basics.rs`: `holds`";
const HOLDS: &str = "// Claim 1\n#[test]\nfn holds() {}";

#[test]
fn the_page_of_claims_lists_the_tests_that_hold_each_and_every_test_has_its_numbers() {
    permits(ONE, HOLDS);
    permits(
        ONE,
        "/// Why.\n// Claim 1\n// How.\n#[tokio::test(start_paused = true)]\nasync fn holds() {}",
    );
    permits(
        ONE,
        "claims!(everywhere:\n other,\n holds,\n);\n// Claim 1\nasync fn holds(on: Fixture) {}",
    );
    permits(ONE, "claims!(minority of both: holds);\n// Claim 1\nasync fn holds(on: Fixture) {}");
    permits(ONE, "on_three!(\n other,\n holds,\n);\n// Claim 1\nfn holds(on: &Fixture) {}");
    permits(&format!("{ONE}\n\n**2.** No claim: it is gone."), HOLDS);
    let two = "**1.** One.\n\n- `basics.rs`: `a`,\n  `b`\n\n**2.** Two.\n\n- `basics.rs`: `b`";
    permits(two, "// Claim 1\n#[test]\nfn a() {}\n\n// Claims 1, 2\n#[test]\nfn b() {}");

    // What the page names and the tests do not have.
    let gone = "claim 1: `holds` in mutex/basics.rs does not exist";
    catches(ONE, "fn other() {}", gone);
    catches(ONE, "// fn holds() {}", gone);
    catches(&ONE.replace("mutex/", "fair/"), "", &gone.replace("mutex/", "fair/"));
    catches(
        ONE,
        "#[test]\nfn holds() {}",
        "claim 1: `holds` in mutex/basics.rs does not have this number",
    );
    catches(ONE, "fn holds() {}", "claim 1: `holds` in mutex/basics.rs is no test");
    let twice = format!("{HOLDS}\nmod more {{\n{HOLDS}\n}}");
    catches(ONE, &twice, "claim 1: `holds` in mutex/basics.rs exists more than once");

    // What the tests have and the page does not name.
    let more = format!("{HOLDS}\n\n// Claim 1\n#[test]\nfn more() {{}}");
    catches(ONE, &more, "tests/mutex/basics.rs:7: `more` is not listed for 1");
    let unknown = HOLDS.replace("Claim 1", "Claims 1, 2");
    catches(ONE, &unknown, "tests/mutex/basics.rs:3: `holds` is not listed for 2");

    // Numbers that no test holds, and numbers out of order.
    let untested = format!("{ONE}\n\n**2.** It is true.");
    catches(&untested, HOLDS, "claim 2 needs a test, or `No claim: `");
    let held = ONE.replace("It holds", "No claim: it holds");
    catches(&held, HOLDS, "claim 1 needs a test, or `No claim: `");
    catches(
        &format!("{ONE}\n\n**3.** No claim: ever."),
        HOLDS,
        "claim 3 stands where 2 is expected",
    );
    catches(&format!("{ONE}\n\n**x.** What?"), HOLDS, "`x` is no number of a claim");
    holds_in_the_tree();
}

#[test]
fn the_number_of_a_claim_stands_in_its_one_form_above_a_test() {
    let stray = |line: usize, text: &str| {
        format!("tests/mutex/basics.rs:{line}: `{text}` is no `// Claim N` above a test")
    };
    for line in
        ["/// Claim 1", "// claim 1", "// Claim 1.", "//! Claims 1, 2", "// As claim 12 says."]
    {
        catches("", line, &stray(1, line));
        catches("", &format!("{line}\n#[test]\nfn a() {{}}"), &stray(1, line));
    }
    for line in
        ["// Claims 1", "// Claim 1, 2", "// Claims 2, 1", "// Claims 1, 1", "// Claims 1 2"]
    {
        catches("", &format!("\n{line}\n#[test]\nfn a() {{}}"), &stray(2, line));
    }
    catches("", "// Claim 1\nfn helper() {}", &stray(1, "// Claim 1"));
    catches("", "// Claim 1\n\n#[test]\nfn a() {}", &stray(1, "// Claim 1"));
    permits("", "// Each claim holds in 2 places.\nlet text = \"// Claim 1\";");
}

/// What the page of guarantees names and the tree does not have, as it were.
fn missing_of_guarantees(page: &str, mutants: &str, sources: &[(String, String)]) -> Vec<String> {
    let functions: Vec<_> =
        sources.iter().flat_map(|(path, text)| functions_of(path, text).0).collect();
    let mut missing = Vec::new();
    for section in page.split("\n## ").filter(|section| section.starts_with(char::is_numeric)) {
        let title = section.lines().next().unwrap_or_default();
        let paragraphs = || section.split("\n\n").map(str::trim);
        let lists = paragraphs().filter(|paragraph| paragraph.starts_with("- `"));
        let tests: Vec<_> =
            lists.flat_map(|list| list.split("\n- ")).flat_map(tests_of_file).collect();
        if tests.is_empty() {
            missing.push(format!("{title}: no test"));
        }
        for (file, name) in tests {
            if !functions.iter().any(|found| found.is_test && found.is_named(&file, &name)) {
                missing.push(format!("{title}: `{name}` in {file}"));
            }
        }
        let named = paragraphs().filter_map(|paragraph| paragraph.strip_prefix("Mutants: "));
        for mutant in named.flat_map(|names| names.split('`').skip(1).step_by(2)) {
            if !mutants.contains(&format!("\"{mutant}\"")) {
                missing.push(format!("{title}: the mutant `{mutant}`"));
            }
        }
    }
    missing
}

#[test]
fn every_test_and_mutant_that_the_page_of_guarantees_names_exists() {
    let page =
        "# A\n\n## 1. B\n\n- `a.rs`: `holds`,\n  `gone`\n\nMutants: `one`, `two`.\n\n## 2. C\n\nD";
    let sources = [("tests/a.rs".to_owned(), "#[test]\nfn holds() {}\nfn gone() {}".to_owned())];
    assert_eq!(
        missing_of_guarantees(page, "\"one\"", &sources),
        ["1. B: `gone` in a.rs", "1. B: the mutant `two`", "2. C: no test"]
    );
    let files = tree::files();
    let text = |path: &str| &files.iter().find(|file| file.0 == path).expect("it is there").1;
    let page = text("docs/guarantees.md");
    assert!(page.matches("\nMutants: ").count() > 5, "the page names mutants");
    let sources: Vec<_> = files.iter().filter(|(path, _)| is_rust(path)).cloned().collect();
    let missing = missing_of_guarantees(page, text("tests/proofs/mutants/list.rs"), &sources);
    assert!(missing.is_empty(), "\n{}", missing.join("\n"));
}

#[track_caller]
fn holds_in_the_tree() {
    let files = tree::files();
    let page = files.iter().find(|(path, _)| path == PAGE).expect("the page is there");
    let sources: Vec<_> = files.iter().filter(|(path, _)| is_rust(path)).cloned().collect();
    let found = disagreements(&page.1, &sources);
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}
