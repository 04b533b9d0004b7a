//! The README is read in five minutes, and an example that answers one question in one.

use crate::tidy::tree;

/// Words outside code blocks and comments; those of tables count.
const MOST_WORDS: usize = 700;

fn words(text: &str) -> usize {
    let without_code = text.split("```").step_by(2).collect::<Vec<_>>().join(" ");
    let mut comments = without_code.split("<!--");
    let before = comments.next().unwrap_or_default().to_owned();
    let prose = comments.filter_map(|comment| comment.split_once("-->")).map(|(_, rest)| rest);
    let prose = prose.fold(before, |text, rest| text + " " + rest);
    let has_letter = |word: &&str| word.contains(char::is_alphanumeric);
    prose.split_whitespace().filter(has_letter).count()
}

#[test]
fn the_readme_has_700_words_at_most() {
    assert_eq!(words("Two words. | - | `three` [four](a/b.md)\n```sh\ncode\n```\nfive"), 5);
    assert_eq!(words("<!-- figures: a -->one<!-- end -->\ntwo"), 2);
    let words = words(include_str!("../../README.md"));
    assert!(words <= MOST_WORDS, "the README has {words} words; {MOST_WORDS} are the most");
}

/// Examples that show more than one thing, or that tests drive.
const LONG: [&str; 7] = ["fenced", "leader", "prices", "service", "shutdown", "tour", "turns"];

#[test]
fn an_example_has_fewer_than_60_lines() {
    let files = tree::files();
    let examples = files.iter().filter(|(path, _)| path.starts_with("examples/"));
    let mut examples = examples.filter_map(|(path, text)| {
        let name = path.rsplit('/').next()?.strip_suffix(".rs")?;
        Some((name, text.lines().count())).filter(|(name, _)| !LONG.contains(name))
    });
    let long = examples.find(|(_, lines)| *lines >= 60);
    assert_eq!(long, None);
}

#[test]
fn the_readme_says_truly_which_rust_it_needs_and_whether_it_is_published() {
    let (readme, manifest) = (include_str!("../../README.md"), include_str!("../../Cargo.toml"));
    let package = manifest.split_once("[package]").expect("it is a package").1;
    let of = |name: &str| {
        let value = package.split_once(&format!("\n{name} = \"")).expect("it is set").1;
        value.split('"').next().expect("it ends")
    };
    assert!(readme.contains(&format!("needs Rust {} ", of("rust-version"))));
    let is_unreleased = include_str!("../../CHANGELOG.md").contains("## [Unreleased]");
    let not_yet = format!("Version {} is not on crates.io yet", of("version"));
    // The one who publishes it renames that heading, and is then told of this.
    assert_eq!(readme.contains(&not_yet), is_unreleased);
}
