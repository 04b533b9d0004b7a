//! The commands that the pages on proof and the record name run a test or a mutant that there is.

use super::in_word;
use crate::tree::files;

/// The commands in the code of a page: the mutant that each has alive, and its words.
fn commands(page: &str) -> impl Iterator<Item = (Option<&str>, Vec<&str>)> {
    page.split(['`', '\n']).filter_map(|code| {
        let (before, command) = code.split_once("tests/run ")?;
        let mutant =
            before.split_whitespace().find_map(|word| word.strip_prefix("QUORATE_MUTANT="));
        let words = command.split_whitespace().filter(|word| *word != "full").collect();
        (!code.starts_with('#')).then_some((mutant, words))
    })
}

/// Whether a file is compiled into the test program of this name.
fn is_of(part: &str, path: &str) -> bool {
    match part {
        "lib" => path.starts_with("src/") && !path.starts_with("src/bin/"),
        "cli" => path.starts_with("tests/cli/") || path.starts_with("src/bin/"),
        _ => {
            let within = path.strip_prefix("tests/").and_then(|path| path.strip_prefix(part));
            within.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        }
    }
}

/// Whether some function, or some file, has these words in its name.
fn has(sources: &[(String, String)], part: &str, words: &str) -> bool {
    let mut of_part = sources.iter().filter(|(path, _)| is_of(part, path));
    of_part.any(|(path, text)| {
        let names = text.split("fn ").skip(1);
        let mut names = names.map(|rest| rest.split(|sign| !in_word(sign)).next().unwrap_or(""));
        path.contains(words) || names.any(|name| name.contains(words))
    })
}

/// The commands that run nothing.
fn idle(page: &str, mutants: &str, sources: &[(String, String)]) -> Vec<String> {
    let runs = |(mutant, words): &(Option<&str>, Vec<&str>)| match (mutant, &words[..]) {
        (Some(mutant), ["mutants"]) => mutants.contains(&format!("\"{mutant}\"")),
        (None, ["mutants"]) => true,
        (None, [part]) => sources.iter().any(|(path, _)| is_of(part, path)),
        (None, [part, words, ..]) => has(sources, part, words),
        _ => false,
    };
    commands(page).filter(|it| !runs(it)).map(|it| format!("{it:?}")).collect()
}

#[test]
fn every_command_of_the_record_runs_something() {
    let sources = [("tests/a/b.rs".to_owned(), "#[test]\nfn holds_it() {}".to_owned())];
    let page = "`tests/run a holds` `QUORATE_MUTANT=one tests/run mutants`\n\
                SEEDS=1 tests/run full a b --nocapture\n";
    assert_eq!(idle(page, "\"one\"", &sources), [""; 0]);
    for (good, bad) in [("a holds", "a holdz"), ("a holds", "c holds"), ("=one", "=two")] {
        assert_eq!(idle(&page.replace(good, bad), "\"one\"", &sources).len(), 1, "{bad}");
    }
    let files = files();
    let text = |path: &str| &*files.iter().find(|file| file.0 == path).expect("it is there").1;
    let mutants = text("tests/proofs/mutants/list.rs");
    assert!(commands(text("docs/record.md")).count() > 40, "the record names tests");
    for page in ["docs/record.md", "docs/proof.md"] {
        assert_eq!(idle(text(page), mutants, &files), [""; 0], "{page}");
    }
}
