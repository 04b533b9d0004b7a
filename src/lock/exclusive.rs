//! What the mutex and the fair mutex have in common.

use std::{fmt, sync::Arc, time::Duration};

use super::{
    Forms, Holder, Inspection, MutexGuard, VoterView, Waiting,
    asking::{Asking, VoterSaid},
    mutex_record::{MutexRecord, MutexTerms},
};
use crate::{
    coordinator::Coordinator,
    engine::{Limit, Rules},
    hold::Holds,
    scripts::MutexSeen,
    words::{Error, Owner},
};

/// Which lock, and how it is asked for.
#[derive(Clone)]
pub(super) struct Exclusive {
    asking: Asking,
    fair: bool,
    /// What every call asks with.
    record: Result<Arc<MutexRecord>, Error>,
}

impl Exclusive {
    pub(super) fn new(
        coordinator: &Arc<Coordinator>,
        holds: &Arc<Holds>,
        forms: &Arc<Forms>,
        (name, fair): (&str, bool),
    ) -> Self {
        Self::made(Asking::new(coordinator, holds, forms, name), fair)
    }

    fn made(asking: Asking, fair: bool) -> Self {
        let record = asking.checked().map(|(name, rules)| {
            let settings = asking.settings();
            let waiting = fair.then(|| settings.waiting(rules.terms.lease));
            let terms = MutexTerms { rules, waiting, fence: asking.fence() };
            Arc::new(MutexRecord::new(name, &settings.keys, asking.forms.of_mutex(terms)))
        });
        Self { asking, fair, record }
    }

    pub(super) fn owner(self, owner: Owner) -> Self {
        Self { asking: self.asking.owner(owner), ..self }
    }

    pub(super) fn lease(self, lease: Duration, renewed: bool) -> Self {
        Self::made(self.asking.lease(lease, renewed), self.fair)
    }

    pub(super) fn fenced(self, fenced: bool) -> Self {
        Self::made(self.asking.fenced(fenced), self.fair)
    }

    pub(super) async fn lock(&self) -> Result<MutexGuard, Error> {
        let (record, rules) = self.usable()?;
        self.asking.enter(record, rules).await.map(MutexGuard::new)
    }

    pub(super) async fn try_lock(&self) -> Result<Option<MutexGuard>, Error> {
        self.enter(Limit::Now).await
    }

    pub(super) async fn lock_within(&self, limit: Duration) -> Result<Option<MutexGuard>, Error> {
        self.enter(self.asking.within(limit)).await
    }

    async fn enter(&self, limit: Limit) -> Result<Option<MutexGuard>, Error> {
        let (record, rules) = self.usable()?;
        let entered = self.asking.enter_within(record, rules, limit).await?;
        Ok(entered.map(MutexGuard::new))
    }

    pub(super) async fn inspect(&self) -> Result<Inspection, Error> {
        let (record, rules) = self.usable()?;
        let answers = self.asking.ask(&*record, &record.inspect(), rules).await?;
        let views = answers.into_iter().map(|VoterSaid { voter, answer, quarantine }| {
            let seen = answer.and_then(|answer| MutexSeen::read(&answer));
            let (holder, queue) = match seen {
                Ok(MutexSeen { holder, waiting }) => (Ok(holder), waiting),
                Err(cause) => (Err(cause), Vec::new()),
            };
            VoterView {
                voter,
                holder: holder.map(|holder| holder.map(Holder::from)),
                queue: queue.into_iter().map(Waiting::from).collect(),
                quarantine,
            }
        });
        Ok(Inspection { voters: views.collect() })
    }

    pub(super) async fn force_release(&self) -> Result<bool, Error> {
        let inspection = self.inspect().await?;
        let (record, rules) = self.usable()?;
        let holds = inspection.holds();
        for Holder { hold, ttl, .. } in &holds {
            let call = record.force_release(hold, self.asking.marker(*ttl));
            self.asking.ask(&*record, &call, rules).await?;
        }
        Ok(!holds.is_empty())
    }

    pub(super) async fn force_clear(&self) -> Result<bool, Error> {
        let (record, rules) = self.usable()?;
        let cleared = self.asking.clear(&*record, &record.clear(), rules).await?;
        // By name: a hold that comes from now on is none that was to be ended.
        Ok(self.force_release().await? || cleared)
    }

    fn usable(&self) -> Result<(Arc<MutexRecord>, Rules), Error> {
        let record = self.record.clone()?;
        let rules = record.rules();
        Ok((record, rules))
    }

    pub(super) fn show(&self, kind: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.asking.show(kind, f).finish_non_exhaustive()
    }
}
