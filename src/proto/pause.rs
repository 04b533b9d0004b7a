//! A client's clock that stood still: then all voters' clocks seem to have stepped ahead alike.

use std::time::Duration;

use super::nanos::{Nanos, length};
use crate::proto::Moment;

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
    pub(super) fn meet(self, other: Self) -> Option<Self> {
        let met = Self {
            least: self.least.max(other.least),
            most: self.most.min(other.most),
            after: self.after.max(other.after),
            until: self.until.min(other.until),
        };
        (met.least <= met.most && met.after <= met.until).then_some(met)
    }

    pub(super) fn meets(self, other: Self) -> bool {
        self.meet(other).is_some()
    }

    /// No less than the client stood still.
    pub(super) fn length(self) -> Duration {
        length(self.most)
    }
}
