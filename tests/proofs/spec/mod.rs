//! The specification in TLA+: its configurations, and traces of the program held against it.
//!
//! `README.md` beside this file says what each module has.

mod module;
mod traces;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use quorate_tests::prelude::ROOT;
use tla_checker::{
    checker::{CheckResult, check, format_eval_error, format_trace_with_actions},
    load::prepare_from_path,
};

/// What comes of a configuration.
#[derive(Clone, Copy)]
enum Comes {
    /// Its invariant holds in every state, of which there are at least so many.
    True(usize),
    /// A path leads to a state in which this one does not.
    Broken(&'static str),
}

use Comes::{Broken, True};

/// A configuration with its module.
struct Configuration {
    module: &'static str,
    name: &'static str,
    comes: Comes,
}

const fn of(module: &'static str, name: &'static str, comes: Comes) -> Configuration {
    Configuration { module, name, comes }
}

static ALL: [Configuration; 17] = [
    of("Lock", "lock", True(861)),
    of("Lock", "lock_renewed", True(6_313)),
    of("Lock", "lock_data_lost", True(47_430)),
    of("Lock", "broken_majority_lost", Broken("Exclusion")),
    of("Lock", "broken_loss_not_noticed", Broken("Exclusion")),
    of("Lock", "broken_no_quarantine", Broken("Exclusion")),
    of("Lock", "broken_renewal", Broken("Exclusion")),
    of("Lock", "broken_drift", Broken("Exclusion")),
    of("Lock", "broken_half", Broken("Exclusion")),
    of("Tokens", "tokens", True(6_899)),
    of("Tokens", "tokens_handed_on", True(16_848)),
    of("Tokens", "tokens_data_lost", True(23_071)),
    of("Tokens", "broken_few_keepers", Broken("TokensGrow")),
    of("Tokens", "broken_hand_over", Broken("TokensGrow")),
    of("Voters", "voters", True(11_649)),
    of("Voters", "voters_apart", True(4_345)),
    of("Voters", "broken_step_skipped", Broken("Exclusion")),
];

/// A path below the folder of the specification.
fn file(name: &str) -> PathBuf {
    Path::new(ROOT).join("tests/proofs/spec").join(name)
}

fn configured(name: &str) -> PathBuf {
    file("configurations").join(name).with_extension("cfg")
}

fn run(&Configuration { module, name, comes, .. }: &Configuration) {
    let path = file(module).with_extension("tla");
    let mut prepared = prepare_from_path(&path, Some(&configured(name)), &[])
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(prepared.warnings.is_empty(), "{name}: {:?}", prepared.warnings);
    assert_eq!(prepared.spec.invariants.len(), 1, "{name} has one invariant");
    (prepared.checker_config.max_depth, prepared.checker_config.max_states) = (1_000, 5_000_000);
    let invariants = prepared.spec.invariant_names.clone();
    match (check(&prepared.spec, &prepared.domains, &prepared.checker_config), comes) {
        (CheckResult::Ok(stats), True(least)) => {
            println!("{name}: {} states, {:.1} s", stats.states_explored, stats.elapsed_secs);
            assert!(stats.states_explored >= least, "{name}: there should be {least} states");
        }
        (CheckResult::InvariantViolation(path, stats), Broken(invariant)) => {
            let violated = invariants[path.violated_invariant].as_deref();
            assert_eq!(violated, Some(invariant), "{name}");
            let steps = path.actions.iter().flatten().map(|action| &**action);
            let steps = steps.collect::<Vec<_>>().join(", ");
            println!("{name}: {invariant} is broken, {:.1} s: {steps}", stats.elapsed_secs);
        }
        (CheckResult::Ok(_), Broken(invariant)) => {
            panic!("{name}: {invariant} should be broken, and holds");
        }
        (CheckResult::InvariantViolation(path, _), _) => {
            let told = format_trace_with_actions(&path.trace, &path.actions, &prepared.spec.vars);
            panic!("{name}: {:?} is broken\n{told}", invariants[path.violated_invariant]);
        }
        (CheckResult::NextError(error, ..) | CheckResult::InvariantError(error, ..), _) => {
            panic!("{name}: {}", format_eval_error(&error));
        }
        (other, _) => panic!("{name}: {other:?}"),
    }
}

#[test]
fn each_theorem_holds_in_every_state() {
    ALL.iter().filter(|it| matches!(it.comes, True(_))).for_each(run);
}

#[test]
fn without_each_assumption_there_is_a_counterexample() {
    ALL.iter().filter(|it| matches!(it.comes, Broken(_))).for_each(run);
}

#[test]
fn every_configuration_is_checked() {
    let names = |path: PathBuf| {
        let entries = fs::read_dir(path).expect("the folder is there");
        let paths = entries.map(|entry| entry.expect("it can be read").path());
        paths.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
    };
    let there: BTreeSet<String> = names(file("configurations")).collect();
    let checked: BTreeSet<String> = ALL.iter().map(|it| it.name.to_owned()).collect();
    assert_eq!(there, checked);
}
