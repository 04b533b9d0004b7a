//! The simulation finds bugs: each mutant of the library is caught by a law that it breaks.
//!
//! ```sh
//! export RUSTC_WORKSPACE_WRAPPER=$PWD/tests/proofs/mutants/rustc
//! cargo test --profile ci -p quorate-proofs mutants
//! ```
//!
//! A mutant stands in the code beside the rule that it breaks (`src/mutant.rs`). The wrapper
//! compiles the workspace with its mutants. `list` says what each of them does wrong; `hunt` runs
//! the sweep of this very program with one of them alive. Without the wrapper one test is left
//! here: the list and the code name the same mutants.
//!
//! `QUORATE_MUTANT` limits the hunt to one mutant, `QUORATE_MUTANT_SEEDS` sets how many schedules
//! each may take. `--nocapture` shows which law caught which mutant.

#[cfg(quorate_mutants)]
mod caught;
#[cfg(quorate_mutants)]
mod hunt;
#[cfg_attr(not(quorate_mutants), expect(dead_code, reason = "only the hunt reads all of it"))]
mod list;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use quorate_tests::prelude::ROOT;

use list::{ALL, Mutant, ScriptMutant};

#[test]
fn every_mutant_of_the_code_is_listed_and_every_listed_one_stands_in_the_code() {
    let names: BTreeSet<&str> = ALL.iter().map(|mutant| mutant.name).collect();
    assert_eq!(names.len(), ALL.len(), "two have the same name");
    let code = sources(&Path::new(ROOT).join("src")).concat();
    let calls = code.split("crate::mutant!(\"").skip(1);
    let found: BTreeSet<&str> = calls.filter_map(|name| name.split('"').next()).collect();
    // A mutant may be in both.
    let of_code = |mutant: &&Mutant| mutant.in_script.is_none() || found.contains(mutant.name);
    let listed: BTreeSet<&str> = ALL.iter().filter(of_code).map(|mutant| mutant.name).collect();
    assert_eq!(found, listed);
}

/// Whoever changes a script sees here which mutant has to move with it.
#[test]
fn every_mutant_of_a_script_fits_it_once() {
    for Mutant { name, in_script, .. } in ALL {
        let Some(ScriptMutant { script, find, replace }) = in_script else { continue };
        let (_, source) = quorate::scripts().find(|(name, _)| name == script).expect("it is there");
        assert_eq!(source.matches(find).count(), 1, "{name}: how often is this there: {find}");
        assert_ne!(find, replace, "{name}");
    }
}

/// Embedded voters run their scripts with the mutant that the environment names, if it is in one.
#[cfg(quorate_mutants)]
pub(crate) fn rewrite_script() {
    let Ok(alive) = std::env::var(hunt::ALIVE) else { return };
    let mutant = ALL.iter().find(|mutant| mutant.name == alive);
    if let Some(ScriptMutant { script, find, replace }) = mutant.and_then(|it| it.in_script) {
        quorate::proto::rewrite(script, find, replace);
    }
}

fn sources(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let read = |path: PathBuf| {
        if path.is_dir() { sources(&path) } else { vec![fs::read_to_string(path).expect("a text")] }
    };
    paths.flat_map(read).collect()
}
