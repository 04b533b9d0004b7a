//! Mutants: bugs that stand in the code on purpose, each beside the rule that it breaks.
//!
//! `crate::mutant!(..)` with the name of a mutant is the constant `false`, so the compiler removes
//! the mutant. Only the hunt compiles the library with `--cfg quorate_mutants`: then the mutant is
//! alive that the environment variable `QUORATE_MUTANT` names. `tests/proofs/mutants` lists all
//! mutants and shows that the simulation finds each. If you move a rule, move its mutant with it.

/// Whether this mutant is alive.
#[cfg(not(quorate_mutants))]
macro_rules! mutant {
    ($name:literal) => {
        false
    };
}

/// Whether this mutant is alive.
#[cfg(quorate_mutants)]
macro_rules! mutant {
    ($name:literal) => {
        $crate::mutant::is_alive($name)
    };
}

pub(crate) use mutant;

#[cfg(quorate_mutants)]
thread_local! {
    // For each thread: several models run at once, each on threads of its own.
    static WOKEN: std::cell::Cell<Option<&'static str>> = const { std::cell::Cell::new(None) };
}

/// Makes a mutant alive on this thread: for the models, which run in one process.
#[cfg(quorate_mutants)]
pub fn wake(name: Option<&'static str>) {
    WOKEN.set(name);
}

#[cfg(quorate_mutants)]
pub(crate) fn is_alive(name: &str) -> bool {
    static ALIVE: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    WOKEN.get().is_some_and(|woken| woken == name)
        || ALIVE.get_or_init(|| std::env::var("QUORATE_MUTANT").ok()).as_deref() == Some(name)
}

/// The name of a script, a text in it, and the text that embedded voters run instead.
#[cfg(quorate_mutants)]
static REWRITTEN: std::sync::OnceLock<[&str; 3]> = std::sync::OnceLock::new();

/// Replaces a text of a script in the whole process.
#[cfg(quorate_mutants)]
pub fn rewrite(script: &'static str, text: &'static str, other: &'static str) {
    REWRITTEN.set([script, text, other]).expect("one script is rewritten, once");
}

/// The script as it runs.
#[cfg(all(quorate_mutants, feature = "embedded"))]
pub(crate) fn mutated(script: &str, source: &str) -> String {
    match REWRITTEN.get() {
        Some([rewritten, text, other]) if *rewritten == script => {
            assert_eq!(
                source.matches(text).count(),
                1,
                "{script}: how often is this there: {text}"
            );
            source.replace(text, other)
        }
        _ => source.to_owned(),
    }
}
