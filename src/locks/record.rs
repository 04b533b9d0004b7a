//! A lock of any kind, as one asks about it who has no hold of it.

use std::sync::Arc;

use super::{
    asking::Asking,
    mutex_record::MutexRecord,
    rw_record::RwAsked,
    semaphore_record::SemaphoreRecord,
    view::{Holder, LockState, LockView, VoterView},
};
use crate::{
    acquire::{LockRecord, place},
    proto::{Error, LockKind},
    scripts::{Answer, LockSeen},
    settings::Settings,
    voter::{Call, Outcome},
};

/// A lock as one asks about it who has no hold of it.
pub(super) enum Record {
    Mutex(Arc<MutexRecord>),
    RwLock(Arc<dyn RwAsked>),
    Semaphore(Arc<SemaphoreRecord>),
    Election(Arc<MutexRecord>),
}

impl Record {
    pub(super) fn kind(&self) -> LockKind {
        match self {
            Self::Mutex(_) => LockKind::Mutex,
            Self::RwLock(_) => LockKind::RwLock,
            Self::Semaphore(_) => LockKind::Semaphore,
            Self::Election(_) => LockKind::Election,
        }
    }

    /// What all voters say, and who leads an election.
    pub(super) async fn look(&self, asking: &Asking) -> Result<LockView, Error> {
        let voters = self.ask_all(asking);
        let Self::Election(record) = self else {
            return Ok(LockView::new(asking.name(), self.kind(), voters.await?));
        };
        let asked = record.asked();
        let (voters, leader) = tokio::join!(voters, asking.coordinator().ask_who_leads(&asked));
        // Where that cannot be known, what each voter says is shown all the same.
        let leader = leader.ok().flatten();
        Ok(LockView { leader, ..LockView::new(asking.name(), self.kind(), voters?) })
    }

    pub(super) async fn ask_all(&self, asking: &Asking) -> Result<Vec<VoterView>, Error> {
        let read = |answer: Outcome<Answer>| LockSeen::read(&answer?, self.lists());
        let panel = asking.coordinator().panel();
        let answers = self.ask(asking, &self.inspect(0)).await?;
        let now = asking.coordinator().clock().now();
        let quarantined = |(voter, answer): (usize, &Outcome<Answer>)| {
            Some(panel.standings.kept_out(place(voter, answer), now)?.quarantined)
        };
        let quarantined: Vec<_> = answers.iter().enumerate().map(quarantined).collect();
        let mut seen: Vec<_> = answers.into_iter().map(read).collect();
        while let Some(from) = seen.iter().flatten().filter_map(|seen| seen.next).min() {
            let more = self.ask(asking, &self.inspect(from)).await?.into_iter().map(read);
            let add = |(seen, more): (Outcome<LockSeen>, Outcome<_>)| Ok(seen?.go_on(from, more?));
            seen = seen.into_iter().zip(more).map(add).collect();
        }
        let view = |(voter, (seen, quarantine)): (usize, (Outcome<LockSeen>, _))| VoterView {
            voter: panel.voters[voter].label().to_string(),
            side: panel.quorum.side(voter),
            state: seen.map(|seen| LockState::read(self.kind(), seen)),
            quarantine,
        };
        Ok(seen.into_iter().zip(quarantined).enumerate().map(view).collect())
    }

    /// Ends a named hold; says how many voters have confirmed it.
    pub(super) async fn end(&self, asking: &Asking, held: &Holder) -> Result<usize, Error> {
        let Holder { hold, slots, ttl, .. } = held;
        // It is remembered for longer than the holder, which renews from a third of its lease on,
        // can go on without its vote.
        let left = ttl.unwrap_or_default().min(Settings::LONGEST_LEASE);
        let marker = (left * 4).max(asking.settings().lease);
        let call = match self {
            Self::Mutex(record) | Self::Election(record) => record.force_release(hold, marker),
            Self::RwLock(record) => record.force_release(hold, marker),
            Self::Semaphore(record) => {
                let slots = u16::try_from(slots.len()).unwrap_or(u16::MAX);
                record.force_release(hold, slots, marker)
            }
        };
        let answers = self.ask(asking, &call).await?;
        Ok(answers.iter().filter(|answer| answer.is_ok()).count())
    }

    /// Asks who has it and who waits; of a semaphore for the slots from `from` on, as many as one
    /// call may tell.
    fn inspect(&self, from: u64) -> Call {
        match self {
            Self::Mutex(record) | Self::Election(record) => record.inspect(),
            Self::RwLock(record) => record.inspect(),
            Self::Semaphore(record) => record.inspect(from),
        }
    }

    /// How many lists that is answered with.
    fn lists(&self) -> usize {
        match self {
            Self::Mutex(_) | Self::Election(_) => 1,
            Self::RwLock(_) => 3,
            Self::Semaphore(_) => 2,
        }
    }

    pub(super) fn clear(&self) -> Call {
        match self {
            Self::Mutex(record) | Self::Election(record) => record.clear(),
            Self::RwLock(record) => record.clear(),
            Self::Semaphore(record) => record.clear(),
        }
    }

    /// What every voter answers that does so in time.
    pub(super) async fn ask(
        &self,
        asking: &Asking,
        call: &Call,
    ) -> Result<Vec<Outcome<Answer>>, Error> {
        let record: &dyn LockRecord = match self {
            Self::Mutex(record) | Self::Election(record) => &**record,
            Self::RwLock(record) => &**record,
            Self::Semaphore(record) => &**record,
        };
        asking.coordinator().ask_everybody(record, call, record.rules()).await
    }
}
