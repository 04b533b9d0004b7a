//! What a voter is asked.

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Bid,
    /// A bid of one who will not wait.
    Try,
    /// Gives the bid's vote back; the place stays.
    Undo,
    /// Gives the bid's vote back, and the place up.
    Leave,
    /// Of what was won.
    Renew,
    /// A read under the own write, which is a hold of its own.
    Read,
    RenewRead,
    /// Gives that read's vote back.
    EndRead,
}

impl Kind {
    /// In the order of their numbers.
    pub(crate) const ALL: [Self; 8] = [
        Self::Bid,
        Self::Try,
        Self::Undo,
        Self::Leave,
        Self::Renew,
        Self::Read,
        Self::RenewRead,
        Self::EndRead,
    ];

    pub(crate) fn gives_back(self) -> bool {
        matches!(self, Self::Undo | Self::Leave | Self::EndRead)
    }

    /// The ticket of such a request is none, but the number of its round.
    pub(crate) fn is_round(self) -> bool {
        matches!(self, Self::Renew | Self::Read | Self::RenewRead)
    }
}
