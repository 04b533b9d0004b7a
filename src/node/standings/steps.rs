//! Voters whose clients believe otherwise of the voters than this one.

use std::sync::Arc;

use super::Standings;
use crate::{
    clock::Moment,
    engine::{KeptOut, Place},
    words::{Cause, Verdict},
};

impl Standings {
    /// What a grant to a new hold that asked at that moment counts for, if not for a vote.
    pub(crate) fn withheld(&self, place: Place, sent: Moment) -> Option<Verdict> {
        let state = self.state();
        let kept_out = state.register.kept_out(place, sent).map(KeptOut::verdict);
        let out_of_step = || {
            let why = state.out_of_step[place.voter].clone()?;
            Some(Verdict::Unknown(Cause::OutOfStep(why)))
        };
        kept_out.or_else(out_of_step)
    }

    /// Whether clients of a voter believe otherwise of the voters than this one, and what.
    pub(crate) fn note_step(&self, voter: usize, why: Option<Arc<str>>) {
        let mut state = self.state();
        if self.is_retired() {
            return;
        }
        let before = std::mem::replace(&mut state.out_of_step[voter], why.clone());
        drop(state);
        let series = &self.series[voter].out_of_step;
        let voter = &self.labels[voter];
        match (before, why) {
            (None, Some(why)) => {
                series.change(1.0);
                tracing::error!(%voter, %why, "clients disagree about the voters: no new locks");
            }
            (Some(_), None) => {
                series.change(-1.0);
                tracing::info!(%voter, "clients agree about the voters again");
            }
            _ => {}
        }
    }

    /// What clients of a voter believe of the voters that clashes with what this one does.
    pub(crate) fn out_of_step(&self, voter: usize) -> Option<Arc<str>> {
        self.state().out_of_step[voter].clone()
    }
}
