//! What the watchdog asks of a hold.

use std::{sync::Arc, time::Duration};

use super::{End, Hold, HoldState, loss::HoldLoss};
use crate::{
    clock::Moment,
    engine::Duty,
    hold::agenda::{AgendaPlace, Listing},
    words::{Cause, Rounded, Verdict},
};

impl Hold {
    /// Puts itself on the agenda, for when it is next to be looked after.
    pub(in crate::hold) fn put_on_agenda(self: &Arc<Self>) -> Listing {
        let mut state = self.state();
        if state.end.is_some() {
            return Listing::Done;
        }
        let now = self.coordinator.clock().now();
        let at = match state.lease.duty(now) {
            Duty::Sleep(until) if !state.in_round => until,
            Duty::Renew if !state.in_round => now,
            _ => state.lease.deadline(),
        };
        let (from, to) = (state.place, (at, self.number));
        state.place = Some(to);
        self.holds.agenda().put(Arc::clone(self), from, to, state.early())
    }

    /// Whether a round is to begin; one that has not is looked after again when that is due. Trust
    /// that has ended is told.
    pub(in crate::hold) fn is_to_be_renewed(self: &Arc<Self>) -> bool {
        let mut state = self.state();
        if state.end.is_some() {
            return false;
        }
        let now = self.coordinator.clock().now();
        let duty = state.lease.duty(now);
        let standings = &self.coordinator.panel().standings;
        if duty != Duty::Lost && !state.lease.is_fixed() && standings.out_of_step().is_some() {
            let why = |voter| standings.apart(voter).map_or(Cause::Unheard, Cause::OutOfStep);
            let voters = 0..self.coordinator.panel().voters.len();
            state.failed = voters.map(|voter| Verdict::Unknown(why(voter))).collect();
            self.lose(&mut state, HoldLoss::OutOfStep);
            return false;
        }
        let due = match duty {
            Duty::Lost => {
                self.expire(&mut state);
                return false;
            }
            Duty::Renew => true,
            Duty::Sleep(until) => until.since(now) <= state.early(),
        };
        let begins = due && !state.in_round;
        state.in_round |= due;
        if begins {
            self.warn_of_waiters(&mut state, now);
        }
        begins
    }

    /// Says once that a task of the same client waits for what may never come: mostly it wants to
    /// enter again, and has no owner.
    fn warn_of_waiters(&self, state: &mut HoldState, now: Moment) {
        let lease = state.lease.terms().lease;
        let is_long = |since: Moment| now.since(since) >= lease;
        if !state.warned
            && is_long(self.acquired)
            && self.coordinator.waits_since(self.record()).is_some_and(is_long)
        {
            state.warned = true;
            let (lock, waits) = (self.name(), Rounded(lease));
            tracing::warn!(
                lock, hold = %self.id, %waits,
                "a task waits long behind a hold of its own client"
            );
        }
    }

    /// When it ends, and its number.
    pub(in crate::hold) fn end_place(&self) -> AgendaPlace {
        (self.state().lease.deadline(), self.number)
    }

    /// A round is over. `again`: there is a reason for another one.
    pub(in crate::hold) fn end_round(self: &Arc<Self>, again: bool) {
        {
            let mut state = self.state();
            state.in_round = false;
            if again {
                state.lease.renew_now(self.coordinator.clock().now());
            }
        }
    }

    /// Makes a renewal due.
    pub(in crate::hold) fn renew_now(self: &Arc<Self>) {
        self.state().lease.renew_now(self.coordinator.clock().now());
    }

    /// Whether the last round failed; and now whether this one has.
    pub(in crate::hold) fn fails_again(&self, failing: bool) -> bool {
        std::mem::replace(&mut self.state().failing, failing)
    }

    /// The watchdog is gone. A lease that is not renewed needs none.
    pub(in crate::hold) fn abandon(&self) {
        let mut state = self.state();
        if !state.lease.is_fixed() {
            self.lose(&mut state, HoldLoss::Abandoned);
        }
    }

    /// Another hold was lost, without which this one is of no use.
    pub(in crate::hold) fn forsake(&self) {
        self.lose(&mut self.state(), HoldLoss::Forsaken);
    }

    pub(in crate::hold) fn is_forsaken(&self) -> bool {
        matches!(self.state().end, Some(End::Lost(HoldLoss::Forsaken)))
    }
}

impl HoldState {
    /// How long before it is due a renewal makes sense: where others leave, it may go along. One
    /// that follows a failure keeps its pause.
    fn early(&self) -> Duration {
        let alone = self.in_round || self.failing || self.lease.is_fixed();
        if alone { Duration::ZERO } else { self.lease.terms().lease / 128 }
    }
}
