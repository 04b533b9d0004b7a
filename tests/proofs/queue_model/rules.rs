//! What the model follows: the rules of the lock, one broken on purpose, and how far it goes.

use std::ops::Range;

use crate::{
    change::{Change, Sets},
    queue_model::state::{MOST_CLIENTS, MOST_PLACES},
};
use quorate::proto::Quorum;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) broken: Option<Broken>,
    pub(crate) bounds: Bounds,
}

/// What a user asks for. Each has one place. A fair mutex is a lock that all want to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Write,
    /// The preference of a reader is its turn in the queue.
    Read(Turn),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// `Preference::Readers`.
    First,
    /// `Preference::Fair`.
    Next,
    /// `Preference::Writers`.
    Last,
}

/// A rule that is left out or done wrong, to see that the model finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// A voter does not lower a ticket, and the waiter takes the largest that it hears of later: a
    /// mutant of `proto`.
    TicketRaised,
    /// No rule is broken, but more is asked for: a place wins first that has had its ticket on some
    /// majority at every moment since another asked. It is to be one majority.
    AnyMajority,
    /// A voter that came back empty counts before all that it may have voted for has ended.
    NoQuarantine,
    /// Bids never carry a ticket: every voter has its own order of arrival.
    OrderOfArrival,
    /// Who leaves says so only to voters that granted.
    LeavesWhereGranted,
    /// A voter takes the place out of its queue when it grants.
    TakenOutAtGrant,
    /// The undo of a lost bid takes the place out as well.
    UndoDropsPlace,
    /// A voter does not look who is before the place that bids.
    Barging,
    /// The places of writers that died still count.
    StaleMark,
    /// All readers of a voter end with the lease of the one that asked last.
    SharedDeadline,
    /// Everybody's ticket is the next, and a reader decides by its preference whom it waits for.
    AskersChoice,
    /// A writer looks only whether somebody writes.
    IgnoresReaders,
    /// A renewal is granted whoever else has the vote.
    RenewalTakesOver,
    /// The write is released first, and the read asked for then.
    ReleasedFirst,
    /// A read that was asked for under a write counts also where the write was lost meanwhile.
    ReadOutlivesLoss,
}

/// How much of everything may happen on one path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) voters: usize,
    /// The voters are changed, and these are those of each user.
    pub(crate) change: Option<(Change, [Sets; MOST_PLACES])>,
    pub(crate) users: [Option<Wish>; MOST_PLACES],
    /// How many of them belong to each client, in their order.
    pub(crate) clients: [usize; MOST_CLIENTS],
    /// These only try: one bid, and they never queue.
    pub(crate) tries: [bool; MOST_PLACES],
    /// How often each may bid, not counting the bid that follows at once on a fix.
    pub(crate) bids: [u8; MOST_PLACES],
    pub(crate) start: Start,
    pub(crate) budget: Budget,
}

/// What a path starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    Free,
    /// All voters have voted for a writer who is gone, so that whoever asks has to queue.
    Taken,
    /// Besides, this user has asked, and stands on two of the voters with its ticket; what it sent
    /// to the third is still under way.
    Queued(usize),
    /// This user has won, and all voters have voted for it.
    Held(usize),
}

/// What all users together may still do, and what may still break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Budget {
    /// Users that give up.
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
    /// Entries of users that wait or hold and were not refreshed in time.
    pub(crate) lapses: u8,
    /// Rounds of renewal.
    pub(crate) renewals: u8,
    /// Deadlines that pass of those that hold.
    pub(crate) passes: u8,
    /// Reads under the own write.
    pub(crate) reads: u8,
}

impl Bounds {
    /// These clients have so many of the users each.
    pub(crate) const fn clients(self, clients: [usize; MOST_CLIENTS]) -> Self {
        Self { clients, ..self }
    }

    pub(crate) const fn of([ada, ben, cleo]: [Option<Wish>; MOST_CLIENTS]) -> Self {
        let users = [ada, ben, cleo, None];
        Self {
            voters: 3,
            change: None,
            users,
            clients: [1; MOST_CLIENTS],
            tries: [false; MOST_PLACES],
            bids: [1; MOST_PLACES],
            start: Start::Taken,
            budget: Budget::NONE,
        }
    }

    pub(crate) const fn with(self, budget: Budget) -> Self {
        Self { budget, ..self }
    }

    pub(crate) const fn from(self, start: Start) -> Self {
        Self { start, ..self }
    }

    /// Users with these voters each.
    pub(crate) const fn changing(self, change: Change, sets: [Sets; MOST_CLIENTS]) -> Self {
        let [ada, ben, cleo] = sets;
        Self { change: Some((change, [ada, ben, cleo, Sets::Joint])), ..self }
    }

    pub(crate) const fn bids(self, bids: [u8; MOST_PLACES]) -> Self {
        Self { bids, ..self }
    }
}

impl Budget {
    pub(crate) const NONE: Self = Self {
        leaves: 0,
        timeouts: 0,
        cuts: 0,
        deaths: 0,
        restarts: 0,
        amnesias: 0,
        lapses: 0,
        renewals: 0,
        passes: 0,
        reads: 0,
    };
}

impl Rules {
    pub(crate) fn kept(bounds: Bounds) -> Self {
        Self { broken: None, bounds }
    }

    pub(crate) fn broken(broken: Broken, bounds: Bounds) -> Self {
        Self { broken: Some(broken), ..Self::kept(bounds) }
    }

    pub(crate) fn breaks(&self, rule: Broken) -> bool {
        self.broken == Some(rule)
    }

    pub(crate) fn voters(&self) -> usize {
        self.bounds.voters
    }

    /// The voters that the user of this place has, which are neighbours.
    pub(crate) fn voters_of(&self, place: usize) -> Range<usize> {
        self.bounds.change.map_or(0..self.voters(), |(change, sets)| change.voters_of(sets[place]))
    }

    /// The majorities that decide for it; of its own voters.
    pub(crate) fn quorum_of(&self, place: usize) -> Quorum {
        let one = || Quorum::of(self.voters());
        self.bounds.change.map_or_else(one, |(change, sets)| change.quorum_of(sets[place]))
    }

    /// Whether these voters decide for it.
    pub(crate) fn decide(&self, place: usize, which: impl Fn(usize) -> bool) -> bool {
        let first = self.voters_of(place).start;
        self.quorum_of(place).reached(|voter| which(first + voter))
    }

    /// Whether all users can do without this voter.
    pub(crate) fn may_be_spared(&self, voter: usize) -> bool {
        self.places().all(|place| self.decide(place, |other| other != voter))
    }

    pub(crate) fn are_alike(&self, one: usize, other: usize) -> bool {
        self.bounds.change.is_none_or(|(change, _)| change.are_alike(one, other))
    }

    /// In the order of their texts, which is what tells equal tickets apart.
    pub(crate) fn places(&self) -> std::ops::Range<usize> {
        0..self.bounds.users.iter().flatten().count()
    }

    pub(crate) fn clients(&self) -> std::ops::Range<usize> {
        0..self.places().map(|place| self.client_of(place) + 1).max().unwrap_or(0)
    }

    pub(crate) fn client_of(&self, place: usize) -> usize {
        let mut first = 0;
        for (client, users) in self.bounds.clients.into_iter().enumerate() {
            first += users;
            if place < first {
                return client;
            }
        }
        unreachable!("place {place} is nobody's")
    }

    pub(crate) fn is_first_of_its_client(&self, place: usize) -> bool {
        place == 0 || self.client_of(place - 1) < self.client_of(place)
    }

    pub(crate) fn wish(&self, place: usize) -> Wish {
        self.bounds.users[place].expect("a place is somebody's")
    }

    pub(crate) fn writes(&self, place: usize) -> bool {
        self.bounds.users[place] == Some(Wish::Write)
    }

    /// Those that win before this one where they stood on a majority when it asked: not of two that
    /// read, and not where the one that asks later has the lower turn.
    pub(crate) fn rivals(&self, place: usize) -> impl Iterator<Item = usize> {
        let goes_before = move |other: &usize| match (self.wish(*other), self.wish(place)) {
            (Wish::Read(_), Wish::Read(_))
            | (Wish::Write, Wish::Read(Turn::First))
            | (Wish::Read(Turn::Last), Wish::Write) => false,
            (Wish::Write, _) | (Wish::Read(_), Wish::Write) => true,
        };
        self.places().filter(move |other| *other != place).filter(goes_before)
    }

    pub(crate) fn only_tries(&self, place: usize) -> bool {
        self.bounds.tries[place]
    }
}
