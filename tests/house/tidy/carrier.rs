//! What the seam to the Redis client names: the version that is used, and tests that exist.

use super::names;
use crate::tree::files;

const SEAM: &str = "src/voter/single/carrier.rs";

/// The rows of the table in the header: what is relied on, and the tests in the last column.
fn rows(seam: &str) -> Vec<(&str, Vec<&str>)> {
    let rows = seam.lines().map_while(|line| line.strip_prefix("//!"));
    let rows = rows.filter_map(|row| row.trim().strip_prefix("| ")?.strip_suffix(" |"));
    let columns = rows.filter_map(|row| row.rsplit_once(" | ")).skip(1);
    columns.map(|(fact, tests)| (fact, tests.split('`').skip(1).step_by(2).collect())).collect()
}

/// The rows without a test, and the tests that are not there.
fn missing(seam: &str, sources: &[(String, String)]) -> Vec<String> {
    let is_there = |test: &str| {
        sources.iter().any(|(path, text)| {
            path.starts_with("src/voter/single/") && names(text, &format!("fn {test}"))
        })
    };
    let of_row = |(fact, tests): (&str, Vec<&str>)| {
        let gone =
            tests.iter().filter(|test| !is_there(test)).map(|test| format!("{fact}: {test}"));
        gone.chain(tests.is_empty().then(|| format!("{fact}: no test"))).collect::<Vec<_>>()
    };
    rows(seam).into_iter().flat_map(of_row).collect()
}

#[test]
fn the_seam_names_the_version_in_use_and_a_test_for_each_reliance() {
    let planted =
        "//! | fred | test |\n//! |---|---|\n//! | a | `it_holds`, `gone` |\n//! | b | - |";
    let sources = [("src/voter/single/a.rs".to_owned(), "fn it_holds() {}".to_owned())];
    assert_eq!(missing(planted, &sources), ["a: gone", "b: no test"]);

    let files = files();
    let text = |path: &str| &*files.iter().find(|file| file.0 == path).expect("it is there").1;
    let seam = text(SEAM);
    assert!(rows(seam).len() > 10, "{:?}", rows(seam));
    let missing = missing(seam, &files);
    assert!(missing.is_empty(), "\n{}", missing.join("\n"));

    let named = seam.strip_prefix("//! fred ").and_then(|rest| rest.split(',').next());
    let named = named.expect("the header begins with the version");
    let locked = format!("name = \"fred\"\nversion = \"{named}\"");
    assert!(text("Cargo.lock").contains(&locked), "Cargo.lock has no fred {named}");
}
