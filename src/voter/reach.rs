//! Which voters are connected: whether they are a majority, and who is told when that changes.

use std::sync::Arc;

use crate::proto::{Majorities, Quorum};

/// How many connections stand to each voter.
#[derive(Debug)]
pub(super) struct Reach {
    connections: Vec<usize>,
    quorum: Quorum,
    /// As the log was told last; nothing until there has been a majority.
    has_quorum: Option<bool>,
}

impl Reach {
    pub(super) fn new(quorum: Quorum) -> Self {
        Self { connections: vec![0; quorum.voters()], quorum, has_quorum: None }
    }

    /// A connection to a voter stands.
    pub(super) fn met(&mut self, voter: usize, labels: &[Arc<str>]) {
        self.connections[voter] += 1;
        if !self.is_majority() {
            return;
        }
        if self.has_quorum.replace(true) == Some(false) {
            let (answering, needed, voters) = self.numbers();
            let missing = self.missing(labels);
            tracing::warn!(answering, %needed, voters, %missing, "the quorum is back");
        }
    }

    /// A connection to a voter has ended. `lost`: not by this side.
    pub(super) fn parted(&mut self, voter: usize, lost: bool, labels: &[Arc<str>]) {
        self.connections[voter] = self.connections[voter].saturating_sub(1);
        if !lost || self.has_quorum != Some(true) || self.is_majority() {
            return;
        }
        self.has_quorum = Some(false);
        let (answering, needed, voters) = self.numbers();
        let missing = self.missing(labels);
        tracing::warn!(
            answering,
            %needed,
            voters,
            %missing,
            "no quorum: no lock is given or renewed"
        );
    }

    fn numbers(&self) -> (usize, Majorities, usize) {
        let answering = self.connections.iter().filter(|count| **count > 0).count();
        (answering, self.quorum.needed(), self.quorum.voters())
    }

    fn is_majority(&self) -> bool {
        self.quorum.reached(|voter| self.connections[voter] > 0)
    }

    /// The voters without a connection, one after the other.
    fn missing(&self, labels: &[Arc<str>]) -> String {
        let missing = labels.iter().zip(&self.connections).filter(|(_, count)| **count == 0);
        missing.map(|(label, _)| &**label).collect::<Vec<_>>().join(", ")
    }
}
