//! What a waiter is told that does not get the lock.

use std::sync::Arc;

use super::{Defeat, Loss, Votes};
use crate::proto::{HoldId, Moment, Verdict};

/// Why the lock cannot be had, by the last attempt that could find out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denial {
    /// Another hold has it, or others have too many of the votes.
    Held(Refusal),
    /// Boxed: it is rare, and every waiter has room for a denial.
    NoQuorum(Box<Outage>),
}

impl Denial {
    /// `silent_since`: when the first attempt began since which too few voters have answered.
    pub fn of(defeat: Defeat, silent_since: Option<Moment>, now: Moment) -> Self {
        let Defeat { loss, votes, started } = defeat;
        if loss == Loss::NoQuorum {
            let since = silent_since.unwrap_or(started);
            return Self::NoQuorum(Box::new(Outage { since, until: now, votes }));
        }
        Self::Held(Refusal::of(&votes, now))
    }
}

/// What the voters said about the holder when they refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// The hold, or the place in the queue, that most voters named.
    pub by: Option<HoldId>,
    /// It is a place, and nobody's hold.
    pub waits: bool,
    /// When a majority is free, if nobody asks again.
    pub ends: Option<Moment>,
    /// What each voter said; nothing where none was asked.
    pub verdicts: Arc<[Verdict]>,
}

impl Refusal {
    pub fn of(votes: &Votes, now: Moment) -> Self {
        let by = votes.obstacle().cloned();
        let waits = by.as_ref().is_some_and(|by| votes.is_place(by));
        let ends = votes.free_in().map(|time| now + time);
        Self { by, waits, ends, verdicts: votes.clone().into_verdicts().into() }
    }
}

/// Too few voters answered, attempt after attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// When the first of the attempts started.
    pub since: Moment,
    /// When the last one ended.
    pub until: Moment,
    /// Those of the last one.
    pub votes: Votes,
}
