//! What the page of guarantees names exists: its tests, and its mutants. And it names each reason
//! of a quarantine.

use super::names;
use crate::tree::files;

/// What the page names and the tree does not have. That what is there under the name of a test is
/// one, the compiler says: nobody else uses it.
fn missing(page: &str, mutants: &str, sources: &[(String, String)]) -> Vec<String> {
    // A page may leave out folders at the beginning.
    let is_in = |path: &str, file: &str| path == file || path.ends_with(&format!("/{file}"));
    let is_there = |file: &str, name: &str| {
        sources.iter().any(|(path, text)| is_in(path, file) && names(text, name))
    };
    let mut missing = Vec::new();
    for section in page.split("\n## ").filter(|section| section.starts_with(char::is_numeric)) {
        let title = section.lines().next().unwrap_or_default();
        let (mut tests, paragraphs) = (0, section.split("\n\n").map(str::trim));
        for paragraph in paragraphs {
            let quoted = |text: &str| {
                text.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()
            };
            if let Some(list) = paragraph.strip_prefix("- `") {
                // Of each item: the file, and tests of it.
                for item in format!("`{list}").split("\n- ").map(quoted) {
                    tests += item.len() - 1;
                    let gone = item[1..].iter().filter(|name| !is_there(&item[0], name));
                    missing.extend(gone.map(|name| format!("{title}: `{name}` in {}", item[0])));
                }
            } else if let Some(list) = paragraph.strip_prefix("Mutants: ") {
                let gone = quoted(list).into_iter();
                let gone = gone.filter(|mutant| !mutants.contains(&format!("\"{mutant}\"")));
                missing.extend(gone.map(|mutant| format!("{title}: the mutant `{mutant}`")));
            }
        }
        if tests == 0 {
            missing.push(format!("{title}: no test"));
        }
    }
    missing
}

#[test]
fn every_test_and_mutant_that_the_page_of_guarantees_names_exists() {
    let page =
        "# A\n\n## 1. B\n\n- `a.rs`: `holds`,\n  `gone`\n\nMutants: `one`, `two`.\n\n## 2. C\n\nD";
    let sources = [("tests/a.rs".to_owned(), "#[test]\nfn holds() {}\nfn gone_by() {}".to_owned())];
    assert_eq!(
        missing(page, "\"one\"", &sources),
        ["1. B: `gone` in a.rs", "1. B: the mutant `two`", "2. C: no test"]
    );
    let files = files();
    let text = |path: &str| &files.iter().find(|file| file.0 == path).expect("it is there").1;
    let page = text("docs/guarantees.md");
    assert!(page.matches("\nMutants: ").count() > 5, "the page names mutants");
    let missing = missing(page, text("tests/proofs/mutants/list.rs"), &files);
    assert!(missing.is_empty(), "\n{}", missing.join("\n"));
}

/// The reasons of quarantines that a page does not name.
fn unnamed<'a>(reasons: &[&'a str], page: &str) -> Vec<&'a str> {
    reasons.iter().copied().filter(|reason| !page.contains(&format!("`{reason}`"))).collect()
}

#[test]
fn every_reason_of_a_quarantine_is_on_the_pages_that_explain_them() {
    assert_eq!(unnamed(&["young", "copied"], "`young`: copied"), ["copied"]);
    let files = files();
    let text = |path: &str| &*files.iter().find(|file| file.0 == path).expect("it is there").1;
    let (_, label) = text("src/metric.rs").split_once("SUSPICION: Label =").expect("the label");
    let (label, _) = label.split_once(");").expect("it ends");
    // The first is the name of the label.
    let reasons: Vec<_> = label.split('"').skip(1).step_by(2).skip(1).collect();
    assert!(reasons.len() > 5 && reasons.contains(&"emptied"), "{reasons:?}");
    for page in ["docs/guarantees.md", "docs/protocol.md", "docs/operations.md"] {
        assert_eq!(unnamed(&reasons, text(page)), [""; 0], "{page}");
    }
}
