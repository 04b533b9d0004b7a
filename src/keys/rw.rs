//! The names of a read/write lock of ours.

use std::sync::Arc;

use super::Word;

/// The names of one read/write lock. It shares none with the mutex of the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RwKeys {
    /// What all of them begin with.
    stem: Arc<str>,
    /// Who writes; tells the lock from others.
    pub(crate) writer: Arc<str>,
    /// Until when each of those who read counts; tells the lock from others, too.
    pub(crate) readers: Arc<str>,
}

impl RwKeys {
    pub(super) fn of(stem: String) -> Self {
        let (writer, readers) = (format!("{stem}:writer").into(), format!("{stem}:readers").into());
        Self { stem: stem.into(), writer, readers }
    }

    /// Who writes.
    pub(crate) fn writer(&self) -> Word<'_> {
        self.name(":writer")
    }

    /// Until when each of those who read counts.
    pub(crate) fn readers(&self) -> Word<'_> {
        self.name(":readers")
    }

    /// Holds that were ended by force.
    pub(crate) fn revoked(&self) -> Word<'_> {
        self.name(":revoked")
    }

    /// The token of the latest write.
    pub(crate) fn fence(&self) -> Word<'_> {
        self.name(":fence")
    }

    /// Who waits, by ticket.
    pub(crate) fn queue(&self) -> Word<'_> {
        self.name(":queue")
    }

    /// Until when each of them counts.
    pub(crate) fn alive(&self) -> Word<'_> {
        self.name(":alive")
    }

    /// Those of them that wait to write.
    pub(crate) fn writers(&self) -> Word<'_> {
        self.name(":writers")
    }

    fn name(&self, behind: &'static str) -> Word<'_> {
        Word::Text(["", &self.stem, behind])
    }
}
