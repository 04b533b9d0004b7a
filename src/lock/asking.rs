//! What every lock is asked for with, whatever its kind.

use std::{fmt, sync::Arc, time::Duration};

use super::Forms;
use crate::{
    coordinator::{Coordinator, LockRecord, place},
    engine::{Limit, Rules},
    hold::{Entry, Holds, Wish, enter},
    node::{Call, Outcome},
    scripts::Answer,
    settings::Settings,
    words::{Error, LockName, Owner, Quarantined},
};

/// Which lock, for whom, and for how long.
#[derive(Clone)]
pub(super) struct Asking {
    pub(super) coordinator: Arc<Coordinator>,
    holds: Arc<Holds>,
    pub(super) forms: Arc<Forms>,
    name: Result<LockName, Error>,
    owner: Option<Owner>,
    lease: Duration,
    renewed: bool,
    fenced: bool,
}

/// What one voter answered.
pub(super) struct VoterSaid {
    /// The voter, as errors call it.
    pub(super) voter: String,
    pub(super) answer: Outcome<Answer>,
    pub(super) quarantine: Option<Quarantined>,
}

impl Asking {
    pub(super) fn new(
        coordinator: &Arc<Coordinator>,
        holds: &Arc<Holds>,
        forms: &Arc<Forms>,
        name: &str,
    ) -> Self {
        Self {
            coordinator: Arc::clone(coordinator),
            holds: Arc::clone(holds),
            forms: Arc::clone(forms),
            name: LockName::parse(name),
            owner: None,
            lease: coordinator.settings.lease,
            renewed: true,
            fenced: true,
        }
    }

    pub(super) fn owner(self, owner: Owner) -> Self {
        Self { owner: Some(owner), ..self }
    }

    pub(super) fn lease(self, lease: Duration, renewed: bool) -> Self {
        Self { lease, renewed, ..self }
    }

    pub(super) fn fenced(self, fenced: bool) -> Self {
        Self { fenced, ..self }
    }

    /// For how long the fence is remembered; `None` where there is none.
    pub(super) fn fence(&self) -> Option<Duration> {
        self.fenced.then(|| self.settings().fence_memory)
    }

    /// The name and the lease, if they can be used.
    pub(super) fn checked(&self) -> Result<(LockName, Rules), Error> {
        let name = self.name.clone()?;
        Ok((name, self.coordinator.settings.rules(self.lease)?))
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.coordinator.settings
    }

    /// The end of a time that begins now.
    pub(super) fn within(&self, time: Duration) -> Limit {
        Limit::Until(self.coordinator.clock.now() + time)
    }

    /// Waits for as long as it takes.
    pub(super) async fn enter(
        &self,
        record: Arc<dyn LockRecord>,
        rules: Rules,
    ) -> Result<Entry, Error> {
        let wish = self.wish(record, rules);
        loop {
            let entered = enter(&self.coordinator, &self.holds, &wish, Limit::Never).await?;
            if let Some(entry) = entered {
                return Ok(entry);
            }
        }
    }

    pub(super) async fn enter_within(
        &self,
        record: Arc<dyn LockRecord>,
        rules: Rules,
        limit: Limit,
    ) -> Result<Option<Entry>, Error> {
        enter(&self.coordinator, &self.holds, &self.wish(record, rules), limit).await
    }

    fn wish(&self, record: Arc<dyn LockRecord>, rules: Rules) -> Wish {
        Wish { record, rules, renewed: self.renewed, owner: self.owner }
    }

    /// What every voter answers that does so in time.
    pub(super) async fn ask(
        &self,
        record: &dyn LockRecord,
        call: &Call,
        rules: Rules,
    ) -> Result<Vec<VoterSaid>, Error> {
        let Coordinator { panel, clock, .. } = &*self.coordinator;
        let answers = self.coordinator.ask_everybody(record, call, rules).await?;
        let said = |(voter, answer)| {
            let kept_out = panel.standings.kept_out(place(voter, &answer), clock.now());
            VoterSaid {
                voter: panel.voters[voter].label().to_string(),
                answer,
                quarantine: kept_out.map(|kept_out| kept_out.quarantined),
            }
        };
        Ok(answers.into_iter().enumerate().map(said).collect())
    }

    /// Sends the script that clears a lock; whether there was anything to take out.
    pub(super) async fn clear(
        &self,
        record: &dyn LockRecord,
        call: &Call,
        rules: Rules,
    ) -> Result<bool, Error> {
        let said = self.ask(record, call, rules).await?;
        Ok(said.iter().any(|VoterSaid { answer, .. }| answer.as_ref().is_ok_and(Answer::is_done)))
    }

    /// How long a hold that was ended by force is remembered: longer than the holder, which renews
    /// from a third of its lease on, can go on.
    pub(super) fn marker(&self, left: Option<Duration>) -> Duration {
        let left = left.unwrap_or_default().min(Settings::LONGEST_LEASE);
        (left * 4).max(self.settings().lease)
    }

    pub(super) fn show<'a, 'b>(
        &self,
        kind: &str,
        f: &'a mut fmt::Formatter<'b>,
    ) -> fmt::DebugStruct<'a, 'b> {
        let mut shown = f.debug_struct(kind);
        shown
            .field("name", &self.name.as_ref().map_or("", |name| name.as_str()))
            .field("owner", &self.owner)
            .field("lease", &self.lease)
            .field("renewed", &self.renewed);
        shown
    }
}
