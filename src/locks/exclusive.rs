//! What the mutex, the fair mutex and the election have in common.

use std::{fmt, sync::Arc, time::Duration};

use super::{LockParts, LockView, handle::LockHandle, look::look};
use crate::{
    hold::LockRequest,
    kinds::{Kind, LockRecord, MUTEX},
    proto::{Error, Owner},
    scripts::Answer,
    voter::Outcome,
};

/// Which lock, and how it is asked for.
#[derive(Clone)]
pub(super) struct Exclusive {
    pub(super) handle: LockHandle,
    kind: &'static Kind,
    /// What every call asks with.
    record: Result<LockRecord, Error>,
}

impl Exclusive {
    pub(super) fn new(parts: &Arc<LockParts>, name: &str, kind: &'static Kind) -> Self {
        Self::made(LockHandle::new(parts, name), kind)
    }

    fn made(handle: LockHandle, kind: &'static Kind) -> Self {
        let record = handle.record(kind, None);
        Self { handle, kind, record }
    }

    pub(super) fn owner(self, owner: Owner) -> Self {
        Self { handle: self.handle.owner(owner), ..self }
    }

    pub(super) fn lease(self, lease: Duration, renewed: bool) -> Self {
        Self::made(self.handle.lease(lease, renewed), self.kind)
    }

    pub(super) fn hold_at_most(self, time: Duration) -> Self {
        Self::made(self.handle.hold_at_most(time), self.kind)
    }

    /// The request for it.
    pub(super) fn request(&self) -> Result<LockRequest, Error> {
        let record = self.usable()?;
        let is_plain = *record.kind() == MUTEX;
        let request = self.handle.request(record);
        Ok(LockRequest { hands_on: is_plain && request.renewed, ..request })
    }

    pub(super) async fn inspect(self) -> Result<LockView, Error> {
        look(&self.handle, &self.usable()?).await
    }

    /// Whether the votes of a majority are given; of one set of voters, where there are two.
    pub(super) async fn ask_whether_locked(self) -> Result<bool, Error> {
        let record = self.usable()?;
        let coordinator = self.handle.coordinator();
        let quorum = coordinator.panel().quorum;
        let say = |answers: &[Outcome<Answer>], given: bool| {
            let says = |answer: &Outcome<Answer>| matches!(answer, Ok(it) if it.is_done() == given);
            quorum.reached(|voter| says(&answers[voter]))
        };
        let are_enough = |answers: &[_]| say(answers, true) || say(answers, false);
        let (call, started) = (record.look(0), coordinator.clock().now());
        let asked = coordinator.ask_until(&record, &call, record.rules(), are_enough);
        let answers = asked.await?;
        let given = |voter: usize| matches!(&answers[voter], Ok(it) if it.is_done());
        if quorum.reached_in_one(given) {
            return Ok(true);
        }
        if say(&answers, false) || answers.iter().all(Outcome::is_ok) {
            return Ok(false);
        }
        // Those that did not answer decide.
        Err(coordinator.unanswered(&record, &answers, started))
    }

    pub(super) fn usable(&self) -> Result<LockRecord, Error> {
        self.record.clone()
    }

    pub(super) fn show(&self, kind: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle.show(kind, f).finish_non_exhaustive()
    }
}
