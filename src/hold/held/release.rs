//! How a hold ends that is not lost: left by its last entry, handed on, kept for a time, or closed
//! with its client; and what voters say to that.

use std::{
    sync::{Arc, MutexGuard},
    time::Duration,
};

use super::{End, Hold, HoldLoss, HoldState};
use crate::{
    acquire::{Claim, Won},
    clock::Moment,
    proto::{Duty, Error, Votes},
    voter::{Call, Replies},
};

/// For how long a hold was held that has ended.
#[must_use = "recorders are to be told of it, when no mutex is held"]
struct EndedHold(Duration);

impl Hold {
    /// Takes one entry away, and says when. A hold that is lost says why.
    fn take_entry(&self) -> Result<(MutexGuard<'_, HoldState>, Moment), Error> {
        let mut state = self.state();
        let now = self.now();
        state.count -= 1;
        if state.count == 0 {
            self.holds.remove(self);
        }
        if state.lease.duty(now) != Duty::Lost {
            return Ok((state, now));
        }
        drop(state);
        Err(self.lost())
    }

    /// Takes one entry away; the last one ends the hold, and hands it on or gives its votes back.
    /// All that is to be sent has left when this returns; what comes of it can be waited for.
    pub(in crate::hold) fn leave(&self) -> impl Future<Output = Result<(), Error>> {
        let left = self.take_entry().map(|(mut state, now)| {
            if state.count > 0 {
                return Some((self.tell_count(&state, now), None));
            }
            if let Some(ended) = self.hand_on(&mut state, now) {
                drop(state);
                self.count_end(ended);
                return None;
            }
            let frees_at = now + state.longest;
            Some((self.end_and_release(state, End::Released, now), Some(frees_at)))
        });
        async move {
            let Some((replies, frees_at)) = left? else { return Ok(()) };
            let votes = self.confirm(replies, frees_at.is_some()).await;
            if votes.lacks_majority() {
                let (loss, verdicts) = match self.marks_of_force().await {
                    Some(marks) => (HoldLoss::Revoked, marks),
                    None => (HoldLoss::Vanished, votes.into_verdicts()),
                };
                return Err(self.found_lost(loss, verdicts));
            }
            match frees_at {
                Some(frees_at) if !votes.frees_majority() => {
                    Err(self.unconfirmed(frees_at, votes.into_verdicts()))
                }
                // For the entries that are left the local count counts; renewals tell it again.
                _ => Ok(()),
            }
        }
    }

    fn tell_count(&self, state: &HoldState, now: Moment) -> Replies {
        let left = u32::from(!crate::mutant!("inner_release_gives_back")) * state.count;
        self.coordinator.panel().ask_all(&self.record.release(&self.id, left), now)
    }

    /// Takes one entry away as [`leave`](Self::leave) does, but gives no vote back: those of the
    /// last entry end with their leases, or after this time. Answers come where voters have to be
    /// told.
    pub(in crate::hold) fn keep(&self, time: Option<Duration>) -> Result<Option<Replies>, Error> {
        let (mut state, now) = self.take_entry()?;
        if state.count > 0 {
            drop(self.tell_count(&state, now));
            return Ok(None);
        }
        let ended = self.end(&mut state, End::Released, now);
        state.succession = None;
        let longest = state.longest;
        let time = time.filter(|time| *time < longest);
        let shorter = time.and_then(|time| self.record.shorten(&self.id, time));
        let insist = |call| self.coordinator.panel().insist_all(&call, now + longest, now);
        let replies = shorter.map(insist);
        drop(state);
        self.count_end(ended);
        Ok(replies)
    }

    /// Ends the hold because its client does; `None` where it had ended before.
    pub(crate) fn close(&self) -> Option<Replies> {
        let state = self.state();
        if state.end.is_some() {
            return None;
        }
        Some(self.end_and_release(state, End::Closed, self.now()))
    }

    /// Waits until a majority has confirmed what [`close`](Self::close) has sent. Votes that were
    /// gone before are not in anybody's way.
    pub(crate) async fn closed(&self, replies: Replies, due: Moment) -> Result<(), Error> {
        let now = self.now();
        let frees_at = now + self.state().longest;
        let time = due.since(now);
        let votes = self.coordinator.confirm(replies, time, None::<fn() -> Call>).await;
        if votes.lacks_majority() || votes.frees_majority() {
            return Ok(());
        }
        Err(self.unconfirmed(frees_at, votes.into_verdicts()))
    }

    /// Counts the answers to a release. `is_last`: it gives the votes back, which may be asked for
    /// again.
    pub(in crate::hold) async fn confirm(&self, replies: Replies, is_last: bool) -> Votes {
        let lease = self.state().longest;
        let again = || self.record.release(&self.id, 0);
        self.coordinator.confirm(replies, lease, is_last.then_some(again)).await
    }

    pub(super) fn end_and_release(
        &self,
        mut state: MutexGuard<'_, HoldState>,
        end: End,
        now: Moment,
    ) -> Replies {
        let ended = self.end(&mut state, end, now);
        let replies = self.coordinator.give_back(&self.record, &self.id, state.longest, now);
        // Whoever is next in line asks behind the release.
        state.succession = None;
        drop(state);
        self.count_end(ended);
        replies
    }

    /// Gives the hold to the next task in line, as it was granted: nothing was asked for since
    /// then, so its lease and its count are what they were, and enough of the lease is left for a
    /// grant. `None`: it did not.
    fn hand_on(&self, state: &mut HoldState, now: Moment) -> Option<EndedHold> {
        let Self { coordinator, record, id, rules, started, seen, .. } = self;
        let is_as_granted = state.support().is_as_granted() && rules.is_in_time(*started, now);
        // Where it stays, what it would have gone by is dropped behind the release.
        let (tenure, succession) = state.succession.as_mut()?;
        let next = tenure.next(now).filter(|_| is_as_granted)?;
        let handed_on = succession.hand_on(|| {
            let claim = Claim::of_held(coordinator, record, id, *rules, *seen);
            let support = Arc::clone(&state.support);
            Won::handed_on(claim, (*started, *rules), self.stored, support, next)
        });
        handed_on.then(|| {
            // The line ends when nobody stands there any more.
            state.succession = None;
            self.end(state, End::Released, now)
        })
    }

    /// From now on nobody here has it, and nobody renews it.
    fn end(&self, state: &mut HoldState, end: End, now: Moment) -> EndedHold {
        state.end = Some(end);
        state.lease.end();
        if let Some(place) = state.place.take() {
            self.holds.agenda.remove(place);
        }
        self.over.change(|over| *over = true);
        EndedHold(now.since(self.acquired))
    }

    fn count_end(&self, EndedHold(held): EndedHold) {
        let series = self.series();
        series.held.change(-1.0);
        series.hold_seconds.record(held.as_secs_f64());
    }
}
