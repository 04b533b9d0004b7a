//! Whether clients agree about who the voters are. `acquire::configuration` asks the voters.

use std::sync::{Arc, Mutex, MutexGuard};

use super::{Outcome, lock, reporter::Reporter};
use crate::{
    clock::Moment,
    proto::{Change, Comparison, ConfigurationEntry},
    signal::Signal,
};

#[derive(Debug)]
pub(crate) struct Configuration {
    comparison: Mutex<Comparison>,
    reporter: Arc<Reporter>,
    /// That of [`Standings::renewal_signal`](super::Standings::renewal_signal).
    renewal_signal: Arc<Signal<()>>,
}

impl Configuration {
    pub(super) fn new(
        comparison: Comparison,
        reporter: &Arc<Reporter>,
        renewal_signal: &Arc<Signal<()>>,
    ) -> Self {
        let (reporter, renewal_signal) = (Arc::clone(reporter), Arc::clone(renewal_signal));
        Self { comparison: Mutex::new(comparison), reporter, renewal_signal }
    }

    pub(crate) fn comparison(&self) -> MutexGuard<'_, Comparison> {
        lock(&self.comparison)
    }

    /// Why a voter's grants do not count, if that is because of the voter configuration.
    pub(crate) fn apart(&self, voter: usize) -> Option<Arc<str>> {
        self.comparison().apart(voter)
    }

    /// The configuration of clients of any voter that clashes with this client's.
    pub(crate) fn mismatch(&self) -> Option<Arc<str>> {
        self.comparison().mismatch()
    }

    /// A voter was asked for the configurations of its clients, with this result.
    pub(crate) fn note_answer(
        &self,
        voter: usize,
        entries: Outcome<Vec<ConfigurationEntry>>,
        now: Moment,
    ) {
        let label = self.reporter.label(voter);
        let change = self.comparison().note_answer(voter, label, entries, now);
        if let Some(Change::Clash { why: Some(_), .. }) = change {
            // Each hold ends with its next renewal, which is now: clients of the other
            // configuration may have a majority that shares no voter with this one (law 1,
            // design 6).
            self.renewal_signal.change(|()| ());
        }
        if let Some(change) = change {
            self.reporter.report(&change);
        }
    }

    /// Whether the mutex is free, so that no answer waits for it.
    #[cfg(test)]
    pub(super) fn is_free(&self) -> bool {
        self.comparison.try_lock().is_ok()
    }

    /// The client is closed.
    pub(super) fn retire(&self) {
        // A statement of its own: in the head of the loop, the mutex would stay locked while the
        // recorder of metrics is called.
        let changes = self.comparison().retire();
        for change in &changes {
            self.reporter.report(change);
        }
    }
}
