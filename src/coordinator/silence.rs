//! For how long too few voters have answered, and what that comes to.

use std::time::Duration;

use super::{Coordinator, Record};
use crate::{
    clock::Moment,
    engine::{Backoff, Votes},
    words::{Error, Kind},
};

#[derive(Debug)]
pub(super) struct Silence {
    since: Option<Moment>,
    pause: Backoff,
}

impl Silence {
    /// `since`: others have found it before.
    pub(super) fn new(since: Option<Moment>) -> Self {
        let pause = Backoff::new(Duration::from_millis(20), Duration::from_millis(500));
        Self { since, pause }
    }

    /// A quorum has answered.
    pub(super) fn end(&mut self) {
        self.since = None;
        self.pause.reset();
    }

    /// No quorum has answered what was asked at `started`. Since when that is so.
    pub(super) fn goes_on(&mut self, started: Moment) -> Moment {
        *self.since.get_or_insert(started)
    }

    pub(super) fn outlasts(&self, patience: Duration, now: Moment) -> bool {
        let patience = if crate::mutant!("no_patience") { Duration::ZERO } else { patience };
        self.since.is_some_and(|since| now.since(since) >= patience)
    }

    /// When to ask again; not beyond the patience.
    pub(super) fn ask_again(&mut self, patience: Duration, now: Moment, chance: u32) -> Moment {
        let again = now + self.pause.pause(chance);
        self.since.map_or(again, |since| again.min(since + patience))
    }
}

impl Coordinator {
    pub(super) fn no_quorum(&self, record: &dyn Record, since: Moment, votes: Votes) -> Error {
        let kind = Kind::NoQuorum {
            lock: record.name().into(),
            needed: self.panel.quorum.needed(),
            after: self.clock.now().since(since),
        };
        Error::new(kind, self.panel.report(votes.into_verdicts()))
    }
}
