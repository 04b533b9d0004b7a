//! A client's clock that stood still: then all voters' clocks seem to have stepped ahead alike.

use super::nanos::{Nanos, length, nanos};
use crate::clock::{Moment, Skip};

/// By how much a voter's clock stepped ahead of the client's, and when.
#[derive(Clone, Copy, Debug)]
pub(super) struct PauseStep {
    pub(super) least: Nanos,
    pub(super) most: Nanos,
    /// When what it was measured by before had been asked for: it had not stepped yet.
    pub(super) after: Moment,
    /// When it was seen.
    pub(super) until: Moment,
}

impl PauseStep {
    /// What both can be, if they can be one step of the client's clock.
    fn meet(self, other: Self) -> Option<Self> {
        let met = Self {
            least: self.least.max(other.least),
            most: self.most.min(other.most),
            after: self.after.max(other.after),
            until: self.until.min(other.until),
        };
        (met.least <= met.most && met.after <= met.until).then_some(met)
    }

    /// Whether the client's clock was put forward by what this one stepped ahead.
    pub(super) fn is_made_up_by(self, skip: Skip) -> bool {
        let by = nanos(skip.by);
        self.least <= by && by - nanos(skip.doubt) <= self.most
    }

    /// Puts the client's clock forward by no less than it stood still.
    fn made_up(self) -> Skip {
        let (by, doubt) = (length(self.most), length(self.most - self.least));
        Skip { by, doubt, after: self.after }
    }
}

/// By how much the client's clock is to be put forward: where as many voters as `needed` show one
/// step, it is the client's. `voters`: the steps that each of the others shows, by its shards.
pub(super) fn made_up(
    latest: PauseStep,
    voters: impl Iterator<Item = Vec<PauseStep>>,
    needed: usize,
) -> Option<Skip> {
    let (mut common, mut alike) = (latest, 1);
    for steps in voters {
        if let Some(met) = steps.into_iter().find_map(|step| common.meet(step)) {
            common = met;
            alike += 1;
        }
    }
    (alike >= needed).then(|| common.made_up())
}
