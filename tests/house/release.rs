//! What a release needs: the files of the package, licences that may be passed on, and a version
//! that says what has changed.

use std::{env, fs, path::Path, process::Command};

use quorate_support::ROOT;

use crate::tidy::tree;

fn cargo(arguments: &[&str]) -> String {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo).args(arguments).current_dir(ROOT).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it is text")
}

/// Whether a file is meant: by its name, or because it is in a folder `folder/*`.
fn is_meant(pattern: &str, path: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == path, |folder| path.starts_with(folder))
}

/// Files that are packed and not listed, and lines of the list that nothing is packed for.
fn differences(list: &str, packed: &str) -> Vec<String> {
    let unlisted = packed.lines().filter(|path| !list.lines().any(|line| is_meant(line, path)));
    let unused = list.lines().filter(|line| !packed.lines().any(|path| is_meant(line, path)));
    let unlisted = unlisted.map(|path| format!("{path} is packed and not listed"));
    unlisted.chain(unused.map(|line| format!("{line} is listed and not packed"))).collect()
}

#[test]
fn the_package_has_the_files_that_are_listed_and_no_others() {
    assert!(differences("a\nb/*", "a\nb/c").is_empty());
    assert_eq!(differences("a", "b"), ["b is packed and not listed", "a is listed and not packed"]);
    let packed =
        cargo(&["package", "--list", "--allow-dirty", "--offline", "--package", "quorate"]);
    let mut found = differences(include_str!("package.txt"), &packed);
    // What the sources and their documentation are made of.
    let needed = tree::files().into_iter().map(|(path, _)| path);
    let needed =
        needed.filter(|path| ["src/", "lua/", "docs/"].iter().any(|at| path.starts_with(at)));
    let missing = needed.filter(|needed| !packed.lines().any(|path| path == needed));
    found.extend(missing.map(|path| format!("{path} is not packed")));
    assert!(found.is_empty(), "\n{}", found.join("\n"));
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

/// What a change of the public interface does to programs that use it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Change {
    Nothing,
    Addition,
    Break,
}

/// By the lists of the interface: a line that is gone or different breaks programs. So does a new
/// field or variant of a type that is not `non-exhaustive`. Any other new line is an addition.
fn change(before: &str, after: &str) -> Change {
    let has = |text: &str, line: &str| text.lines().any(|other| other == line);
    if before.lines().any(|line| !has(after, line)) {
        return Change::Break;
    }
    let new = after.lines().filter(|line| !has(before, line));
    let closed = |line: &&str| {
        let variant = line.strip_prefix("variant ").and_then(|rest| {
            let name = rest.split([' ', '(', '{']).next()?;
            name.rsplit_once("::")
        });
        let field = line.strip_prefix("field ").and_then(|rest| rest.split_once('.'));
        let owner = variant.or(field).map(|(owner, _)| owner);
        owner.is_some_and(|owner| {
            ["enum ", "struct "].iter().any(|kind| {
                let declared = format!("{kind}{owner}");
                before.lines().any(|line| {
                    let rest = line.strip_prefix(&declared);
                    rest.is_some_and(|rest| {
                        (rest.is_empty() || rest.starts_with(' '))
                            && !rest.contains("non-exhaustive")
                    })
                })
            })
        })
    };
    let changes = new.map(|line| if closed(&line) { Change::Break } else { Change::Addition });
    changes.max().unwrap_or(Change::Nothing)
}

fn parts(version: &str) -> [u32; 3] {
    let parts: Vec<u32> = version.split('.').map(|part| part.parse().expect("a number")).collect();
    parts.try_into().expect("three numbers")
}

/// Whether the version tells users of this change: before 1.0 the second number says that programs
/// break, and the third one anything else; from 1.0 on the first, and the second or third.
fn is_enough(from: &str, to: &str, change: Change) -> bool {
    let (from, to) = (parts(from), parts(to));
    match change {
        Change::Nothing => to >= from,
        Change::Addition if from[0] == 0 => to > from,
        Change::Addition => to[..2] > from[..2],
        Change::Break if from[0] == 0 => to[..2] > from[..2],
        Change::Break => to[0] > from[0],
    }
}

#[test]
fn a_change_of_the_interface_needs_a_version_that_says_so() {
    let before =
        "enum q::A\nenum q::B (non-exhaustive)\nfn q::f()\nvariant q::A::X\nstruct q::C [embedded]";
    assert_eq!(change(before, before), Change::Nothing);
    assert_eq!(change(before, &format!("{before}\nfn q::g()")), Change::Addition);
    assert_eq!(change(before, &format!("{before}\nvariant q::B::Y(u8)")), Change::Addition);
    assert_eq!(change(before, &format!("{before}\nvariant q::A::Y(u8)")), Change::Break);
    assert_eq!(
        change(before, &format!("{before}\nfield q::C.d: Vec<q::A> [embedded]")),
        Change::Break
    );
    assert_eq!(change(before, &before.replace("f()", "f(u8)")), Change::Break);
    for (from, to, change) in [
        ("0.1.0", "0.1.0", Change::Nothing),
        ("0.1.0", "0.1.1", Change::Addition),
        ("0.1.9", "0.2.0", Change::Break),
        ("1.2.3", "1.3.0", Change::Addition),
        ("1.2.3", "2.0.0", Change::Break),
    ] {
        assert!(is_enough(from, to, change), "{from} {to} {change:?}");
    }
    assert!(!is_enough("0.1.0", "0.1.0", Change::Addition));
    assert!(!is_enough("0.1.0", "0.1.1", Change::Break));
    assert!(!is_enough("1.2.3", "1.2.4", Change::Addition));
    assert!(!is_enough("1.2.3", "1.3.0", Change::Break));

    let package = include_str!("../../Cargo.toml").split_once("[package]").expect("it is one").1;
    let version = package.split("\nversion = \"").nth(1).and_then(|rest| rest.split('"').next());
    let version = version.expect("it has a version");
    let (now, path) = (include_str!("api.txt"), "tests/house/api.released.txt");
    // The list as it was released, with the version in its first line. There is none before 0.1.0.
    match fs::read_to_string(Path::new(ROOT).join(path)) {
        Err(_) => assert_eq!(version, "0.1.0", "keep the list of the last release in {path}"),
        Ok(released) => {
            let (from, released) = released.split_once('\n').expect("a version, and the list");
            let change = change(released, now);
            assert!(is_enough(from, version, change), "{from} to {version}: {change:?}");
        }
    }
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
