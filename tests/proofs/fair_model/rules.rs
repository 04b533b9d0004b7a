//! What the model follows: the rules of the queue, one broken on purpose, and how far it goes.

use crate::fair_model::state::{MOST_CLIENTS, MOST_PLACES, VOTERS};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) order: Order,
    pub(crate) broken: Option<Broken>,
    pub(crate) bounds: Bounds,
}

/// What a place must have kept since another first asked, for the other to come after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Its ticket on the voters of one majority.
    OneMajority,
    /// At every moment its ticket on some majority.
    SomeMajority,
}

/// A rule that is left out or done wrong, to see that the model finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// A voter does not lower a ticket, and the waiter takes the largest that it hears of later.
    TicketRaised,
    /// Bids never carry a ticket: every voter has its own order of arrival.
    OrderOfArrival,
    /// The ticket is fixed by any answers, be they fewer than a majority.
    TicketOfAMinority,
    /// A bid is won by any vote.
    WonByAMinority,
    /// A voter takes the place out of its queue when it grants.
    TakenOutAtGrant,
    /// The undo of a lost bid takes the place out as well.
    UndoDropsPlace,
    /// A voter does not look who is before the place that bids.
    Barging,
    /// Who leaves says so only to voters that granted.
    LeavesWhereGranted,
    /// Entries whose time is over stay.
    NeverSwept,
}

/// How much of everything may happen on one path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) voters: usize,
    /// How many places each client may take.
    pub(crate) places: [u8; MOST_CLIENTS],
    /// These places only try: one bid, and they never queue.
    pub(crate) tries: [bool; MOST_PLACES],
    /// How often each place may bid, not counting the bid that follows at once on a fix.
    pub(crate) bids: [u8; MOST_PLACES],
    pub(crate) start: Start,
    pub(crate) budget: Budget,
}

/// What a path starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    Free,
    /// All voters have voted for somebody who is gone, so that whoever asks has to queue.
    Taken,
    /// Besides, this place has asked, and stands on two of the voters with its ticket; what it
    /// sent to the third is still under way.
    Queued(usize),
}

/// What all places together may still do, and what may still break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Budget {
    /// Places that give up.
    pub(crate) leaves: u8,
    /// Bids that are lost for want of answers in time.
    pub(crate) timeouts: u8,
    /// Connections that break; what was under way on them is lost or arrives late.
    pub(crate) cuts: u8,
    /// Clients that die.
    pub(crate) deaths: u8,
    /// Voters that restart with their data.
    pub(crate) restarts: u8,
    /// Voters that restart without.
    pub(crate) amnesias: u8,
    /// Entries of waiting places that were not refreshed in time.
    pub(crate) lapses: u8,
}

impl Bounds {
    pub(crate) const fn of(places: [u8; MOST_CLIENTS], bids: [u8; MOST_PLACES]) -> Self {
        let tries = [false; MOST_PLACES];
        Self { voters: VOTERS, places, tries, bids, start: Start::Taken, budget: Budget::NONE }
    }

    pub(crate) const fn with(self, budget: Budget) -> Self {
        Self { budget, ..self }
    }

    pub(crate) const fn from(self, start: Start) -> Self {
        Self { start, ..self }
    }
}

impl Budget {
    pub(crate) const NONE: Self =
        Self { leaves: 0, timeouts: 0, cuts: 0, deaths: 0, restarts: 0, amnesias: 0, lapses: 0 };
}

impl Rules {
    pub(crate) fn kept(bounds: Bounds) -> Self {
        Self { order: Order::OneMajority, broken: None, bounds }
    }

    pub(crate) fn broken(broken: Broken, bounds: Bounds) -> Self {
        Self { broken: Some(broken), ..Self::kept(bounds) }
    }

    pub(crate) fn breaks(&self, rule: Broken) -> bool {
        self.broken == Some(rule)
    }

    pub(crate) fn clients(&self) -> std::ops::Range<usize> {
        0..self.bounds.places.iter().filter(|places| **places > 0).count()
    }

    /// In the order of their texts, which is what tells equal tickets apart.
    pub(crate) fn places(&self) -> std::ops::Range<usize> {
        0..self.bounds.places.iter().map(|places| usize::from(*places)).sum()
    }

    pub(crate) fn client_of(&self, place: usize) -> usize {
        let mut first = 0;
        for (client, places) in self.bounds.places.iter().enumerate() {
            first += usize::from(*places);
            if place < first {
                return client;
            }
        }
        unreachable!("place {place} is nobody's")
    }

    pub(crate) fn voters(&self) -> usize {
        self.bounds.voters
    }

    pub(crate) fn quorum(&self) -> usize {
        self.voters() / 2 + 1
    }

    /// Those that win before this one where they stood on a majority when it asked.
    pub(crate) fn rivals(&self, place: usize) -> impl Iterator<Item = usize> {
        self.places().filter(move |other| *other != place)
    }

    pub(crate) fn takes_any_majority(&self) -> bool {
        self.order == Order::SomeMajority
    }

    pub(crate) fn only_tries(&self, place: usize) -> bool {
        self.bounds.tries[place]
    }
}
