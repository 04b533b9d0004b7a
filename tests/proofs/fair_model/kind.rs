//! What a voter is asked.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bid,
    /// A bid of one who will not wait.
    Try,
    /// Gives the bid's vote back; the place stays.
    Undo,
    /// Gives the bid's vote back, and the place up.
    Leave,
}

impl Kind {
    /// In the order of their numbers.
    pub(crate) const ALL: [Self; 4] = [Self::Bid, Self::Try, Self::Undo, Self::Leave];

    pub(crate) fn gives_back(self) -> bool {
        matches!(self, Self::Undo | Self::Leave)
    }
}
