//! What the locks that one holds at a time have in common.

use std::{fmt, sync::Arc, time::Duration};

use super::{
    Holder, Inspection, MutexGuard, VoterView, Waiting,
    mutex_record::{MutexRecord, Order},
};
use crate::{
    coordinator::{Coordinator, Limit},
    engine::Rules,
    hold::{Holds, Wish, enter},
    node::Call,
    scripts::Answer,
    settings::Settings,
    words::{Cause, Error, Kind, LockName, Owner, Verdict},
};

/// Which lock, and how it is asked for.
#[derive(Clone)]
pub(super) struct Exclusive {
    coordinator: Arc<Coordinator>,
    holds: Arc<Holds>,
    name: Result<LockName, Error>,
    fair: bool,
    owner: Option<Owner>,
    lease: Duration,
    renewed: bool,
}

impl Exclusive {
    pub(super) fn new(
        coordinator: &Arc<Coordinator>,
        holds: &Arc<Holds>,
        name: &str,
        fair: bool,
    ) -> Self {
        Self {
            coordinator: Arc::clone(coordinator),
            holds: Arc::clone(holds),
            name: LockName::parse(name),
            fair,
            owner: None,
            lease: coordinator.settings.lease,
            renewed: true,
        }
    }

    pub(super) fn owner(mut self, owner: Owner) -> Self {
        self.owner = Some(owner);
        self
    }

    pub(super) fn lease(mut self, lease: Duration, renewed: bool) -> Self {
        (self.lease, self.renewed) = (lease, renewed);
        self
    }

    pub(super) async fn lock(&self) -> Result<MutexGuard, Error> {
        loop {
            if let Some(guard) = self.enter(Limit::Never).await? {
                return Ok(guard);
            }
        }
    }

    pub(super) async fn try_lock(&self) -> Result<Option<MutexGuard>, Error> {
        self.enter(Limit::Now).await
    }

    pub(super) async fn lock_within(&self, limit: Duration) -> Result<Option<MutexGuard>, Error> {
        let until = self.coordinator.clock.now() + limit;
        self.enter(Limit::Until(until)).await
    }

    async fn enter(&self, limit: Limit) -> Result<Option<MutexGuard>, Error> {
        let (record, rules) = self.checked()?;
        let record = Arc::new(record);
        let wish = Wish { record, rules, renewed: self.renewed, owner: self.owner };
        let entered = enter(&self.coordinator, &self.holds, &wish, limit).await?;
        Ok(entered.map(MutexGuard::new))
    }

    pub(super) async fn inspect(&self) -> Result<Inspection, Error> {
        let (record, rules) = self.checked()?;
        let answers = self.ask(&record.inspect(), rules).await?;
        let views = self.coordinator.panel.voters.iter().zip(answers).map(|(voter, answer)| {
            let (queue, holder) = match answer {
                Ok(mut answer) => (Waiting::read(&mut answer), Ok(Holder::read(&answer))),
                Err(cause) => (Vec::new(), Err(cause)),
            };
            VoterView { voter: voter.label().to_string(), holder, queue }
        });
        Ok(Inspection { voters: views.collect() })
    }

    pub(super) async fn force_release(&self) -> Result<bool, Error> {
        let inspection = self.inspect().await?;
        let (record, rules) = self.checked()?;
        let holds = inspection.holds();
        for holder in &holds {
            // Longer than the holder, which renews from a third of its lease on, can go on.
            let left = holder.ttl.unwrap_or_default().min(Settings::LONGEST_LEASE);
            let marker = (left * 4).max(self.coordinator.settings.lease);
            self.ask(&record.force_release(&holder.hold, marker), rules).await?;
        }
        Ok(!holds.is_empty())
    }

    /// The answers of all voters, as far as they come in time; of a majority at least.
    async fn ask(&self, call: &Call, rules: Rules) -> Result<Vec<Result<Answer, Cause>>, Error> {
        let gathered = async { Ok(self.gather(call, rules).await) };
        let answers = self.coordinator.gate.within(gathered).await?;
        self.check_quorum(&answers, rules)?;
        Ok(answers)
    }

    async fn gather(&self, call: &Call, rules: Rules) -> Vec<Result<Answer, Cause>> {
        let Coordinator { clock, panel, .. } = &*self.coordinator;
        let mut asked = panel.ask_all(call);
        let late = || Err(Cause::TimedOut(rules.voter_deadline));
        let mut answers: Vec<_> = (0..panel.quorum.voters()).map(|_| late()).collect();
        let due = clock.now() + rules.voter_deadline;
        for _ in 0..answers.len() {
            tokio::select! {
                biased;
                (voter, answer) = asked.next() => answers[voter] = answer,
                () = clock.sleep_until(due) => break,
            }
        }
        answers
    }

    fn check_quorum(&self, answers: &[Result<Answer, Cause>], rules: Rules) -> Result<(), Error> {
        let needed = self.coordinator.panel.quorum.needed();
        if answers.iter().filter(|answer| answer.is_ok()).count() >= needed {
            return Ok(());
        }
        let verdicts = answers.iter().map(|answer| match answer {
            Ok(answer) => answer.seen(),
            Err(cause) => Verdict::Unknown(cause.clone()),
        });
        let lock = self.name.as_ref().map_or("", |name| name.as_str()).into();
        let kind = Kind::NoQuorum { lock, needed, after: rules.voter_deadline };
        Err(Error::new(kind, self.coordinator.panel.report(verdicts.collect())))
    }

    fn checked(&self) -> Result<(MutexRecord, Rules), Error> {
        let name = self.name.clone()?;
        let settings = &self.coordinator.settings;
        let rules = settings.rules(self.lease)?;
        let order = if self.fair {
            Order::Fair { waiting: settings.waiting(rules.terms.lease) }
        } else {
            Order::None
        };
        Ok((MutexRecord::new(name, &settings.keys, rules.voter_deadline, order), rules))
    }

    pub(super) fn show(&self, kind: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(kind)
            .field("name", &self.name.as_ref().map_or("", |name| name.as_str()))
            .field("owner", &self.owner)
            .field("lease", &self.lease)
            .field("renewed", &self.renewed)
            .finish_non_exhaustive()
    }
}
