//! How a hold ends that is not lost: its last entry leaves it, hands it on or keeps it for a time,
//! or its client is closed; and what voters say to that.

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

/// A hold that has ended while its votes are passed on to a parked one. Dropping it gives back the
/// votes that were not passed on.
#[derive(Debug)]
pub(in crate::hold) struct Detached {
    pub(in crate::hold) hold: Arc<Hold>,
    longest: Duration,
    frees_at: Moment,
    /// What is left of its limit.
    pub(in crate::hold) left: Option<Duration>,
}

impl Detached {
    /// The error if its votes were not passed on: too few voters answered, or had one.
    pub(in crate::hold) async fn error(self, votes: Votes) -> Error {
        if votes.lacks_majority() {
            return self.hold.votes_are_gone(votes).await;
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
    /// Takes one entry away, and says when. Fails if the hold is lost.
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

    /// Takes one entry away. The last one ends the hold, and hands it on or gives its votes back.
    // No `async fn`: all that is to be sent has left when this returns, also if nobody polls what
    // it returns. So a guard can be dropped anywhere
    // (`a_guard_dropped_outside_any_runtime_releases`).
    pub(in crate::hold) fn leave(&self) -> impl Future<Output = Result<(), Error>> {
        let left = self.take_entry().map(|(mut state, now)| {
            if state.count > 0 {
                return Some((self.send_count(&state, now), None));
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
                return Err(self.votes_are_gone(votes).await);
            }
            match frees_at {
                Some(frees_at) if !votes.frees_majority() => {
                    Err(self.unconfirmed(frees_at, votes.into_verdicts()))
                }
                // Entries are left: what the client counts is decisive, and renewals send it again.
                _ => Ok(()),
            }
        }
    }

    /// Ends the hold as lost: so many voters have no vote of it that it cannot have a majority.
    async fn votes_are_gone(&self, votes: Votes) -> Error {
        // A release answers only whether there was a vote. One more question tells a forced end
        // from lost data; a round trip more is no matter where the hold is lost anyway.
        let (loss, verdicts) = match self.ask_if_revoked().await {
            Some(marks) => (HoldLoss::Revoked, marks),
            None => (HoldLoss::Vanished, votes.into_verdicts()),
        };
        self.end_as_gone(loss, verdicts)
    }

    /// Takes its only entry away, and ends the hold. Its votes are left to the hold that parks it.
    pub(in crate::hold) fn detach(self: &Arc<Self>) -> Result<Detached, Error> {
        let (mut state, now) = self.take_entry()?;
        if state.count > 0 {
            drop(self.send_count(&state, now));
            let (lock, more) = (self.name(), state.count);
            let why = format!("lock `{lock}` is entered {more} times besides, and not detached");
            return Err(Error::invalid(why));
        }
        let (longest, limit) = (state.longest, state.lease.limit());
        // Before the votes are passed on: a guard must not be trusted beside whoever resumes the
        // hold (guarantee 14).
        if !crate::mutant!("detached_hold_is_trusted") {
            self.end(&mut state, End::Released);
        }
        state.succession = None;
        drop(state);
        self.count_end(now);
        let left = limit.map(|limit| limit.left(now));
        Ok(Detached { hold: Arc::clone(self), longest, frees_at: now + longest, left })
    }

    fn send_count(&self, state: &HoldState, now: Moment) -> Replies {
        let left = u32::from(!crate::mutant!("inner_release_gives_back")) * state.count;
        self.coordinator.panel().ask_all(&self.record.release(&self.id, left), now)
    }

    /// Takes one entry away as [`leave`](Self::leave) does, but leaves the votes to their leases,
    /// or to `time` if that is shorter. With the answers of voters that are told to shorten the
    /// lease.
    pub(in crate::hold) fn keep(&self, time: Option<Duration>) -> Result<Option<Replies>, Error> {
        let (mut state, now) = self.take_entry()?;
        if state.count > 0 {
            drop(self.send_count(&state, now));
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

    /// Ends the hold because its client is closed. `None`: nothing is to be given back.
    pub(crate) fn close(&self) -> Option<Replies> {
        let mut state = self.state();
        if state.end.is_some() {
            return None;
        }
        if self.id.is_parked() {
            // Its ticket stays good for what is left of the lease: another client may resume it.
            self.end(&mut state, End::Lost(HoldLoss::Closed));
            drop(state);
            self.count_end(self.now());
            return None;
        }
        Some(self.end_and_release(state, End::Lost(HoldLoss::Closed), self.now()))
    }

    /// Waits until a majority has confirmed what [`close`](Self::close) has sent.
    pub(crate) async fn closed(&self, replies: Replies, due: Moment) -> Result<(), Error> {
        let now = self.now();
        let frees_at = now + self.state().longest;
        let votes = self.confirm(replies, Some(due.since(now)), false).await;
        // Votes that were gone before keep the lock from nobody.
        if votes.lacks_majority() || votes.frees_majority() {
            return Ok(());
        }
        Err(self.unconfirmed(frees_at, votes.into_verdicts()))
    }

    /// Counts the answers to a release, for `time` at most or otherwise for the lease. `is_last`:
    /// the release gives the votes back, and can be sent again.
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
        // Only now: the next task in the local queue asks the voters, and its request has to leave
        // behind the release.
        state.succession = None;
        drop(state);
        self.count_end(now);
        replies
    }

    /// Gives the hold to the next task in the local queue, and says whether it did.
    // Only as it was granted: if nothing was asked for since then, its lease and its count are what
    // the next owner would get, and the minimum validity is left.
    fn hand_on(&self, state: &mut HoldState, now: Moment) -> bool {
        let Self { coordinator, record, id, rules, started, seen_before, .. } = self;
        let is_as_granted = state.support().is_as_granted() && rules.is_in_time(*started, now);
        // If it is not handed on, the right to do so is dropped behind the release.
        let Some((tenure, succession)) = &mut state.succession else { return false };
        let Some(next) = tenure.next(now).filter(|_| is_as_granted) else { return false };
        let handed_on = succession.hand_on(|| {
            let claim = Claim::of_held(coordinator, record, id, *rules, *seen_before);
            let support = Arc::clone(&state.support);
            Won::handed_on(claim, (*started, *rules), self.stored, support, next)
        });
        if handed_on {
            // It keeps the local queue, which is to go with its last task.
            state.succession = None;
            self.end(state, End::Released);
        }
        handed_on
    }

    /// From now on nobody trusts the hold, and nobody renews it.
    fn end(&self, state: &mut HoldState, end: End) {
        state.end = Some(end);
        state.lease.end();
        if let Some(place) = state.place.take() {
            self.holds.agenda.remove(place);
        }
        self.ended.change(|ended| *ended = true);
        if self.id.is_parked() {
            // Other holds are removed by their last guard. A parked one has none.
            self.holds.remove(self);
        }
    }

    /// Counts the end. Call it when no mutex is held, as it calls recorders of metrics.
    fn count_end(&self, now: Moment) {
        let series = self.series();
        series.held.change(-1.0);
        series.hold_seconds.record(now.since(self.acquired).as_secs_f64());
    }
}
