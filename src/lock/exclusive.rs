//! What the mutex and the fair mutex have in common.

use std::{fmt, sync::Arc, time::Duration};

use super::{
    Holder, Inspection, MutexGuard, VoterView, Waiting,
    asking::{Asking, Said},
    mutex_record::{MutexRecord, Order},
};
use crate::{
    coordinator::Coordinator,
    engine::{Limit, Rules},
    hold::Holds,
    words::{Error, Owner},
};

/// Which lock, and how it is asked for.
#[derive(Clone)]
pub(super) struct Exclusive {
    asking: Asking,
    fair: bool,
}

impl Exclusive {
    pub(super) fn new(
        coordinator: &Arc<Coordinator>,
        holds: &Arc<Holds>,
        name: &str,
        fair: bool,
    ) -> Self {
        Self { asking: Asking::new(coordinator, holds, name), fair }
    }

    pub(super) fn owner(self, owner: Owner) -> Self {
        Self { asking: self.asking.owner(owner), ..self }
    }

    pub(super) fn lease(self, lease: Duration, renewed: bool) -> Self {
        Self { asking: self.asking.lease(lease, renewed), ..self }
    }

    pub(super) fn fenced(self, fenced: bool) -> Self {
        Self { asking: self.asking.fenced(fenced), ..self }
    }

    pub(super) async fn lock(&self) -> Result<MutexGuard, Error> {
        let (record, rules) = self.checked()?;
        self.asking.enter(record, rules).await.map(MutexGuard::new)
    }

    pub(super) async fn try_lock(&self) -> Result<Option<MutexGuard>, Error> {
        self.enter(Limit::Now).await
    }

    pub(super) async fn lock_within(&self, limit: Duration) -> Result<Option<MutexGuard>, Error> {
        self.enter(self.asking.within(limit)).await
    }

    async fn enter(&self, limit: Limit) -> Result<Option<MutexGuard>, Error> {
        let (record, rules) = self.checked()?;
        let entered = self.asking.enter_within(record, rules, limit).await?;
        Ok(entered.map(MutexGuard::new))
    }

    pub(super) async fn inspect(&self) -> Result<Inspection, Error> {
        let (record, rules) = self.checked()?;
        let answers = self.asking.ask(&record, &record.inspect(), rules).await?;
        let views = answers.into_iter().map(|Said { voter, mut answer, quarantine }| {
            let queue = answer.as_mut().map(Waiting::read).unwrap_or_default();
            let holder = answer.map(|answer| Holder::read(&answer));
            VoterView { voter, holder, queue, quarantine }
        });
        Ok(Inspection { voters: views.collect() })
    }

    pub(super) async fn force_release(&self) -> Result<bool, Error> {
        let inspection = self.inspect().await?;
        let (record, rules) = self.checked()?;
        let holds = inspection.holds();
        for Holder { hold, ttl, .. } in &holds {
            let call = record.force_release(hold, self.asking.marker(*ttl));
            self.asking.ask(&record, &call, rules).await?;
        }
        Ok(!holds.is_empty())
    }

    pub(super) async fn force_clear(&self) -> Result<bool, Error> {
        let (record, rules) = self.checked()?;
        let cleared = self.asking.clear(&record, &record.clear(), rules).await?;
        // By name: a hold that comes from now on is none that was to be ended.
        Ok(self.force_release().await? || cleared)
    }

    fn checked(&self) -> Result<(MutexRecord, Rules), Error> {
        let (name, rules) = self.asking.checked()?;
        let settings = self.asking.settings();
        let order = if self.fair {
            Order::Fair { waiting: settings.waiting(rules.terms.lease) }
        } else {
            Order::None
        };
        let (deadline, fence) = (rules.voter_deadline, self.asking.fence());
        Ok((MutexRecord::new(name, &settings.keys, deadline, order, fence), rules))
    }

    pub(super) fn show(&self, kind: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.asking.show(kind, f).finish_non_exhaustive()
    }
}
