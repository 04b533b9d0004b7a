//! Handing a hold on to the next task in the line of its client. No request leaves: the hold stays,
//! and the next task gets a guard of it with a higher token.
//!
//! While a task has a hold that it may hand on, the first in line waits for it instead of asking
//! the voters. It takes its place in their queue when the tenure is over, behind other clients.

use std::sync::Arc;

use super::{
    Coordinator, Won,
    line::{Line, Turn},
};
use crate::{
    clock::{Clock, Moment},
    proto::{Limit, Tenure},
};

/// What the first in line knows of the hold that a task of its line has.
#[derive(Debug, Default)]
pub(super) enum LineHold {
    /// No hold is handed on: whoever wants the lock asks the voters.
    #[default]
    Closed,
    /// A task has it, and may hand it on until then.
    Held { until: Moment },
    /// It waits to be taken. Dropped before, it is released.
    Offered(Box<Won>),
}

/// The right of a hold's owner to hand it on. Dropped without that, the next in line asks the
/// voters.
#[derive(Debug)]
pub(crate) struct Succession {
    line: Arc<Line>,
    pub(crate) tenure: Tenure,
}

impl Succession {
    /// Offers the hold to the first in line. `false`: the tenure is over, or nobody stands there.
    pub(crate) fn hand_on(mut self, now: Moment, make: impl FnOnce(Self) -> Won) -> bool {
        let Some(next) = self.tenure.next(now) else { return false };
        self.tenure = next;
        let line = Arc::clone(&self.line);
        // What is dropped in there would wait for itself.
        let mut succession = Some(self);
        line.hold.change(|hold| {
            // Whoever leaves the line looks here afterwards.
            if line.is_empty() || !matches!(hold, LineHold::Held { .. }) {
                return;
            }
            if let Some(succession) = succession.take() {
                *hold = LineHold::Offered(Box::new(make(succession)));
            }
        });
        succession.is_none()
    }
}

impl Won {
    /// When its tenure ends.
    fn ends(&self) -> Option<Moment> {
        self.succession.as_ref().map(|succession| succession.tenure.ends())
    }
}

impl Drop for Succession {
    fn drop(&mut self) {
        let mine = self.tenure.ends();
        let is_open = |hold: &LineHold| matches!(hold, LineHold::Held { until } if *until == mine);
        if self.line.hold.read(is_open) {
            self.line.hold.change(|hold| {
                if is_open(hold) {
                    *hold = LineHold::Closed;
                }
            });
        }
    }
}

impl Line {
    /// Nobody is to take a hold any more: one that is offered is released.
    pub(super) fn close_tenure(&self) {
        let mut left = LineHold::Closed;
        self.hold.change(|hold| left = std::mem::take(hold));
        drop(left);
    }

    /// Whether a hold waits to be taken.
    pub(super) fn has_offer(&self) -> bool {
        self.hold.read(|hold| matches!(hold, LineHold::Offered(_)))
    }

    fn take_offered(&self) -> Option<Box<Won>> {
        if !self.has_offer() {
            return None;
        }
        let mut taken = LineHold::Closed;
        self.hold.change(|hold| {
            if let LineHold::Offered(won) = hold {
                let held = won.ends().map_or(LineHold::Closed, |until| LineHold::Held { until });
                taken = std::mem::replace(hold, held);
            }
        });
        match taken {
            LineHold::Offered(won) => Some(won),
            LineHold::Closed | LineHold::Held { .. } => None,
        }
    }
}

impl Turn<'_> {
    /// The voters have given the lock to the task with this turn. Where others wait behind it they
    /// may get it from there.
    pub(crate) fn begin_tenure(&self, coordinator: &Coordinator) -> Option<Succession> {
        let line = self.line();
        if !line.has_others() {
            return None;
        }
        let (clock, tenure) = (&coordinator.clock, Tenure::begin(coordinator.clock.now()));
        let until = tenure.ends();
        line.hold.change(|hold| *hold = LineHold::Held { until });
        // Nobody may poll the task that is next: its client would keep the lock.
        let (clock, watched) = (clock.clone(), Arc::downgrade(line));
        coordinator.spawn(async move {
            clock.sleep_until(until).await;
            let Some(line) = watched.upgrade() else { return };
            let is_late = |hold: &LineHold| match hold {
                LineHold::Offered(won) => won.ends() <= Some(until),
                LineHold::Closed | LineHold::Held { .. } => false,
            };
            if line.hold.read(is_late) {
                line.close_tenure();
            }
        });
        Some(Succession { line: Arc::clone(line), tenure })
    }

    /// A task with this turn can take no hold that is handed on.
    pub(crate) fn refuse_hold(&self) {
        if !self.line().hold.read(|hold| matches!(hold, LineHold::Closed)) {
            self.line().close_tenure();
        }
    }

    /// The hold that a task of this line hands on, if it does so in time. `None`: the task with this
    /// turn is to ask the voters.
    pub(crate) async fn inherit(&self, clock: &Clock, limit: Limit) -> Option<Box<Won>> {
        let hold = &self.line().hold;
        loop {
            let seen = hold.version();
            if let Some(won) = self.line().take_offered() {
                return Some(won);
            }
            let until = hold.read(|hold| match hold {
                LineHold::Held { until } => Some(*until),
                LineHold::Closed | LineHold::Offered(_) => None,
            });
            let until = match (until, limit) {
                (None, _) | (_, Limit::Once(_)) => return None,
                (Some(until), Limit::Never) => until,
                (Some(until), Limit::Until(limit)) => until.min(limit),
            };
            if clock.in_time(until, hold.changed_since(seen)).await.is_none() {
                self.line().close_tenure();
                return None;
            }
        }
    }
}
