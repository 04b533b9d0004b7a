//! How a hold ends that is not lost: left by its last entry, handed on, kept for a time, or closed
//! with its client; and what voters say to that.

use std::{
    sync::{Arc, MutexGuard},
    time::Duration,
};

use super::{End, Hold, HoldLoss, HoldState};
use crate::{
    acquire::{Claim, Won, drive},
    clock::Moment,
    proto::{Duty, Error, Release, Verdict, Votes},
    voter::Replies,
};

/// A hold that has ended here while its votes are passed on. Dropped, it gives back those that were
/// not.
#[derive(Debug)]
pub(in crate::hold) struct Detached {
    pub(in crate::hold) hold: Arc<Hold>,
    longest: Duration,
    frees_at: Moment,
    /// What is left of the time for which it may be held.
    pub(in crate::hold) left: Option<Duration>,
}

impl Detached {
    /// Its votes were not passed on: too few answered, or had one.
    pub(in crate::hold) async fn failed(self, votes: Votes) -> Error {
        if votes.lacks_majority() {
            return self.hold.found_gone(votes).await;
        }
        self.hold.unconfirmed(self.frees_at, votes.into_verdicts())
    }
}

impl Drop for Detached {
    fn drop(&mut self) {
        let Hold { coordinator, record, id, .. } = &*self.hold;
        drop(coordinator.give_back(record, id, self.longest, self.hold.now()));
    }
}

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
            if self.hand_on(&mut state, now) {
                drop(state);
                self.count_end(now);
                return None;
            }
            let frees_at = now + state.longest;
            Some((self.end_and_release(state, End::Released, now), Some(frees_at)))
        });
        async move {
            let Some((replies, frees_at)) = left? else { return Ok(()) };
            let votes = self.confirm(replies, None, frees_at.is_some()).await;
            if votes.lacks_majority() {
                return Err(self.found_gone(votes).await);
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

    /// More voters have no vote of it than a majority can do without.
    async fn found_gone(&self, votes: Votes) -> Error {
        let (loss, verdicts) = match self.marks_of_force().await {
            Some(marks) => (HoldLoss::Revoked, marks),
            None => (HoldLoss::Vanished, votes.into_verdicts()),
        };
        self.found_lost(loss, verdicts)
    }

    /// Takes its only entry away, and ends it here. Its votes are left to the hold that parks it.
    pub(in crate::hold) fn detach(self: &Arc<Self>) -> Result<Detached, Error> {
        let (mut state, now) = self.take_entry()?;
        if state.count > 0 {
            drop(self.tell_count(&state, now));
            let (lock, more) = (self.name(), state.count);
            let why = format!("lock `{lock}` is entered {more} times besides, and not detached");
            return Err(Error::invalid(why));
        }
        let (longest, limit) = (state.longest, state.lease.limit());
        if !crate::mutant!("detached_hold_is_trusted") {
            self.end(&mut state, End::Released);
        }
        state.succession = None;
        drop(state);
        self.count_end(now);
        let left = limit.map(|limit| limit.left(now));
        Ok(Detached { hold: Arc::clone(self), longest, frees_at: now + longest, left })
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
        self.end(&mut state, End::Released);
        state.succession = None;
        let longest = state.longest;
        let time = time.filter(|time| *time < longest);
        let shorter = time.and_then(|time| self.record.shorten(&self.id, time));
        let insist = |call| self.coordinator.panel().insist_all(&call, now + longest, now);
        let replies = shorter.map(insist);
        drop(state);
        self.count_end(now);
        Ok(replies)
    }

    /// Ends the hold because its client does; `None` where it had ended before.
    pub(crate) fn close(&self) -> Option<Replies> {
        let mut state = self.state();
        if state.end.is_some() {
            return None;
        }
        if self.id.is_parked() {
            // Its ticket stays good for what is left of the lease.
            self.end(&mut state, End::Closed);
            drop(state);
            self.count_end(self.now());
            return None;
        }
        Some(self.end_and_release(state, End::Closed, self.now()))
    }

    /// Waits until a majority has confirmed what [`close`](Self::close) has sent. Votes that were
    /// gone before are not in anybody's way.
    pub(crate) async fn closed(&self, replies: Replies, due: Moment) -> Result<(), Error> {
        let now = self.now();
        let frees_at = now + self.state().longest;
        let votes = self.confirm(replies, Some(due.since(now)), false).await;
        if votes.lacks_majority() || votes.frees_majority() {
            return Ok(());
        }
        Err(self.unconfirmed(frees_at, votes.into_verdicts()))
    }

    /// Counts the answers to a release, for this time at most; else for the lease. `is_last`: it
    /// gives the votes back, which may be asked for again.
    pub(in crate::hold) async fn confirm(
        &self,
        mut replies: Replies,
        time: Option<Duration>,
        is_last: bool,
    ) -> Votes {
        let (coordinator, started) = (&self.coordinator, self.now());
        let lease = time.unwrap_or_else(|| self.state().longest);
        let patience = is_last.then(|| coordinator.voter_deadline().min(lease));
        let panel = coordinator.panel();
        let mut release = Release::start(panel.quorum, lease, patience, started);
        drive(
            coordinator.clock(),
            &mut release,
            &mut replies,
            started,
            Release::next,
            |release, (voter, outcome), now| {
                let verdict = outcome.map_or_else(Verdict::Unknown, |answer| answer.released());
                release.heard(voter, verdict, now);
            },
            |replies, voters, now| {
                panel.ask_again(replies, voters, &self.record.release(&self.id, 0), now);
            },
        )
        .await;
        release.into_votes()
    }

    pub(super) fn end_and_release(
        &self,
        mut state: MutexGuard<'_, HoldState>,
        end: End,
        now: Moment,
    ) -> Replies {
        self.end(&mut state, end);
        let replies = self.coordinator.give_back(&self.record, &self.id, state.longest, now);
        // Whoever is next in line asks behind the release.
        state.succession = None;
        drop(state);
        self.count_end(now);
        replies
    }

    /// Gives the hold to the next task in line, as it was granted: nothing was asked for since
    /// then, so its lease and its count are what they were, and enough of the lease is left for a
    /// grant. Whether it did.
    fn hand_on(&self, state: &mut HoldState, now: Moment) -> bool {
        let Self { coordinator, record, id, rules, started, seen, .. } = self;
        let is_as_granted = state.support().is_as_granted() && rules.is_in_time(*started, now);
        // Where it stays, what it would have gone by is dropped behind the release.
        let Some((tenure, succession)) = &mut state.succession else { return false };
        let Some(next) = tenure.next(now).filter(|_| is_as_granted) else { return false };
        let handed_on = succession.hand_on(|| {
            let claim = Claim::of_held(coordinator, record, id, *rules, *seen);
            let support = Arc::clone(&state.support);
            Won::handed_on(claim, (*started, *rules), self.stored, support, next)
        });
        if handed_on {
            // The line ends when nobody stands there any more.
            state.succession = None;
            self.end(state, End::Released);
        }
        handed_on
    }

    /// From now on nobody here has it, and nobody renews it.
    fn end(&self, state: &mut HoldState, end: End) {
        state.end = Some(end);
        state.lease.end();
        if let Some(place) = state.place.take() {
            self.holds.agenda.remove(place);
        }
        self.over.change(|over| *over = true);
        if self.id.is_parked() {
            // It has no guard that would.
            self.holds.remove(self);
        }
    }

    /// It has ended at this moment. Recorders are told of it when no mutex is held.
    fn count_end(&self, now: Moment) {
        let series = self.series();
        series.held.change(-1.0);
        series.hold_seconds.record(now.since(self.acquired).as_secs_f64());
    }
}
