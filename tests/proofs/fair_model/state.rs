//! What there is: voters, places, and what is under way between them.

use std::hash::{Hash, Hasher};

use crate::fair_model::{
    kind::Kind,
    requests::{Line, Request},
    rules::{Budget, Rules, Start},
    waiter::Loss,
};

pub(crate) const VOTERS: usize = 3;
/// A model may have fewer; the others never do anything.
pub(crate) const MOST_CLIENTS: usize = 3;
pub(crate) const MOST_PLACES: usize = 4;

/// One moment. There is no time in it: what ends by a deadline may end at any moment. Voters are in
/// the order of what they contain, so that situations that differ by their names are one state.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) voters: [Voter; VOTERS],
    /// What a path calls the voters. No part of the situation.
    pub(crate) names: [u8; VOTERS],
    pub(crate) places: [Place; MOST_PLACES],
    pub(crate) dead: [bool; MOST_CLIENTS],
    pub(crate) budget: Budget,
    /// Somebody won before a place that was before it.
    pub(crate) overtaken: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Voter {
    pub(crate) vote: Option<Vote>,
    pub(crate) queue: [Option<Entry>; MOST_PLACES],
    pub(crate) lines: [Line; MOST_CLIENTS],
    /// The voter's answers to the last bid of each place, for as long as it is open. Whether one
    /// was heard is decided when the place acts on it: until then both are possible.
    pub(crate) answers: [Option<Answer>; MOST_PLACES],
    /// By place: those that stood here before it first asked, and have not been lost here since.
    pub(crate) stood: [u8; MOST_PLACES],
}

/// Who has a voter's vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Vote {
    /// None for somebody who is gone.
    pub(crate) place: Option<usize>,
    pub(crate) bid: u8,
    /// Given to a request that outlived its connection: nothing need take it back.
    pub(crate) excused: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Entry {
    pub(crate) ticket: u8,
    /// Made by a request that outlived its connection.
    pub(crate) excused: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Answer {
    pub(crate) granted: bool,
    pub(crate) ticket: u8,
    /// There is an entry with this ticket.
    pub(crate) stands: bool,
}

/// One call of `lock()`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) phase: Phase,
    /// Bids so far.
    pub(crate) bids: u8,
    /// Zero until it is fixed.
    pub(crate) ticket: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Phase {
    #[default]
    Idle,
    Bidding,
    /// Between two bids.
    Waiting,
    Holding,
    Gone,
}

impl State {
    pub(crate) fn first(rules: &Rules) -> Self {
        let taken = Vote { place: None, bid: 0, excused: true };
        let vote = (rules.bounds.start != Start::Free).then_some(taken);
        let mut first = Self {
            voters: [Voter { vote, ..Voter::default() }; VOTERS],
            names: [1, 2, 3],
            places: [Place::default(); MOST_PLACES],
            dead: [false; MOST_CLIENTS],
            budget: rules.bounds.budget,
            overtaken: false,
        };
        if let Start::Queued(place) = rules.bounds.start {
            first.queue_up(place, rules);
        }
        first
    }

    fn queue_up(&mut self, place: usize, rules: &Rules) {
        self.call(place, rules);
        for voter in [0, 1] {
            self.arrive(rules.client_of(place), voter, rules);
        }
        self.lose(place, Loss { heard: 0b011, undo_last: false }, rules);
        self.drop_void();
        self.put_in_order();
    }

    /// Everything that tells two situations apart.
    fn situation(&self) -> impl Eq + Hash {
        (self.voters, self.places, self.dead, self.budget, self.overtaken)
    }

    /// Takes away what changes nothing whenever it arrives: fewer orders to look at.
    pub(crate) fn drop_void(&mut self) {
        for voter in &mut self.voters {
            let (vote, queue) = (voter.vote, voter.queue);
            let is_absent = |Request { kind, place, bid, .. }: Request| {
                let no_vote = vote.is_none_or(|it| it.place != Some(place) || it.bid != bid);
                no_vote && (kind == Kind::Undo || queue[place].is_none())
            };
            for line in voter.lines.iter_mut().filter(|line| !line.is_quiet()) {
                line.drop_void(is_absent);
            }
        }
    }

    /// Puts the voters in order, each with its name.
    pub(crate) fn put_in_order(&mut self) {
        for (left, right) in [(0, 1), (1, 2), (0, 1)] {
            if self.voters[left] > self.voters[right] {
                self.voters.swap(left, right);
                self.names.swap(left, right);
            }
        }
    }

    /// It waits in the queue, or is about to.
    pub(crate) fn waits(&self, place: usize) -> bool {
        matches!(self.places[place].phase, Phase::Bidding | Phase::Waiting)
    }

    /// It wants what it has on the voters.
    pub(crate) fn is_live(&self, place: usize) -> bool {
        self.waits(place) || self.places[place].phase == Phase::Holding
    }

    /// Nobody bids, holds or waits for anything to arrive; what is late may be lost.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.places.iter().all(|it| !matches!(it.phase, Phase::Bidding | Phase::Holding))
            && self.voters.iter().flat_map(|it| &it.lines).all(|line| line.queue.is_empty())
    }

    /// The deadline of the entry may pass: nobody refreshes it, and nothing need take it out.
    pub(crate) fn may_end(&self, place: usize, entry: Entry, rules: &Rules) -> bool {
        let late = self.budget.lapses > 0;
        let forgotten = entry.excused || self.dead[rules.client_of(place)];
        if self.is_live(place) { late } else { forgotten }
    }

    pub(crate) fn is_excused(&self, vote: Vote, rules: &Rules) -> bool {
        vote.excused || vote.place.is_none_or(|place| self.dead[rules.client_of(place)])
    }
}

impl Place {
    pub(crate) const GONE: Self = Self { phase: Phase::Gone, bids: 0, ticket: 0 };
}

impl Answer {
    pub(crate) fn counts(self) -> bool {
        self.granted
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.situation() == other.situation()
    }
}

impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.situation().hash(hasher);
    }
}

impl Voter {
    /// It voted for this bid.
    pub(crate) fn is_held_by(&self, place: usize, bid: u8) -> bool {
        self.vote.is_some_and(|vote| vote.place == Some(place) && vote.bid == bid)
    }

    /// The place stands here with this ticket.
    pub(crate) fn has(&self, place: usize, ticket: u8) -> bool {
        self.queue[place].is_some_and(|entry| entry.ticket == ticket)
    }
}
