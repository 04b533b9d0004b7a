//! Mutants: bugs that stand in the code on purpose, each beside the rule that it breaks.
//!
//! `crate::mutant!(..)` with the name of a mutant is the constant `false`, and the compiler leaves
//! nothing of the mutant. Only the hunt compiles the library with `--cfg quorate_mutants`. A mutant
//! is then alive if the environment variable `QUORATE_MUTANT` has its name. `tests/proofs/mutants`
//! lists all mutants and shows that the simulation finds each. A refactor moves a mutant with its
//! rule.

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
    // Several models run at once, each on threads of its own.
    static WOKEN: std::cell::Cell<Option<&'static str>> = const { std::cell::Cell::new(None) };
}

/// From here on this one is alive on this thread: for the models, which run in one process.
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

/// A script that embedded voters run with another text in it: its name, the text, the other text.
#[cfg(quorate_mutants)]
static REWRITTEN: std::sync::OnceLock<[&str; 3]> = std::sync::OnceLock::new();

/// From here on this text of a script is another one, in the whole process.
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
