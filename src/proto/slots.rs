//! The numbered slots of a semaphore: a hold has the same on a majority of the voters.

use std::sync::Arc;

use super::{HoldId, Loss, Quorum, Verdict, Votes, votes::lot};

// Why numbered, and not counted: decision 9 of `docs/design.md`.
/// The slots of a hold, in the order in which it has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slots(Arc<[u16]>);

impl Slots {
    /// So many permits a semaphore has at most.
    pub const MOST: u16 = 10_000;
    /// So many of them a hold has at most, and the requests of a call together.
    pub const AT_ONCE: u16 = 256;

    pub fn new(slots: impl IntoIterator<Item = u16>) -> Self {
        Self(slots.into_iter().collect())
    }

    pub fn list(&self) -> &[u16] {
        &self.0
    }

    /// Reads ranges with both ends, as scripts write them: `7-9,0-0`.
    pub fn parse(text: &str) -> Option<Self> {
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

    /// As scripts read them.
    pub fn text(&self) -> String {
        let ranges = self.0.chunk_by(|one, next| one.checked_add(1) == Some(*next));
        let ranges = ranges.map(|range| format!("{}-{}", range[0], range[range.len() - 1]));
        ranges.collect::<Vec<_>>().join(",")
    }
}

/// The slots of a semaphore in the order in which a hold looks for free ones: from one that is its
/// own on, round to it again.
///
/// Holds begin at different slots, so those that ask at the same time rarely want the same.
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

    /// How far a slot is from the start.
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
    /// A majority has given these, and the votes are who did.
    Fixed(Slots, Votes),
    /// Ask these voters for slots of which none is before its floor.
    Ask { floors: Slots, voters: Vec<usize> },
    /// Nothing, unless a voter answers.
    Wait,
    /// No majority gives the same.
    Apart,
}

/// The slots that voters gave one hold.
///
/// Each voter gives the first that are free, in the slot order of the hold, so voters where the
/// same are taken give the same. Where they differ, no slot before the furthest of the nearest
/// majority is free on all of that majority: all are asked again from there. So voters go on, and
/// never back, until a majority of them meets.
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
    const ROUNDS: u8 = 8;

    pub fn new(quorum: Quorum, slot_order: SlotOrder) -> Self {
        let said = vec![SlotSaid::Nothing; quorum.voters()];
        Self { quorum, slot_order, said, rounds_left: Self::ROUNDS }
    }

    /// A voter whose vote counts gave these.
    pub fn heard(&mut self, voter: usize, slots: Slots) {
        self.said[voter] = SlotSaid::Gave(slots);
    }

    /// Why there is nothing the same where the answers have to be there now: others took some
    /// slots meanwhile if a majority has answered.
    pub fn loss(&self) -> Loss {
        let is_heard =
            |voter: usize| !matches!(self.said[voter], SlotSaid::Asked | SlotSaid::Failed);
        if self.quorum.reached(is_heard) { Loss::Split } else { Loss::NoQuorum }
    }

    /// One of these that the semaphore does not have.
    pub fn stranger(&self, slots: &Slots) -> Option<u16> {
        slots.list().iter().copied().find(|slot| *slot >= self.slot_order.permits)
    }

    /// A voter that was asked gave none. `is_known`: it said why.
    pub fn missed(&mut self, voter: usize, is_known: bool) {
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
        // What one that was asked answers is heard late.
        let elsewhere = |voter: &usize| self.gave(*voter).is_some_and(|gave| gave != slots);
        (0..self.said.len()).filter(elsewhere).collect()
    }

    fn gave(&self, voter: usize) -> Option<&Slots> {
        if let SlotSaid::Gave(slots) = &self.said[voter] { Some(slots) } else { None }
    }

    fn fixed(&self) -> Option<(Slots, Votes)> {
        (0..self.said.len()).filter_map(|voter| self.gave(voter)).find_map(|slots| {
            let votes = Votes::granted_by(self.quorum, |voter| self.gave(voter) == Some(slots));
            let counts = votes.is_won() || crate::mutant!("any_slot_is_a_vote");
            counts.then(|| (slots.clone(), votes))
        })
    }

    /// The furthest of each of the slots that the nearest majority gave; none without a majority.
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

    /// Whether none of the slots that this voter gave is before its floor.
    fn is_at(&self, voter: usize, floors: &[u16]) -> bool {
        self.gave(voter).is_some_and(|slots| {
            self.slot_order.ways(slots).iter().zip(floors).all(|(way, floor)| way >= floor)
        })
    }
}

#[cfg(test)]
#[path = "slots_tests.rs"]
mod tests;
