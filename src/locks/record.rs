//! A lock of any kind, as one asks about it who has no hold of it.

use std::sync::Arc;

use super::{
    handle::LockHandle,
    request::LockAsked,
    view::{Holder, LockState, LockView, VoterView},
};
use crate::{
    proto::{Error, LockKind, Place},
    scripts::{Answer, LockSeen},
    settings::Settings,
    voter::{Call, ONLY, Outcome},
};

/// A lock as one asks about it who has no hold of it.
pub(super) struct Record {
    pub(super) kind: LockKind,
    pub(super) lock: Arc<dyn LockAsked>,
}

impl Record {
    /// What all voters say, and who leads an election.
    pub(super) async fn look(&self, handle: &LockHandle) -> Result<LockView, Error> {
        let voters = self.ask_all(handle);
        let Some(asked) = Arc::clone(&self.lock).leader_asked() else {
            return Ok(LockView::new(handle.name(), self.kind, voters.await?));
        };
        let (voters, leader) = tokio::join!(voters, handle.coordinator().ask_who_leads(&asked));
        // Where that cannot be known, what each voter says is shown all the same.
        let leader = leader.ok().flatten();
        Ok(LockView { leader, ..LockView::new(handle.name(), self.kind, voters?) })
    }

    pub(super) async fn ask_all(&self, handle: &LockHandle) -> Result<Vec<VoterView>, Error> {
        let read = |answer: Outcome<Answer>| LockSeen::read(&answer?, self.lists());
        let panel = handle.coordinator().panel();
        let answers = self.ask(handle, &self.lock.inspect(0)).await?;
        let now = handle.coordinator().clock().now();
        let quarantined = |(voter, answer): (usize, &Outcome<Answer>)| {
            let place = answer.as_ref().map_or(Place { voter, shard: ONLY }, |it| it.place);
            Some(panel.standings.kept_out(place, now)?.quarantined)
        };
        let quarantined: Vec<_> = answers.iter().enumerate().map(quarantined).collect();
        let mut seen: Vec<_> = answers.into_iter().map(read).collect();
        while let Some(from) = seen.iter().flatten().filter_map(|seen| seen.next).min() {
            let more = self.ask(handle, &self.lock.inspect(from)).await?.into_iter().map(read);
            let add = |(seen, more): (Outcome<LockSeen>, Outcome<_>)| Ok(seen?.go_on(from, more?));
            seen = seen.into_iter().zip(more).map(add).collect();
        }
        let view = |(voter, (seen, quarantine)): (usize, (Outcome<LockSeen>, _))| VoterView {
            voter: panel.voters[voter].label().to_string(),
            side: panel.quorum.side(voter),
            state: seen.map(|seen| LockState::read(self.kind, seen)),
            quarantine,
        };
        Ok(seen.into_iter().zip(quarantined).enumerate().map(view).collect())
    }

    /// Ends a named hold; says how many voters have confirmed it.
    pub(super) async fn end(&self, handle: &LockHandle, held: &Holder) -> Result<usize, Error> {
        let Holder { hold, slots, ttl, .. } = held;
        // It is remembered for longer than the holder, which renews from a third of its lease on,
        // can go on without its vote.
        let left = ttl.unwrap_or_default().min(Settings::LONGEST_LEASE);
        let marker = (left * 4).max(handle.settings().lease);
        // Only that of a semaphore has slots.
        let slots = u16::try_from(slots.len().max(1)).unwrap_or(u16::MAX);
        let call = self.lock.force_release(hold, marker).weighing(slots);
        let answers = self.ask(handle, &call).await?;
        Ok(answers.iter().filter(|answer| answer.is_ok()).count())
    }

    /// How many lists that is answered with.
    fn lists(&self) -> usize {
        match self.kind {
            LockKind::Mutex | LockKind::Election => 1,
            LockKind::RwLock => 3,
            LockKind::Semaphore => 2,
        }
    }

    /// What every voter answers that does so in time.
    pub(super) async fn ask(
        &self,
        handle: &LockHandle,
        call: &Call,
    ) -> Result<Vec<Outcome<Answer>>, Error> {
        let rules = self.lock.rules();
        handle.coordinator().ask_until(&*self.lock, call, rules, |_| false).await
    }
}
