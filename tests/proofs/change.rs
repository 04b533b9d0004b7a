//! Voters that are changed: which of them each client has.

use std::ops::Range;

use quorate::proto::Quorum;

/// Of the voters so many are only new, in both sets, and only old, in this order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) only_new: usize,
    pub(crate) both: usize,
    pub(crate) only_old: usize,
}

/// Of the models: one voter to three, three to one, one after another, and two of which one stays.
pub(crate) const CHANGES: [Change; 4] =
    [Change::of(2, 1), Change::of(0, 1), Change::of(2, 0), Change::of(1, 1)];

/// Which voters a client has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Sets {
    /// All of them, where none are changed.
    #[default]
    All,
    Old,
    Joint,
    New,
}

impl Sets {
    pub(crate) fn next(self) -> Option<Self> {
        match self {
            Self::Old => Some(Self::Joint),
            Self::Joint => Some(Self::New),
            Self::All | Self::New => None,
        }
    }
}

impl Change {
    /// Of three voters.
    pub(crate) const fn of(only_new: usize, both: usize) -> Self {
        Self { only_new, both, only_old: 3 - only_new - both }
    }

    pub(crate) fn voters(self) -> usize {
        self.only_new + self.both + self.only_old
    }

    pub(crate) fn new_ones(self) -> Range<usize> {
        0..self.only_new + self.both
    }

    pub(crate) fn old_ones(self) -> Range<usize> {
        self.only_new..self.voters()
    }

    /// The voters that a client asks, which are neighbours.
    pub(crate) fn voters_of(self, sets: Sets) -> Range<usize> {
        match sets {
            Sets::Old => self.old_ones(),
            Sets::New => self.new_ones(),
            Sets::All | Sets::Joint => 0..self.voters(),
        }
    }

    pub(crate) fn quorum_of(self, sets: Sets) -> Quorum {
        match sets {
            Sets::Joint => Quorum::joint(self.only_new, self.both, self.only_old),
            _ => Quorum::of(self.voters_of(sets).len()),
        }
    }

    /// Whether two voters are in the same sets: then one is as good as the other.
    pub(crate) fn are_alike(self, one: usize, other: usize) -> bool {
        let sets = |voter| (self.new_ones().contains(&voter), self.old_ones().contains(&voter));
        sets(one) == sets(other)
    }
}
