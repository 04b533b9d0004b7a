//! The numbered slots of a semaphore: a hold has the same slots on a majority of the voters.

use std::sync::Arc;

use super::{HoldId, Loss, Quorum, Verdict, Votes, votes::lot};

/// The slots of a hold, in the order in which it has them.
// Numbered, and not counted. Of two permits, voters 1 and 2 give one to Ada, 2 and 3 to Ben, 1 and
// 3 to Cleo: no voter gave more than two, yet three hold a permit (design 9).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slots(Arc<[u16]>);

impl Slots {
    /// The most permits of a semaphore.
    pub const MOST: u16 = 10_000;
    // A server answers nobody else while a script runs.
    /// The most permits of a hold, and of all requests of one call together.
    pub const AT_ONCE: u16 = 256;

    pub fn new(slots: impl IntoIterator<Item = u16>) -> Self {
        Self(slots.into_iter().collect())
    }

    pub fn list(&self) -> &[u16] {
        &self.0
    }

    /// Parses ranges with both ends, as scripts write them: `7-9,0-0`.
    pub fn parse(text: &str) -> Option<Self> {
        // Bounded: a server that answers rubbish must not make its client list millions.
        let mut slots = Vec::new();
        for range in text.split(',') {
            let (first, last) = range.split_once('-')?;
            let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
            let most = usize::from(Self::AT_ONCE);
            if first > last || last >= Self::MOST || slots.len() + usize::from(last - first) >= most
            {
                return None;
            }
            slots.extend(first..=last);
        }
        Some(Self(slots.into()))
    }

    /// The ranges, as scripts read them.
    pub fn text(&self) -> String {
        let ranges = self.0.chunk_by(|one, next| one.checked_add(1) == Some(*next));
        let ranges = ranges.map(|range| format!("{}-{}", range[0], range[range.len() - 1]));
        ranges.collect::<Vec<_>>().join(",")
    }
}

/// The order in which a hold looks for free slots: from a start of its own, round to it again.
// Holds begin at different slots. If all began at 0, holds that ask at the same time would all want
// the same slot, and most would have to ask again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotOrder {
    pub start: u16,
    pub permits: u16,
}

impl SlotOrder {
    pub fn of(hold: &HoldId, permits: u16) -> Self {
        let start = u16::try_from(lot(hold) % u64::from(permits)).expect("below the permits");
        Self { start, permits }
    }

    /// How far a slot is from the start, in this order.
    fn way(self, slot: u16) -> u16 {
        (slot + self.permits - self.start) % self.permits
    }

    fn ways(self, slots: &Slots) -> Vec<u16> {
        slots.list().iter().map(|slot| self.way(*slot)).collect()
    }

    fn at(self, way: u16) -> u16 {
        (self.start + way) % self.permits
    }
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlotNext {
    /// A majority has given these slots. With the votes for them.
    Fixed(Slots, Votes),
    /// Ask these voters for slots, none before its floor.
    Ask { floors: Slots, voters: Vec<usize> },
    /// Nothing, unless a voter answers.
    Wait,
    /// No majority gives the same slots.
    Apart,
}

/// The slots that voters gave one hold.
// Each voter gives the first free slots in the order of the hold, so voters with the same slots
// taken give the same. If they differ, no slot before the furthest of the nearest majority is free
// on all of that majority, so all are asked again from there. Voters only go on, never back, until
// a majority agrees.
#[derive(Clone, Debug)]
pub struct SlotVotes {
    quorum: Quorum,
    slot_order: SlotOrder,
    said: Vec<SlotSaid>,
    rounds_left: u8,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum SlotSaid {
    Nothing,
    Asked,
    /// It gave no usable answer.
    Failed,
    Gave(Slots),
}

impl SlotVotes {
    // Each round is a round trip, and all share one voter deadline.
    const ROUNDS: u8 = 8;

    pub fn new(quorum: Quorum, slot_order: SlotOrder) -> Self {
        let said = vec![SlotSaid::Nothing; quorum.voters()];
        Self { quorum, slot_order, said, rounds_left: Self::ROUNDS }
    }

    /// A voter gave these slots, and its vote counts.
    pub fn note_slots(&mut self, voter: usize, slots: Slots) {
        self.said[voter] = SlotSaid::Gave(slots);
    }

    /// Why the voters have not agreed, when their time is over.
    pub fn loss(&self) -> Loss {
        // If a majority has answered, others took slots meanwhile. Otherwise nobody knows (law 9).
        let is_heard =
            |voter: usize| !matches!(self.said[voter], SlotSaid::Asked | SlotSaid::Failed);
        if self.quorum.reached(is_heard) { Loss::Split } else { Loss::NoQuorum }
    }

    /// The first of these slots that is beyond the permits.
    pub fn stranger(&self, slots: &Slots) -> Option<u16> {
        slots.list().iter().copied().find(|slot| *slot >= self.slot_order.permits)
    }

    /// A voter gave no slots. `is_known`: it said why.
    pub fn note_none(&mut self, voter: usize, is_known: bool) {
        self.said[voter] = if is_known { SlotSaid::Nothing } else { SlotSaid::Failed };
    }

    pub fn advance(&mut self) -> SlotNext {
        if let Some((slots, votes)) = self.fixed() {
            return SlotNext::Fixed(slots, votes);
        }
        let Some(floors) = self.floors().filter(|_| self.rounds_left > 0) else {
            let waits = self.rounds_left > 0 && self.said.contains(&SlotSaid::Asked);
            return if waits { SlotNext::Wait } else { SlotNext::Apart };
        };
        self.rounds_left -= 1;
        let ways = self.slot_order.ways(&floors);
        let voters: Vec<usize> =
            (0..self.said.len()).filter(|voter| !self.is_at(*voter, &ways)).collect();
        for voter in &voters {
            self.said[*voter] = SlotSaid::Asked;
        }
        SlotNext::Ask { floors, voters }
    }

    /// The voters that gave other slots than these.
    pub fn elsewhere(&self, slots: &Slots) -> Vec<usize> {
        // A voter that has been asked again is not among them: its answer is heard late.
        let elsewhere = |voter: &usize| self.gave(*voter).is_some_and(|gave| gave != slots);
        (0..self.said.len()).filter(elsewhere).collect()
    }

    fn gave(&self, voter: usize) -> Option<&Slots> {
        if let SlotSaid::Gave(slots) = &self.said[voter] { Some(slots) } else { None }
    }

    fn fixed(&self) -> Option<(Slots, Votes)> {
        (0..self.said.len()).filter_map(|voter| self.gave(voter)).find_map(|slots| {
            let votes = Votes::granted_by(self.quorum, |voter| self.gave(voter) == Some(slots));
            // The same slots from a majority, and not just any slots: see `Slots`.
            let counts = votes.is_won() || crate::mutant!("any_slot_is_a_vote");
            counts.then(|| (slots.clone(), votes))
        })
    }

    /// For each slot the furthest that the nearest majority gave. `None` without a majority.
    fn floors(&self) -> Option<Slots> {
        let ways = |voter| Some((self.slot_order.ways(self.gave(voter)?), voter));
        let mut gave: Vec<(Vec<u16>, usize)> = (0..self.said.len()).filter_map(ways).collect();
        gave.sort_unstable_by(|(one, _), (other, _)| one.iter().rev().cmp(other.iter().rev()));
        let (mut votes, mut furthest) = (Votes::new(self.quorum), Vec::new());
        for (ways, voter) in gave {
            votes.record(voter, Verdict::Granted);
            furthest.resize(ways.len(), 0);
            for (furthest, way) in furthest.iter_mut().zip(ways) {
                *furthest = way.max(*furthest);
            }
            if votes.is_won() {
                return Some(Slots::new(furthest.into_iter().map(|way| self.slot_order.at(way))));
            }
        }
        None
    }

    /// Whether no slot that this voter gave is before its floor.
    fn is_at(&self, voter: usize, floors: &[u16]) -> bool {
        self.gave(voter).is_some_and(|slots| {
            self.slot_order.ways(slots).iter().zip(floors).all(|(way, floor)| way >= floor)
        })
    }
}

#[cfg(test)]
#[path = "slots_tests.rs"]
mod tests;
