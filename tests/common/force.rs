//! What operators see.

use quorate::{HolderKind, LockView};

/// To read, or to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    Read,
    Write,
}

/// How many wait for this.
pub fn waiting(seen: &LockView, kind: HolderKind) -> usize {
    seen.waiting.iter().filter(|waiting| waiting.kind == kind).count()
}
