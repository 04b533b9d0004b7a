//! What is on its way between a client and a voter of a model.

use std::{
    hash::{Hash, Hasher},
    marker::PhantomData,
};

/// What a voter is asked.
pub(crate) trait Request: Copy {
    /// In two bytes; never zero.
    fn pack(self) -> u16;

    fn unpack(packed: u16) -> Self;

    /// It gives something back, and is sent again when its connection breaks.
    fn gives_back(self) -> bool;

    /// It can bring what the other gives back.
    fn may_bring(self, other: Self) -> bool;

    /// The same, and nobody listens for an answer.
    fn unheard(self) -> Self {
        self
    }
}

/// Up to eight requests in their order, the first in the lowest bytes: a state has many queues, and
/// there are millions of states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Requests<R>(u128, PhantomData<R>);

impl<R> Default for Requests<R> {
    fn default() -> Self {
        Self(0, PhantomData)
    }
}

impl<R: Request> Requests<R> {
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn push(&mut self, request: R) {
        let room = self.0.leading_zeros() / 16;
        assert!(room > 0, "more than eight requests under way on one line");
        self.0 |= u128::from(request.pack()) << (16 * (8 - room));
    }

    pub(crate) fn first(self) -> Option<R> {
        let [low, high, ..] = self.0.to_le_bytes();
        (!self.is_empty()).then(|| R::unpack(u16::from_le_bytes([low, high])))
    }

    pub(crate) fn pop(&mut self) -> Option<R> {
        let first = self.first();
        self.0 >>= 16;
        first
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = R> {
        let mut left = self;
        std::iter::from_fn(move || left.pop())
    }

    pub(crate) fn each(&mut self, change: impl Fn(R) -> R) {
        *self = self.iter().map(change).collect();
    }
}

impl<R: Request> FromIterator<R> for Requests<R> {
    fn from_iter<T: IntoIterator<Item = R>>(requests: T) -> Self {
        let mut queue = Self::default();
        requests.into_iter().for_each(|request| queue.push(request));
        queue
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Way<R> {
    /// The voter gets them in this order.
    pub(crate) queue: Requests<R>,
    /// Of connections that broke: each may yet run, unheard, or never.
    pub(crate) late: Requests<R>,
}

impl<R> Default for Way<R> {
    fn default() -> Self {
        Self { queue: Requests::default(), late: Requests::default() }
    }
}

impl<R: Request> Way<R> {
    pub(crate) fn is_quiet(&self) -> bool {
        self.queue.is_empty() && self.late.is_empty()
    }

    /// The connection breaks. What was under way may yet arrive; what gives something back is sent
    /// again on the next connection, if anybody `repeats` it.
    pub(crate) fn cut(&mut self, repeats: bool) {
        self.queue.iter().for_each(|request| self.late.push(request.unheard()));
        self.keep_debts(repeats);
    }

    /// All connections break with the voter's process, and nothing on them arrives.
    pub(crate) fn crash(&mut self, repeats: bool) {
        self.late = Requests::default();
        self.keep_debts(repeats);
    }

    fn keep_debts(&mut self, repeats: bool) {
        self.queue = self.queue.iter().filter(|it| repeats && it.gives_back()).collect();
    }

    /// Takes away what gives back that which is not there, and which nothing before it on the other
    /// connection can bring.
    pub(crate) fn drop_void(&mut self, is_absent: impl Fn(R) -> bool) {
        let is_void = |it: R, other: Requests<R>| {
            let may_come = other.iter().any(|one| !one.gives_back() && one.may_bring(it));
            it.gives_back() && is_absent(it) && !may_come
        };
        while self.queue.first().is_some_and(|it| is_void(it, self.late)) {
            self.queue.pop();
        }
        while self.late.first().is_some_and(|it| is_void(it, self.queue)) {
            self.late.pop();
        }
    }
}

/// The names of the voters in a printed path. They are no part of the state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names([u8; 3]);

impl Names {
    pub(crate) const FIRST: Self = Self([1, 2, 3]);
}

impl PartialEq for Names {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Hash for Names {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// Puts voters of the same sets in the order of what they contain, each with its name.
pub(crate) fn put_in_order<V: Ord>(
    voters: &mut [V; 3],
    Names(names): &mut Names,
    are_alike: impl Fn(usize, usize) -> bool,
) {
    for (left, right) in [(0, 1), (1, 2), (0, 1)] {
        if are_alike(left, right) && voters[left] > voters[right] {
            voters.swap(left, right);
            names.swap(left, right);
        }
    }
}
