//! What voters are asked.

use crate::network;

/// What a voter is asked. The client is that of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Request {
    pub(crate) kind: Kind,
    /// Of the hold.
    pub(crate) number: u8,
    /// Of an acquire the floor, of a renewal the token.
    pub(crate) token: u8,
    /// The client still listens for the answer.
    pub(crate) awaited: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Acquire,
    /// Of an attempt that has its token stored.
    Renew,
    /// Of a hold: as the other where the vote is gone, and with no look at the token where it
    /// stands. So are most rounds of a holder; those that store the token too do more.
    Keep,
    /// Of a lost attempt. The same script as a release.
    Undo,
    /// Of a hold that ended.
    Release,
}

impl Kind {
    /// In the order of their numbers.
    const ALL: [Self; 5] = [Self::Acquire, Self::Renew, Self::Keep, Self::Undo, Self::Release];

    pub(crate) fn gives_back(self) -> bool {
        matches!(self, Self::Undo | Self::Release)
    }

    pub(crate) fn renews(self) -> bool {
        matches!(self, Self::Renew | Self::Keep)
    }
}

const AWAITED: u8 = 0x80;
const NUMBER: u8 = 0x0f;

impl network::Request for Request {
    /// Never zero: numbers start at one.
    fn pack(self) -> u16 {
        let awaited = if self.awaited { AWAITED } else { 0 };
        let kind = (self.kind as u8) << 4;
        u16::from_le_bytes([awaited | kind | self.number, self.token])
    }

    fn unpack(packed: u16) -> Self {
        let [low, token] = packed.to_le_bytes();
        let kind = Kind::ALL[usize::from(low >> 4 & 0x7)];
        Self { kind, number: low & NUMBER, token, awaited: low & AWAITED > 0 }
    }

    fn gives_back(self) -> bool {
        self.kind.gives_back()
    }

    fn may_bring(self, other: Self) -> bool {
        self.number == other.number
    }

    fn unheard(self) -> Self {
        Self { awaited: false, ..self }
    }
}
