//! Which voters decide: a majority of the configured ones, or of each of two sets of them.

use std::{fmt, ops::Range};

/// The majorities that decide, out of a client's list of voters.
///
/// Mostly there is one set, and it is all voters. A client whose voters are being replaced has two:
/// the new voters and the old ones, which may have some in common. A voter in both is one voter,
/// asked once, with a vote in each set.
///
/// The law of one set: two majorities of it always share a voter. It is always counted of all that
/// were configured, never of those that answered or once granted. So what has a majority of each of
/// two sets shares a voter with whatever has a majority of either: with clients that have the old
/// set alone, and with clients that have the new set alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quorum {
    voters: usize,
    /// The new voters are those before this one.
    new: usize,
    /// The old ones are those from this one on; `None` where there is one set.
    old: Option<usize>,
}

impl Quorum {
    pub fn of(voters: usize) -> Self {
        assert!(voters > 0, "a quorum of no voters");
        Self { voters, new: voters, old: None }
    }

    /// Two sets. The list of voters has those that are only new, those in both sets, and those that
    /// are only old, in this order.
    pub fn joint(only_new: usize, both: usize, only_old: usize) -> Self {
        assert!(only_new + both > 0 && both + only_old > 0, "a quorum of no voters");
        let voters = only_new + both + only_old;
        Self { voters, new: only_new + both, old: Some(only_new) }
    }

    /// By the side of each voter, in the order of [`joint`](Self::joint); of voters without sides
    /// there is one set.
    pub fn of_sides(sides: impl Iterator<Item = Option<Side>>) -> Self {
        let [mut only_new, mut both, mut only_old, mut all] = [0; 4];
        for side in sides {
            match side {
                None => all += 1,
                Some(Side::New) => only_new += 1,
                Some(Side::Both) => both += 1,
                Some(Side::Old) => only_old += 1,
            }
        }
        match all {
            0 if only_new + both > 0 && both + only_old > 0 => {
                Self::joint(only_new, both, only_old)
            }
            all => Self::of((all + only_new + both + only_old).max(1)),
        }
    }

    pub fn voters(self) -> usize {
        self.voters
    }

    pub fn is_joint(self) -> bool {
        self.old.is_some()
    }

    /// In which set a voter is, where there are two.
    pub fn side(self, voter: usize) -> Option<Side> {
        let old = self.old?;
        Some(match (voter < self.new, voter >= old) {
            (true, true) => Side::Both,
            (true, false) => Side::New,
            (false, _) => Side::Old,
        })
    }

    /// These voters are a majority of each set.
    pub fn reached(self, by: impl Fn(usize) -> bool) -> bool {
        if crate::mutant!("one_set_decides") {
            return self.reached_in_one(by);
        }
        !self.in_one(|set| set.count(&by) < set.needed())
    }

    /// These voters are a majority of one set at least: nobody else reaches a majority of that one
    /// without them, and so of each.
    pub fn reached_in_one(self, by: impl Fn(usize) -> bool) -> bool {
        self.in_one(|set| set.count(&by) >= set.needed())
    }

    /// So many voters say no, or nothing, that one of the sets has no majority without them.
    pub fn missed(self, by: impl Fn(usize) -> bool) -> bool {
        self.in_one(|set| set.count(&by) > set.spare())
    }

    /// The lowest value that a majority of each set does not exceed: of all voters that are a
    /// majority of each, those whose highest is the lowest have this as their highest. `None` while
    /// a set has too few with a value.
    pub fn lowest<T: Ord>(self, value: impl Fn(usize) -> Option<T>) -> Option<T> {
        let mut lowest = None;
        for of_set in self.lowest_of_each(value) {
            lowest = lowest.max(Some(of_set?));
            if crate::mutant!("lowest_of_one_set") {
                break;
            }
        }
        lowest
    }

    /// For each set the lowest value that a majority of it does not exceed.
    pub fn lowest_of_each<T: Ord>(
        self,
        value: impl Fn(usize) -> Option<T>,
    ) -> impl Iterator<Item = Option<T>> {
        self.sets().map(move |set| {
            let mut values: Vec<T> = set.0.clone().filter_map(&value).collect();
            let at = set.needed() - 1;
            (at < values.len()).then(|| {
                values.sort_unstable();
                values.swap_remove(at)
            })
        })
    }

    /// With fewer answers than this neither is a majority of each set reached nor can it be missed.
    pub fn least(self) -> usize {
        self.sets().map(|set| set.spare() + 1).min().unwrap_or(1)
    }

    /// So many voters are a majority of each set, whichever they are.
    pub fn enough(self) -> usize {
        self.voters - (self.least() - 1)
    }

    /// So many voters can be a majority of each set, and no fewer can.
    pub fn fewest(self) -> usize {
        let Majorities { new: (new, _), old: Some((old, _)) } = self.needed() else {
            return OneSet(0..self.voters).needed();
        };
        let both = self.new.saturating_sub(self.old.unwrap_or_default());
        new + old - both.min(new).min(old)
    }

    /// Each set: its side, where there are two, and its voters.
    pub fn each(self) -> impl Iterator<Item = (Option<Side>, Range<usize>)> {
        let sides = if self.old.is_some() { [Some(Side::New), Some(Side::Old)] } else { [None; 2] };
        sides.into_iter().zip(self.sets().map(|set| set.0))
    }

    /// What is needed, for messages.
    pub fn needed(self) -> Majorities {
        let mut sets = self.sets().map(|set| (set.needed(), set.0.len()));
        Majorities { new: sets.next().expect("there is one set"), old: sets.next() }
    }

    /// Whether this is so in one set at least. Asked at every answer, so it is no iterator's work.
    fn in_one(self, is_so: impl Fn(OneSet) -> bool) -> bool {
        let old = self.old.map(|old| OneSet(old..self.voters));
        is_so(OneSet(0..self.new)) || old.is_some_and(is_so)
    }

    fn sets(self) -> impl Iterator<Item = OneSet> {
        let old = self.old.map(|old| OneSet(old..self.voters));
        std::iter::once(OneSet(0..self.new)).chain(old)
    }
}

/// A part of the list of voters.
struct OneSet(Range<usize>);

impl OneSet {
    fn count(&self, which: &impl Fn(usize) -> bool) -> usize {
        self.0.clone().filter(|voter| which(*voter)).count()
    }

    fn needed(&self) -> usize {
        if crate::mutant!("half_is_a_majority") {
            return self.0.len().div_ceil(2);
        }
        self.0.len() / 2 + 1
    }

    /// How many may say no, or nothing, while a majority is still possible.
    fn spare(&self) -> usize {
        self.0.len() - self.needed()
    }
}

/// In which of its two sets of voters a client has a voter, while the voters are being
/// [replaced](crate::Builder::replacing).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum Side {
    /// It is only among the new voters.
    New,
    /// It is among the new voters and among the old ones: it has a vote in each set.
    Both,
    /// It is only among the old voters, which are replaced.
    Old,
}

impl Side {
    /// Whether a voter of this side is one of the new voters.
    pub fn is_new(self) -> bool {
        self != Self::Old
    }

    /// Whether a voter of this side is one of the old voters.
    pub fn is_old(self) -> bool {
        self != Self::New
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::New => "new",
            Self::Both => "new and old",
            Self::Old => "old",
        })
    }
}

/// How many voters are needed, of how many; the same of the old voters, where there are two sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Majorities {
    pub new: (usize, usize),
    pub old: Option<(usize, usize)>,
}

impl Majorities {
    /// The noun that follows the number in a message.
    pub fn noun(&self) -> &'static str {
        if self.new.0 == 1 && self.old.is_none() { "voter" } else { "voters" }
    }
}

impl fmt::Display for Majorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { new: (needed, voters), old } = self;
        match old {
            Some((also, old)) => write!(f, "{needed} of {voters} new and {also} of {old} old"),
            None if f.alternate() => write!(f, "{needed} of {voters}"),
            None => write!(f, "{needed}"),
        }
    }
}

#[cfg(test)]
#[path = "quorum_tests.rs"]
mod tests;
