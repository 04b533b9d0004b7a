//! The simulation finds bugs: each mutant of the library is caught by a law that it breaks.
//!
//! ```sh
//! export RUSTC_WORKSPACE_WRAPPER=$PWD/tests/proofs/mutants/rustc
//! cargo test --profile ci -p quorate-tests --no-default-features --test proofs mutants
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

use list::ALL;

#[test]
fn every_mutant_of_the_code_is_listed_and_every_listed_one_stands_in_the_code() {
    let listed: BTreeSet<&str> = ALL.iter().map(|mutant| mutant.name).collect();
    assert_eq!(listed.len(), ALL.len(), "two have the same name");
    let code = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../src")).concat();
    let found: BTreeSet<&str> = ["crate::mutant!(\"", "ScriptMutant {\n        name: \""]
        .into_iter()
        .flat_map(|before| code.split(before).skip(1))
        .filter_map(|name| name.split('"').next())
        .collect();
    assert_eq!(found, listed);
}

fn sources(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let read = |path: PathBuf| {
        if path.is_dir() { sources(&path) } else { vec![fs::read_to_string(path).expect("a text")] }
    };
    paths.flat_map(read).collect()
}
