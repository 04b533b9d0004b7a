//! Voters that are changed: which of them each client has, and its steps from the old ones to the
//! new ones.

use std::ops::Range;

use quorate::proto::Quorum;

/// Of all models that change them.
const VOTERS: usize = 3;

/// Of the voters these are only new, in both sets, and only old, in this order; and the steps that
/// clients make.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) only_new: usize,
    pub(crate) both: usize,
    pub(crate) from: Sets,
    pub(crate) to: Sets,
}

/// Which voters a client has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Sets {
    /// All of them, and there is one set.
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
    /// Through all three steps.
    pub(crate) const fn of(only_new: usize, both: usize) -> Self {
        Self { only_new, both, from: Sets::Old, to: Sets::New }
    }

    fn new_ones(self) -> Range<usize> {
        0..self.only_new + self.both
    }

    fn old_ones(self) -> Range<usize> {
        self.only_new..VOTERS
    }

    /// The voters that a client asks, which are neighbours.
    pub(crate) fn voters_of(self, sets: Sets) -> Range<usize> {
        match sets {
            Sets::Old => self.old_ones(),
            Sets::New => self.new_ones(),
            Sets::All | Sets::Joint => 0..VOTERS,
        }
    }

    pub(crate) fn quorum_of(self, sets: Sets) -> Quorum {
        let Self { only_new, both, .. } = self;
        match sets {
            Sets::Joint => Quorum::joint(only_new, both, VOTERS - only_new - both),
            _ => Quorum::of(self.voters_of(sets).len()),
        }
    }

    /// Whether two voters are in the same sets: then one is as good as the other.
    pub(crate) fn are_alike(self, one: usize, other: usize) -> bool {
        let sets = |voter| (self.new_ones().contains(&voter), self.old_ones().contains(&voter));
        sets(one) == sets(other)
    }
}
