//! Whether clients agree about who the voters are, for all who count votes.
//! `acquire::voter_configuration` asks.

use std::sync::{Arc, Mutex, MutexGuard};

use super::{Outcome, lock, telling::Telling};
use crate::{
    clock::Moment,
    proto::{Change, Comparison, ConfigurationEntry},
    signal::Signal,
};

#[derive(Debug)]
pub(crate) struct Configuration {
    comparison: Mutex<Comparison>,
    telling: Arc<Telling>,
    /// That of [`Standings::returned`](super::Standings::returned).
    returned: Arc<Signal<()>>,
}

impl Configuration {
    pub(super) fn new(
        comparison: Comparison,
        telling: &Arc<Telling>,
        returned: &Arc<Signal<()>>,
    ) -> Self {
        let (telling, returned) = (Arc::clone(telling), Arc::clone(returned));
        Self { comparison: Mutex::new(comparison), telling, returned }
    }

    pub(crate) fn comparison(&self) -> MutexGuard<'_, Comparison> {
        lock(&self.comparison)
    }

    /// Why a voter does not count, if it is because of what clients believe of the voters.
    pub(crate) fn apart(&self, voter: usize) -> Option<Arc<str>> {
        self.comparison().apart(voter)
    }

    /// What clients of any voter believe of the voters that clashes with what this one does.
    pub(crate) fn mismatch(&self) -> Option<Arc<str>> {
        self.comparison().mismatch()
    }

    /// A voter was asked what its clients believe, and this came of it.
    pub(crate) fn note_answer(
        &self,
        voter: usize,
        entries: Outcome<Vec<ConfigurationEntry>>,
        now: Moment,
    ) {
        let label = self.telling.label(voter);
        let change = self.comparison().note_answer(voter, label, entries, now);
        if let Some(Change::Clash { why: Some(_), .. }) = change {
            // No hold outlives this.
            self.returned.change(|()| ());
        }
        if let Some(change) = change {
            self.telling.tell(&change);
        }
    }

    /// Whether no answer would have to wait.
    #[cfg(test)]
    pub(super) fn is_free(&self) -> bool {
        self.comparison.try_lock().is_ok()
    }

    /// The client is closed.
    pub(super) fn retire(&self) {
        let changes = self.comparison().retire();
        for change in &changes {
            self.telling.tell(change);
        }
    }
}
