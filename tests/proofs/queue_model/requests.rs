//! What voters are asked.

use crate::network;

/// What a voter is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Request {
    pub(crate) kind: Kind,
    pub(crate) place: usize,
    pub(crate) bid: u8,
    /// Zero if the bid carries none.
    pub(crate) ticket: u8,
}

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

impl network::Request for Request {
    /// Never zero, for bids are counted from one.
    fn pack(self) -> u16 {
        let place = u16::try_from(self.place).expect("four places at most");
        self.kind as u16 | place << 4 | u16::from(self.bid) << 8 | u16::from(self.ticket) << 12
    }

    fn unpack(packed: u16) -> Self {
        let kind = Kind::ALL[usize::from(packed & 0xf)];
        let [low, high] = packed.to_le_bytes();
        Self { kind, place: usize::from(low >> 4), bid: high & 0xf, ticket: high >> 4 }
    }

    fn gives_back(self) -> bool {
        self.kind.gives_back()
    }

    fn may_bring(self, other: Self) -> bool {
        self.place == other.place
    }
}
