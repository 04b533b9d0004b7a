//! What voters are asked.

use crate::{network, queue_model::kind::Kind};

/// What a voter is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Request {
    pub(crate) kind: Kind,
    pub(crate) place: usize,
    pub(crate) bid: u8,
    /// Zero if the bid carries none.
    pub(crate) ticket: u8,
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
