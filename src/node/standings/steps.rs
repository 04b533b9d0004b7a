//! Voters whose clients believe otherwise of the voters than this one, or have not been asked.

use std::sync::Arc;

use super::{Standings, StandingsState};
use crate::{
    clock::Moment,
    engine::{KeptOut, Place},
    signal::Signal,
    words::{Cause, Verdict},
};

/// What came of the comparison with a voter's other clients.
#[derive(Clone, Debug, Default)]
pub(super) struct VoterStep {
    /// How many connections to it there have been.
    connections: u64,
    /// On the latest of them it was told what this client believes, and nobody believes otherwise.
    is_compared: bool,
    /// It is a part of a cluster, where what clients believe is on one of its servers: with that
    /// one down, the others would have no vote.
    is_spread: bool,
    /// What clients believe that clashes with that.
    pub(super) clash: Option<Arc<str>>,
}

impl VoterStep {
    pub(super) fn of(is_spread: bool) -> Self {
        Self { is_spread, ..Self::default() }
    }

    /// There has been no connection to it yet.
    pub(super) fn is_new(&self) -> bool {
        self.connections == 0
    }

    /// There is a new connection: perhaps others have come meanwhile, or it is another server.
    pub(super) fn meet(&mut self) {
        self.connections += 1;
        self.is_compared = false;
    }
}

impl Standings {
    /// What a grant to a new hold that asked at that moment counts for, if not for a vote. A client
    /// that is out of step with those of one voter may be with those of others that it does not
    /// share a voter with: it gets no vote.
    pub(crate) fn withheld(&self, place: Place, sent: Moment) -> Option<Verdict> {
        let state = self.state();
        let kept_out = state.register.kept_out(place, sent).map(KeptOut::verdict);
        kept_out.or_else(|| Some(Verdict::Unknown(Cause::OutOfStep(state.apart(place.voter)?))))
    }

    /// From now on only voters count whose roster was compared.
    pub(crate) fn count_compared_only(&self) {
        self.state().compares = true;
    }

    /// Changes with each new connection.
    pub(crate) fn connected(&self) -> &Signal<()> {
        &self.connected
    }

    /// How many connections to a voter there have been.
    pub(crate) fn connections(&self, voter: usize) -> u64 {
        self.state().steps[voter].connections
    }

    /// What came of a comparison that began when there had been so many connections. `is_told`: the
    /// voter keeps what this client believes. `why`: what its clients believe otherwise.
    pub(crate) fn note_step(
        &self,
        voter: usize,
        connections: u64,
        is_told: bool,
        why: Option<Arc<str>>,
    ) {
        let mut state = self.state();
        if self.is_retired() {
            return;
        }
        let step = &mut state.steps[voter];
        step.is_compared = is_told && step.connections == connections;
        let before = std::mem::replace(&mut step.clash, why.clone());
        drop(state);
        let series = &self.series[voter].out_of_step;
        let voter = &self.labels[voter];
        match (before, why) {
            (None, Some(why)) => {
                series.change(1.0);
                tracing::error!(%voter, %why, "clients disagree about the voters: no locks");
                self.returned.change(|()| ());
            }
            (Some(_), None) => {
                series.change(-1.0);
                tracing::warn!(%voter, "clients agree about the voters again");
            }
            _ => {}
        }
    }

    /// Whether a voter counts: nobody believes otherwise of the voters than this client.
    pub(crate) fn is_in_step(&self, voter: usize) -> bool {
        self.state().apart(voter).is_none()
    }

    /// Why a voter does not count, if it is because of what clients believe of the voters.
    pub(crate) fn apart(&self, voter: usize) -> Option<Arc<str>> {
        self.state().apart(voter)
    }

    /// What clients of any voter believe of the voters that clashes with what this one does.
    pub(crate) fn out_of_step(&self) -> Option<Arc<str>> {
        self.state().out_of_step()
    }
}

impl StandingsState {
    fn out_of_step(&self) -> Option<Arc<str>> {
        self.steps.iter().find_map(|step| step.clash.clone())
    }

    fn apart(&self, voter: usize) -> Option<Arc<str>> {
        let step = &self.steps[voter];
        let unknown = self.compares && !step.is_compared && !step.is_spread;
        let unknown = unknown.then(|| "not yet compared with its other clients".into());
        self.out_of_step().or(unknown)
    }
}
