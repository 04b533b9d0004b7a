//! How long a caller waits for a lock, and how much of that an attempt has.

use crate::proto::Moment;

/// How long to wait for a lock that another hold has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Not at all. Leave to ask is waited for until this moment, where the client makes as many
    /// attempts as it may.
    Once(Moment),
    Until(Moment),
    Never,
}

impl Limit {
    pub fn moment(self) -> Option<Moment> {
        match self {
            Self::Until(moment) => Some(moment),
            Self::Once(_) | Self::Never => None,
        }
    }

    /// Whether a lock that another hold has is waited for.
    pub fn waits(self) -> bool {
        !matches!(self, Self::Once(_))
    }

    /// The same for one who asks once. `patience`: until when leave to ask is waited for at most.
    #[must_use]
    pub fn once(self, patience: Moment) -> Self {
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
#[derive(Clone, Copy, Debug, Default)]
pub struct Window {
    /// No further round begins at this moment or later.
    pub rounds: Option<Moment>,
    /// What is missing at this moment is not waited for.
    pub answers: Option<Moment>,
}

impl Window {
    /// `limit`: of the caller. It cuts off answers only where there is something to tell the caller
    /// without them (`is_known`): law 9, what had no time to answer was not silent. Where it has
    /// passed, the attempt is the only one, and has its full time.
    pub fn start(limit: Option<Moment>, is_known: bool, now: Moment) -> Self {
        let rounds = limit.filter(|limit| *limit > now);
        let is_known = is_known || crate::mutant!("limit_is_taken_for_silence");
        Self { rounds, answers: rounds.filter(|_| is_known) }
    }

    /// Whether the limit has cut off the answers. That says nothing about the voters.
    pub(super) fn is_over(&self, now: Moment) -> bool {
        self.answers.is_some_and(|limit| now >= limit)
    }
}
