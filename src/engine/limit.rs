//! How long a caller waits for a lock, and how much of that an attempt has.

use crate::clock::Moment;

/// How long to wait for a lock that another hold has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Not at all. Leave to ask is waited for until this moment, where the client makes as many
    /// attempts as it may.
    Once(Moment),
    Until(Moment),
    Never,
}

impl Limit {
    pub(crate) fn moment(self) -> Option<Moment> {
        match self {
            Self::Until(moment) => Some(moment),
            Self::Once(_) | Self::Never => None,
        }
    }

    /// Whether a lock that another hold has is waited for.
    pub(crate) fn waits(self) -> bool {
        !matches!(self, Self::Once(_))
    }

    /// The same for one who asks once. `patience`: until when leave to ask is waited for at most.
    pub(crate) fn once(self, patience: Moment) -> Self {
        match self {
            Self::Once(moment) => Self::Once(moment),
            Self::Until(moment) => Self::Once(moment.min(patience)),
            Self::Never => Self::Once(patience),
        }
    }

    /// Whether a lost attempt is the last.
    pub(super) fn has_come(self, now: Moment) -> bool {
        match self {
            Self::Once(_) => true,
            Self::Until(moment) => now >= moment,
            Self::Never => false,
        }
    }
}

/// How long one attempt may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    limit: Option<Moment>,
}

impl Window {
    /// Ends at `limit`. Where that has passed, the attempt is the only one, and has its full time.
    pub(crate) fn start(limit: Option<Moment>, now: Moment) -> Self {
        Self { limit: limit.filter(|limit| *limit > now) }
    }

    pub(crate) fn limit(&self) -> Option<Moment> {
        self.limit
    }

    /// Whether the limit has come. What is missing then says nothing about the voters.
    pub(super) fn is_over(&self, now: Moment) -> bool {
        self.limit.is_some_and(|limit| now >= limit)
    }
}
