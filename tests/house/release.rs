//! What a release needs: the files of the package, and licences that may be passed on.

use std::{env, process::Command};

use quorate_support::ROOT;

use crate::tidy::tree;

fn cargo(arguments: &[&str]) -> String {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo).args(arguments).current_dir(ROOT).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it is text")
}

#[test]
fn the_package_has_what_the_sources_and_their_documentation_are_made_of() {
    let packed =
        cargo(&["package", "--list", "--allow-dirty", "--offline", "--package", "quorate"]);
    let needed = tree::files().into_iter().map(|(path, _)| path);
    let needed =
        needed.filter(|path| ["src/", "lua/", "docs/"].iter().any(|at| path.starts_with(at)));
    let missing: Vec<_> =
        needed.filter(|needed| !packed.lines().any(|path| path == needed)).collect();
    assert!(missing.is_empty(), "not packed: {missing:?}");
}

/// Licences that allow to link, to change and to pass on, if their text goes along.
const PERMITTED: [&str; 11] = [
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
    "CDLA-Permissive-2.0",
];

/// The parts of an expression between these words, outside of brackets.
fn split<'a>(expression: &'a str, word: &str) -> Vec<&'a str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, sign) in expression.char_indices() {
        match sign {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ if depth == 0 && at >= start && expression[at..].starts_with(word) => {
                parts.push(&expression[start..at]);
                start = at + word.len();
            }
            _ => {}
        }
    }
    parts.push(&expression[start..]);
    parts
}

/// Whether the licence, an expression by SPDX, can be fulfilled by permitted ones.
fn is_permitted(licence: &str) -> bool {
    // An older form of OR.
    let licence = licence.trim().replace('/', " OR ");
    split(&licence, " OR ").iter().any(|choice| {
        split(choice, " AND ").iter().all(|part| {
            let inner = part.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
            inner.map_or_else(|| PERMITTED.contains(&part.trim()), is_permitted)
        })
    })
}

/// Packages, with their licences, of what `cargo metadata` prints.
fn licences(metadata: &str) -> Vec<(&str, &str)> {
    let packages = metadata.split("{\"name\":\"").skip(1);
    let read = packages.filter_map(|package| {
        let (name, rest) = package.split_once("\",\"version\":\"")?;
        let (_, licence) = rest.split_once("\"license\":")?;
        let quoted = licence.strip_prefix('"').and_then(|licence| licence.split_once('"'));
        Some((name, quoted.map_or("none", |(licence, _)| licence)))
    });
    read.collect()
}

#[test]
fn every_dependency_has_a_licence_that_is_permitted() {
    for good in ["MIT", "GPL-3.0 OR MIT", "(MIT OR X) AND Unicode-3.0", "X/Apache-2.0"] {
        assert!(is_permitted(good), "{good}");
    }
    for bad in ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR X) AND Y", "none"] {
        assert!(!is_permitted(bad), "{bad}");
    }
    // Those of other systems too, which may have to be downloaded.
    let metadata = cargo(&["metadata", "--format-version", "1", "--locked"]);
    let licences = licences(&metadata);
    for expected in ["quorate", "fred", "tokio"] {
        assert!(licences.iter().any(|(name, _)| *name == expected), "{expected} is not read");
    }
    let others: Vec<_> = licences.iter().filter(|(_, licence)| !is_permitted(licence)).collect();
    assert!(others.is_empty(), "{others:?}");
}

/// The servers of the public tests, and those of the page on versions, are the same.
#[test]
fn the_public_tests_run_on_the_servers_that_the_page_on_versions_names() {
    let (page, workflow) =
        (include_str!("../../docs/versions.md"), include_str!("../../.github/workflows/ci.yml"));
    let (_, servers) = page.split_once("## Servers").expect("it names servers");
    let rows = servers.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let named: Vec<_> =
        rows.filter(|row| row.starts_with("Redis ") || row.starts_with("Valkey ")).collect();
    let matrix = workflow.lines().filter_map(|line| line.trim().strip_prefix("- { name: "));
    let run: Vec<_> = matrix.filter_map(|line| line.split(',').next()).collect();
    assert!(named.len() > 3 && named == run, "{named:?} {run:?}");
    assert!(workflow.contains("run: tests/run full\n"), "it runs what everybody runs");
    let manifest = include_str!("../../Cargo.toml");
    for (place, version) in [("of the library", "1.89"), ("of the tests", "1.95")] {
        assert!(manifest.contains(&format!("rust-version = \"{version}\"")), "{place}");
        assert!(page.contains(&format!("Rust {version}")), "{place}");
    }
}
