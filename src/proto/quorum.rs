//! Which voters decide: a majority of the configured ones, or of each of two sets of them.

use std::{fmt, ops::Range};

/// The majorities that decide, out of a client's list of voters.
///
/// Usually there is one set: all voters. A client whose voters are being replaced has two sets, the
/// new voters and the old ones. A voter in both sets is asked once and has a vote in each.
///
/// Two majorities of one set always share a voter. A majority is counted of all configured voters,
/// never of the voters that answered. So a majority of each of two sets shares a voter with every
/// majority of the old set, and with every majority of the new set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quorum {
    // The sets are ranges of one list, and not lists of their own: a voter in both sets then has
    // one number, one connection and one answer, and cannot be counted twice in a set.
    voters: usize,
    /// How many voters the new set has. It is the beginning of the list.
    new: usize,
    /// The first voter of the old set, which goes on to the end of the list. `None` for one set.
    old: Option<usize>,
}

impl Quorum {
    pub fn of(voters: usize) -> Self {
        assert!(voters > 0, "a quorum of no voters");
        Self { voters, new: voters, old: None }
    }

    /// Two sets. The list has the voters that are only new, then the voters in both sets, then the
    /// voters that are only old.
    pub fn joint(only_new: usize, both: usize, only_old: usize) -> Self {
        assert!(only_new + both > 0 && both + only_old > 0, "a quorum of no voters");
        let voters = only_new + both + only_old;
        Self { voters, new: only_new + both, old: Some(only_new) }
    }

    /// Takes the side of each voter, in the order of [`joint`](Self::joint). Voters without sides
    /// are one set.
    pub fn of_sides(sides: impl Iterator<Item = Option<Side>>) -> Self {
        let sides: Vec<_> = sides.collect();
        let count = |side| sides.iter().filter(|it| **it == side).count();
        let [new, both, old] = [Side::New, Side::Both, Side::Old].map(|side| count(Some(side)));
        // The reports of an error may be empty, or of one set only. They are taken for one set, as
        // `Error::retry_after` and `is_permanent` must not panic.
        if count(None) > 0 || new + both == 0 || both + old == 0 {
            return Self::of(sides.len().max(1));
        }
        Self::joint(new, both, old)
    }

    pub fn voters(self) -> usize {
        self.voters
    }

    pub fn is_joint(self) -> bool {
        self.old.is_some()
    }

    /// The set of a voter, if there are two sets.
    pub fn side(self, voter: usize) -> Option<Side> {
        let old = self.old?;
        Some(match (voter < self.new, voter >= old) {
            (true, true) => Side::Both,
            (true, false) => Side::New,
            (false, _) => Side::Old,
        })
    }

    /// Whether these voters are a majority of each set.
    pub fn reached(self, by: impl Fn(usize) -> bool) -> bool {
        // One set is not enough: with the majority of the new voters alone, a client of the old
        // voters could hold the lock at the same time (law 1).
        if crate::mutant!("one_set_decides") {
            return self.reached_in_one(by);
        }
        !self.in_one(|set| count(&set, &by) < needed(set.len()))
    }

    /// Whether these voters are a majority of at least one set. Then nobody else can have a
    /// majority of each set.
    pub fn reached_in_one(self, by: impl Fn(usize) -> bool) -> bool {
        self.in_one(|set| count(&set, &by) >= needed(set.len()))
    }

    /// Whether some set has no majority without these voters.
    pub fn missed(self, by: impl Fn(usize) -> bool) -> bool {
        self.in_one(|set| count(&set, &by) > spare(set.len()))
    }

    /// The lowest value that a majority of each set does not exceed. `None` while too few voters of
    /// a set have a value.
    ///
    /// Example: the values 3, 5 and 9 of three voters give 5.
    pub fn lowest<T: Ord>(self, value: impl Fn(usize) -> Option<T>) -> Option<T> {
        let mut lowest = None;
        for of_set in self.lowest_of_each(value) {
            // The higher of the two sets applies: the value must hold for a majority of each. The
            // lower ticket of one set would go before waiters of the other set (law 4).
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
            let at = needed(set.len()) - 1;
            let mut values: Vec<T> = set.filter_map(&value).collect();
            (at < values.len()).then(|| {
                values.sort_unstable();
                values.swap_remove(at)
            })
        })
    }

    /// With fewer answers than this, no majority of each set is reached, and none is ruled out.
    pub fn least(self) -> usize {
        self.sets().map(|set| spare(set.len()) + 1).min().unwrap_or(1)
    }

    /// Any choice of so many voters is a majority of each set.
    pub fn enough(self) -> usize {
        self.voters - (self.least() - 1)
    }

    /// The smallest number of voters that can be a majority of each set.
    pub fn fewest(self) -> usize {
        let Majorities { new: (new, _), old: Some((old, _)) } = self.needed() else {
            return needed(self.voters);
        };
        // A voter in both sets serves both majorities, but no more of them than either needs.
        let both = self.new.saturating_sub(self.old.unwrap_or_default());
        new + old - both.min(new).min(old)
    }

    /// The voters of each set, with its side if there are two.
    pub fn each(self) -> impl Iterator<Item = (Option<Side>, Range<usize>)> {
        let sides = if self.old.is_some() { [Some(Side::New), Some(Side::Old)] } else { [None; 2] };
        sides.into_iter().zip(self.sets())
    }

    /// The sizes of the majorities, for messages.
    pub fn needed(self) -> Majorities {
        let mut sets = self.sets().map(|set| (needed(set.len()), set.len()));
        Majorities { new: sets.next().expect("there is one set"), old: sets.next() }
    }

    fn in_one(self, is_so: impl Fn(Range<usize>) -> bool) -> bool {
        // Not `self.sets().any(..)`: each answer to each request asks this several times.
        let old = self.old.map(|old| old..self.voters);
        is_so(0..self.new) || old.is_some_and(is_so)
    }

    fn sets(self) -> impl Iterator<Item = Range<usize>> {
        let old = self.old.map(|old| old..self.voters);
        std::iter::once(0..self.new).chain(old)
    }
}

fn count(set: &Range<usize>, which: &impl Fn(usize) -> bool) -> usize {
    set.clone().filter(|voter| which(*voter)).count()
}

/// The majority of a set of so many voters.
fn needed(voters: usize) -> usize {
    // Also of an even number more than half: of four voters, two and two share none, so two clients
    // would both hold the lock (law 1).
    if crate::mutant!("half_is_a_majority") {
        return voters.div_ceil(2);
    }
    voters / 2 + 1
}

/// How many voters of such a set can refuse or stay silent while a majority is still possible.
fn spare(voters: usize) -> usize {
    voters - needed(voters)
}

/// The set of a voter while the voters are being [replaced](crate::Builder::replacing).
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
    /// Whether the voter is one of the new voters.
    pub fn is_new(self) -> bool {
        self != Self::Old
    }

    /// Whether the voter is one of the old voters.
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

/// How many voters are needed of how many, for the new voters and for the old ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Majorities {
    pub new: (usize, usize),
    pub old: Option<(usize, usize)>,
}

impl Majorities {
    /// `voter` or `voters`, as it follows the number in a message.
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
