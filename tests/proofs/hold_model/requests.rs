//! Requests in the order in which a voter gets them.

/// What a voter is asked. The client is that of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) kind: Kind,
    /// Of the hold.
    pub(crate) number: u8,
    /// Of an acquire the floor, of a renewal the token.
    pub(crate) token: u8,
    /// The client still listens for the answer.
    pub(crate) awaited: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    pub(crate) fn gives_back(self) -> bool {
        matches!(self, Self::Undo | Self::Release)
    }

    pub(crate) fn renews(self) -> bool {
        matches!(self, Self::Renew | Self::Keep)
    }
}

/// Up to eight requests, two bytes each, the first in the lowest: a state has many queues, and
/// there are millions of states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Requests(u128);

impl Requests {
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn push(&mut self, request: Request) {
        let room = self.0.leading_zeros() / 16;
        assert!(room > 0, "more than eight requests under way on one line");
        self.0 |= u128::from(request.pack()) << (16 * (8 - room));
    }

    pub(crate) fn first(self) -> Option<Request> {
        let [low, high, ..] = self.0.to_le_bytes();
        (!self.is_empty()).then(|| Request::unpack(u16::from_le_bytes([low, high])))
    }

    pub(crate) fn pop(&mut self) -> Option<Request> {
        let first = self.first();
        self.0 >>= 16;
        first
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Request> {
        let mut left = self;
        std::iter::from_fn(move || left.pop())
    }

    /// The same requests, and nobody listens for an answer.
    pub(crate) fn unawaited(self) -> Self {
        self.iter().map(|request| Request { awaited: false, ..request }).collect()
    }

    /// What is sent again when a connection breaks.
    pub(crate) fn debts(self) -> Self {
        self.iter().filter(|request| request.kind.gives_back()).collect()
    }

    /// The clock goes on, and tokens are told from there.
    pub(crate) fn lower_tokens(&mut self, by: u8) {
        if by > 0 {
            let lower = |it: Request| Request { token: it.token.saturating_sub(by), ..it };
            *self = self.iter().map(lower).collect();
        }
    }
}

impl FromIterator<Request> for Requests {
    fn from_iter<T: IntoIterator<Item = Request>>(requests: T) -> Self {
        let mut queue = Self::default();
        requests.into_iter().for_each(|request| queue.push(request));
        queue
    }
}

impl Request {
    const AWAITED: u8 = 0x80;
    const NUMBER: u8 = 0x0f;

    /// It is the first of its queue, gives back a vote that is not there, and nothing in the other
    /// queue asks for that vote.
    pub(crate) fn is_void(self, other: Requests, is_absent: impl Fn(u8) -> bool) -> bool {
        let may_bring = |it: Request| !it.kind.gives_back() && it.number == self.number;
        self.kind.gives_back() && is_absent(self.number) && !other.iter().any(may_bring)
    }

    /// Never zero: numbers start at one.
    fn pack(self) -> u16 {
        let awaited = if self.awaited { Self::AWAITED } else { 0 };
        let kind = match self.kind {
            Kind::Acquire => 0x00,
            Kind::Renew => 0x10,
            Kind::Undo => 0x20,
            Kind::Release => 0x30,
            Kind::Keep => 0x40,
        };
        u16::from_le_bytes([awaited | kind | self.number, self.token])
    }

    fn unpack(packed: u16) -> Self {
        let [low, token] = packed.to_le_bytes();
        let kind = match low & 0x70 {
            0x00 => Kind::Acquire,
            0x10 => Kind::Renew,
            0x20 => Kind::Undo,
            0x40 => Kind::Keep,
            _ => Kind::Release,
        };
        Self { kind, number: low & Self::NUMBER, token, awaited: low & Self::AWAITED > 0 }
    }
}
