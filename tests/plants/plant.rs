//! A bug, as an edit of the code that has it not.

/// One bug.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plant {
    pub(crate) name: &'static str,
    /// In one sentence, what the planted library does wrong.
    pub(crate) what: &'static str,
    pub(crate) edits: &'static [Edit],
    /// Of these laws at least one is broken in the first schedule that breaks any.
    pub(crate) caught_by: &'static [&'static str],
}

/// One place where a plant stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edit {
    pub(crate) file: &'static str,
    /// Text that stands in the file exactly once, and that `replace` may contain once more: so
    /// several plants can stand in one place.
    pub(crate) find: &'static str,
    /// What stands there instead. In Rust [`PLANTED`] says whether the plant is alive; Lua is
    /// replaced only where it is.
    pub(crate) replace: &'static str,
}

/// Stands for the question whether the plant is alive.
pub(crate) const PLANTED: &str = "PLANTED";

impl Plant {
    /// The plant as it is read in code.
    pub(crate) fn question(&self) -> String {
        format!("crate::planted({:?})", self.name)
    }
}
