//! Handing a hold on to the next task in the local queue. No request leaves: the hold stays, and
//! the next task gets a guard of it with a higher token.
//!
//! While a task has a hold that it may hand on, the first in the local queue waits for it instead
//! of asking the voters. Once the tenure is over, it takes its place in their queue, behind other
//! clients.

use std::sync::Arc;

use super::{
    Coordinator,
    claim::Won,
    local_queue::{LocalHold, LocalQueue, Turn},
};
use crate::{
    clock::{Clock, Moment},
    proto::{Limit, Tenure},
};

/// The right of a hold's owner to hand it on. If it is dropped unused, the next in the local queue
/// asks the voters.
#[derive(Debug)]
pub(crate) struct Succession {
    queue: Arc<LocalQueue>,
    /// When the tenure ends.
    // It identifies the tenure: a right that is left over from an earlier one changes nothing.
    until: Moment,
    /// The next owner has this right, or is about to.
    is_passed_on: bool,
}

impl Succession {
    fn of(queue: &Arc<LocalQueue>, until: Moment) -> Self {
        Self { queue: Arc::clone(queue), until, is_passed_on: false }
    }

    /// Offers the hold to the first in the local queue. `false`: the queue is empty, or its first
    /// asks the voters.
    pub(crate) fn hand_on(&mut self, make: impl FnOnce() -> Won) -> bool {
        let Self { queue, until, is_passed_on } = self;
        let is_mine = LocalHold::is_held_until(*until);
        queue.hold.change(|hold| {
            // An offer to nobody would be released by its drop, and no caller would hear whether a
            // majority confirmed (`where_nobody_wants_it_any_more_the_voters_confirm_the_release`).
            if !queue.is_empty() && is_mine(hold) {
                *hold = LocalHold::Offered { won: Box::new(make()), until: *until };
                *is_passed_on = true;
            }
        });
        self.is_passed_on
    }
}

impl Drop for Succession {
    fn drop(&mut self) {
        let is_mine = LocalHold::is_held_until(self.until);
        if !self.is_passed_on && self.queue.hold.read(&is_mine) {
            self.queue.hold.change(|hold| {
                if is_mine(hold) {
                    *hold = LocalHold::Closed;
                }
            });
        }
    }
}

/// What the first in the local queue gets from a task before it.
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
    /// Begins a tenure: the voters have given the lock to the task with this turn, and those behind
    /// it may get the hold. `None`: there is nobody behind it.
    pub(crate) fn begin_tenure(
        &self,
        coordinator: &Coordinator,
        won: &mut Won,
    ) -> Option<Succession> {
        let queue = self.queue();
        // A tenure costs a timer, and most locks are uncontended.
        if !queue.has_others() {
            return None;
        }
        let (clock, tenure) = (coordinator.clock.clone(), Tenure::begin(coordinator.clock.now()));
        won.tenure = Some(tenure);
        let until = tenure.ends();
        queue.hold.change(|hold| *hold = LocalHold::Held { until });
        // Perhaps nobody polls the task that is next. Without this timer its client would keep the
        // lock from all others for as long as its renewals go on; see the test
        // `what_is_offered_to_a_task_that_nobody_polls_is_free_at_the_end_of_the_tenure`.
        let watched = Arc::downgrade(queue);
        coordinator.spawn(async move {
            clock.sleep_until(until).await;
            if let Some(queue) = watched.upgrade()
                && queue.hold.read(|hold| hold.is_of_tenure(until))
            {
                queue.close_tenure();
            }
        });
        Some(Succession::of(queue, until))
    }

    /// Ends the tenure: the task with this turn can take no hold that is handed on.
    pub(crate) fn refuse_hold(&self) {
        if !self.queue().hold.read(|hold| matches!(hold, LocalHold::Closed)) {
            self.queue().close_tenure();
        }
    }

    /// The hold that a task of this local queue hands on, if it does so in time.
    pub(crate) async fn inherit(&self, clock: &Clock, limit: Limit) -> Inherited {
        let queue = self.queue();
        loop {
            let version = queue.hold.version();
            if let Some((won, until)) = queue.take_offered() {
                return Inherited::Hold(won, Succession::of(queue, until));
            }
            let ends = queue.hold.read(|hold| match hold {
                LocalHold::Held { until } => Some(*until),
                LocalHold::Closed | LocalHold::Offered { .. } => None,
            });
            let (Some(ends), true) = (ends, limit.waits()) else { return Inherited::Nothing };
            let until = limit.moment().map_or(ends, |limit| limit.min(ends));
            if clock.in_time(until, queue.hold.changed_since(version)).await.is_some() {
                continue;
            }
            if until < ends {
                // The tenure goes on for those behind, who may still have time
                // (`whoever_comes_to_its_limit_leaves_the_hold_to_those_behind`).
                return Inherited::TimeIsUp;
            }
            queue.close_tenure();
            return Inherited::Nothing;
        }
    }
}
