//! Requests in the order in which a voter gets them.

use crate::queue_model::kind::Kind;

/// What a voter is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) kind: Kind,
    pub(crate) place: usize,
    pub(crate) bid: u8,
    /// Zero if the bid carries none.
    pub(crate) ticket: u8,
}

/// Up to eight requests, two bytes each, the first in the lowest: a state has many queues, and
/// there are millions of states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Requests(u128);

/// What is under way between one client and one voter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Line {
    /// The voter gets them in this order.
    pub(crate) queue: Requests,
    /// Of connections that broke: each may yet run, unheard, or never.
    pub(crate) late: Requests,
}

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

    /// What is sent again when a connection breaks: undos and leaves.
    pub(crate) fn debts(self) -> Self {
        let mut debts = Self::default();
        self.iter().filter(|request| request.kind.gives_back()).for_each(|it| debts.push(it));
        debts
    }
}

impl Request {
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
}

impl Line {
    /// The connection breaks. What was under way may yet arrive; what gives something back is sent
    /// again on the next connection.
    pub(crate) fn cut(&mut self) {
        self.queue.iter().for_each(|request| self.late.push(request));
        self.queue = self.queue.debts();
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.queue.is_empty() && self.late.is_empty()
    }

    /// Takes away what gives back that which is not there, and which nothing before it on the other
    /// connection can bring.
    pub(crate) fn drop_void(&mut self, is_absent: impl Fn(Request) -> bool) {
        let is_void = |request: Request, other: Requests| {
            let may_bring = |it: Request| !it.kind.gives_back() && it.place == request.place;
            request.kind.gives_back() && is_absent(request) && !other.iter().any(may_bring)
        };
        while self.queue.first().is_some_and(|it| is_void(it, self.late)) {
            self.queue.pop();
        }
        while self.late.first().is_some_and(|it| is_void(it, self.queue)) {
            self.late.pop();
        }
    }
}
