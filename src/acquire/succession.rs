//! Handing a hold on to the next task in the line of its client. No request leaves: the hold stays,
//! and the next task gets a guard of it with a higher token.
//!
//! While a task has a hold that it may hand on, the first in line waits for it instead of asking
//! the voters. It takes its place in their queue when the tenure is over, behind other clients.

use std::sync::Arc;

use super::{
    Coordinator,
    claim::Won,
    line::{Line, LineHold, Turn},
};
use crate::{
    clock::{Clock, Moment},
    proto::{Limit, Tenure},
};

/// The right of a hold's owner to hand it on. Dropped without that, the next in line asks the
/// voters.
#[derive(Debug)]
pub(crate) struct Succession {
    line: Arc<Line>,
    /// When the tenure ends.
    until: Moment,
    /// The next owner has this right, or is about to.
    is_passed_on: bool,
}

impl Succession {
    fn of(line: &Arc<Line>, until: Moment) -> Self {
        Self { line: Arc::clone(line), until, is_passed_on: false }
    }

    /// Offers the hold to the first in line. `false`: nobody stands there, or it asks the voters.
    pub(crate) fn hand_on(&mut self, make: impl FnOnce() -> Won) -> bool {
        let Self { line, until, is_passed_on } = self;
        let is_mine = LineHold::is_held_until(*until);
        line.hold.change(|hold| {
            // Where nobody stands, the release is to be confirmed.
            if !line.is_empty() && is_mine(hold) {
                *hold = LineHold::Offered(Box::new(make()));
                *is_passed_on = true;
            }
        });
        self.is_passed_on
    }
}

impl Drop for Succession {
    fn drop(&mut self) {
        let is_mine = LineHold::is_held_until(self.until);
        if !self.is_passed_on && self.line.hold.read(&is_mine) {
            self.line.hold.change(|hold| {
                if is_mine(hold) {
                    *hold = LineHold::Closed;
                }
            });
        }
    }
}

/// What the first in line gets from a task before it.
#[derive(Debug)]
pub(crate) enum Inherited {
    /// The hold, with the right to hand it on.
    Hold(Box<Won>, Succession),
    /// Its limit came while another task had the hold.
    TimeIsUp,
    /// It is to ask the voters.
    Nothing,
}

impl Turn<'_> {
    /// The voters have given the lock to the task with this turn. Where others wait behind it they
    /// may get it from there.
    pub(crate) fn begin_tenure(
        &self,
        coordinator: &Coordinator,
        won: &mut Won,
    ) -> Option<Succession> {
        let line = self.line();
        if !line.has_others() {
            return None;
        }
        let (clock, tenure) = (coordinator.clock.clone(), Tenure::begin(coordinator.clock.now()));
        won.tenure = Some(tenure);
        let until = tenure.ends();
        line.hold.change(|hold| *hold = LineHold::Held { until });
        // Nobody may poll the task that is next: its client would keep the lock. And nothing is to
        // be offered that nobody looks after any more.
        let watched = Arc::downgrade(line);
        coordinator.spawn(async move {
            clock.sleep_until(until).await;
            if let Some(line) = watched.upgrade()
                && line.hold.read(|hold| hold.is_of_tenure(until))
            {
                line.close_tenure();
            }
        });
        Some(Succession::of(line, until))
    }

    /// A task with this turn can take no hold that is handed on.
    pub(crate) fn refuse_hold(&self) {
        if !self.line().hold.read(|hold| matches!(hold, LineHold::Closed)) {
            self.line().close_tenure();
        }
    }

    /// The hold that a task of this line hands on, if it does so in time.
    pub(crate) async fn inherit(&self, clock: &Clock, limit: Limit) -> Inherited {
        let line = self.line();
        loop {
            let seen = line.hold.version();
            if let Some((won, until)) = line.take_offered() {
                return Inherited::Hold(won, Succession::of(line, until));
            }
            let ends = line.hold.read(|hold| match hold {
                LineHold::Held { until } => Some(*until),
                LineHold::Closed | LineHold::Offered(_) => None,
            });
            let (Some(ends), true) = (ends, limit.waits()) else { return Inherited::Nothing };
            let until = limit.moment().map_or(ends, |limit| limit.min(ends));
            if clock.in_time(until, line.hold.changed_since(seen)).await.is_some() {
                continue;
            }
            if until < ends {
                // The hold is left to those behind.
                return Inherited::TimeIsUp;
            }
            line.close_tenure();
            return Inherited::Nothing;
        }
    }
}
