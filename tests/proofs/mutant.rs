//! The mutants that stand in the library's decisions: a model wakes one of them while it looks for
//! what that breaks. Without the wrapper of the hunt there are none.

/// From here on this one is alive, on this thread.
#[cfg(quorate_mutants)]
pub(crate) use quorate::proto::wake;

#[cfg(not(quorate_mutants))]
pub(crate) fn wake(name: Option<&'static str>) {
    assert_eq!(name, None, "the library is compiled without its mutants");
}
