//! How many attempts a client makes at once. Further callers wait for their turn: if all asked at
//! once, the answers would come after the voter deadline, and healthy voters would seem silent.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

use super::{Coordinator, line::Turn};
use crate::proto::{Error, Kind, Limit, LockName};

/// How many attempts gather a majority at the same time. Each has one request on its way to each
/// voter: more would only stand in line there, and be late. Two calls of 32 are under way to a
/// voter at a time: with fewer attempts there is not always a next one ready.
const MOST: usize = 128;

/// The turns of those who want to ask, in the order in which they came.
#[derive(Debug)]
pub(crate) struct Admission(Semaphore);

/// Leave to make one attempt.
pub(crate) type Admitted<'a> = SemaphorePermit<'a>;

impl Admission {
    pub(super) fn new() -> Self {
        Self(Semaphore::new(MOST))
    }
}

impl Coordinator {
    /// Leave to make an attempt, where nobody has to wait for it.
    pub(crate) fn try_admit(&self) -> Option<Admitted<'_>> {
        self.admission.0.try_acquire().ok()
    }

    /// Leave to make the first attempt for a lock. It is waited for before what an attempt needs is
    /// made: many may wait.
    pub(crate) async fn admit_first(
        &self,
        lock: &LockName,
        limit: Limit,
    ) -> Result<Admitted<'_>, Error> {
        match self.try_admit() {
            Some(admitted) => Ok(admitted),
            None => self.wait_for_admission(lock, limit).await,
        }
    }

    /// Leave to make an attempt, if the caller does not have it: waits for it until its limit, if
    /// it has one. Its line knows meanwhile that it is held up.
    pub(super) async fn admit<'a>(
        &'a self,
        admitted: Option<Admitted<'a>>,
        lock: &LockName,
        limit: Limit,
        turn: &Turn<'_>,
    ) -> Result<Admitted<'a>, Error> {
        if let Some(admitted) = admitted.or_else(|| self.try_admit()) {
            return Ok(admitted);
        }
        turn.hold_up(true);
        let admitted = self.wait_for_admission(lock, limit).await?;
        turn.hold_up(false);
        Ok(admitted)
    }

    /// Leave for the first attempt, waited for until the limit.
    pub(crate) async fn wait_for_admission(
        &self,
        lock: &LockName,
        limit: Limit,
    ) -> Result<Admitted<'_>, Error> {
        let (started, turn) = (self.clock.now(), self.admission.0.acquire());
        let admitted = match limit {
            Limit::Once(until) | Limit::Until(until) => self.clock.in_time(until, turn).await,
            Limit::Never => Some(turn.await),
        };
        let late = || overloaded(lock.as_str(), self.clock.now().since(started));
        // The semaphore is never closed.
        admitted.and_then(Result::ok).ok_or_else(late)
    }
}

pub(super) fn overloaded(lock: &str, after: Duration) -> Error {
    Error::new(Kind::Overloaded { lock: lock.into(), most: MOST, after }, Vec::new())
}
