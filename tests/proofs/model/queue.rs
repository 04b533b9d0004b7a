//! Requests in the order in which a voter gets them.

/// What a voter is asked. The client is that of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) kind: Kind,
    pub(crate) number: u8,
    /// The client still listens for the answer.
    pub(crate) awaited: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Acquire,
    Renew,
    /// Of a lost attempt. The same script as a release.
    Undo,
    /// Of a hold that ended.
    Release,
}

impl Kind {
    pub(crate) fn gives_back(self) -> bool {
        matches!(self, Self::Undo | Self::Release)
    }
}

/// Up to eight requests, a byte each, the first in the lowest: a state has many queues, and there
/// are millions of states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Queue(u64);

impl Queue {
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn push(&mut self, request: Request) {
        let room = self.0.leading_zeros() / 8;
        assert!(room > 0, "more than eight requests under way on one line");
        self.0 |= u64::from(request.to_byte()) << (8 * (8 - room));
    }

    pub(crate) fn first(self) -> Option<Request> {
        let [byte, ..] = self.0.to_le_bytes();
        (byte > 0).then(|| Request::from_byte(byte))
    }

    pub(crate) fn pop(&mut self) -> Option<Request> {
        let first = self.first();
        self.0 >>= 8;
        first
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Request> {
        self.0.to_le_bytes().into_iter().take_while(|byte| *byte > 0).map(Request::from_byte)
    }

    /// The same requests, and nobody listens for an answer.
    pub(crate) fn unawaited(self) -> Self {
        Self(self.0 & !(u64::from(Request::AWAITED) * 0x0101_0101_0101_0101))
    }
}

impl FromIterator<Request> for Queue {
    fn from_iter<T: IntoIterator<Item = Request>>(requests: T) -> Self {
        let mut queue = Self::default();
        for request in requests {
            queue.push(request);
        }
        queue
    }
}

impl Request {
    const AWAITED: u8 = 0x80;
    const NUMBER: u8 = 0x0f;

    /// It is the first of its queue, gives back a vote that is not there, and nothing in the other
    /// queue asks for that vote.
    pub(crate) fn is_void(self, other: Queue, is_absent: impl Fn(u8) -> bool) -> bool {
        let may_bring = |it: Request| !it.kind.gives_back() && it.number == self.number;
        self.kind.gives_back() && is_absent(self.number) && !other.iter().any(may_bring)
    }

    /// Never zero: numbers start at one.
    fn to_byte(self) -> u8 {
        let awaited = if self.awaited { Self::AWAITED } else { 0 };
        let kind = match self.kind {
            Kind::Acquire => 0x00,
            Kind::Renew => 0x10,
            Kind::Undo => 0x20,
            Kind::Release => 0x30,
        };
        awaited | kind | self.number
    }

    fn from_byte(byte: u8) -> Self {
        let kind = match byte & 0x70 {
            0x00 => Kind::Acquire,
            0x10 => Kind::Renew,
            0x20 => Kind::Undo,
            _ => Kind::Release,
        };
        Self { kind, number: byte & Self::NUMBER, awaited: byte & Self::AWAITED > 0 }
    }
}
