//! The switch of the mutants that stand in the engine, for the models: `crate::mutant!(..)` there
//! is this one here. A model wakes one of them while it looks for what that breaks.

use std::cell::Cell;

/// Whether this mutant is alive.
macro_rules! mutant {
    ($name:literal) => {
        $crate::mutant::is_alive($name)
    };
}

pub(crate) use mutant;

thread_local! {
    // Several models run at once, each on threads of its own.
    static ALIVE: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// From here on, on this thread.
pub(crate) fn wake(name: Option<&'static str>) {
    ALIVE.set(name);
}

pub(crate) fn is_alive(name: &str) -> bool {
    ALIVE.get().is_some_and(|alive| alive == name)
}
