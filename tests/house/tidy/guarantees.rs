//! What the page of guarantees names exists: its tests, and its mutants.

use std::collections::BTreeSet;

use super::{
    code::{code, first_word},
    rules::is_rust,
    tree,
};

/// A function in one of the test files.
struct Function {
    path: String,
    name: String,
    is_test: bool,
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

/// Of an item of a list: the file is the first that stands in backquotes, tests are the others.
fn tests_of_file(item: &str) -> Vec<(String, String)> {
    let mut quoted = item.split('`').skip(1).step_by(2).map(str::to_owned);
    let Some(file) = quoted.next() else { return Vec::new() };
    quoted.map(|name| (file.clone(), name)).collect()
}

/// The functions of a file.
fn functions_of(path: &str, text: &str) -> Vec<Function> {
    let (code, lines) = (code(text), text.lines().map(str::trim).collect::<Vec<_>>());
    let code_of_all = code.join(" ");
    let in_macro = in_macro(&code_of_all);
    let read = code.iter().enumerate().filter_map(|(end, code)| {
        let name = function(code)?;
        let mut above = lines[..end].iter().rev().take_while(|line| leads(line));
        let is_test = in_macro.contains(name) || above.any(|line| marks_test(line));
        Some(Function { path: path.to_owned(), name: name.to_owned(), is_test })
    });
    read.collect()
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

/// What the page of guarantees names and the tree does not have, as it were.
fn missing_of_guarantees(page: &str, mutants: &str, sources: &[(String, String)]) -> Vec<String> {
    let functions: Vec<_> =
        sources.iter().flat_map(|(path, text)| functions_of(path, text)).collect();
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
