//! How many attempts a client makes at once. Further callers wait for their turn: if all asked at
//! once, the answers would come after the voter deadline, and healthy voters would seem silent.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

use super::{Coordinator, line::Turn, record::LockInfo};
use crate::{
    engine::Limit,
    words::{Error, Kind, LockName},
};

/// So many attempts gather a majority at the same time. Each has one request on its way to each
/// voter: more would only stand in line there, and be late.
const MOST: usize = 256;

/// The turns of those who want to ask, in the order in which they came.
#[derive(Debug)]
pub(crate) struct Admission(Semaphore);

/// Leave to make one attempt.
pub(crate) type Admitted<'a> = SemaphorePermit<'a>;

impl Admission {
    pub(super) fn new() -> Self {
        Self(Semaphore::new(MOST))
    }

    /// The turn, where nobody has to wait for one.
    pub(super) fn try_admit(&self) -> Option<Admitted<'_>> {
        self.0.try_acquire().ok()
    }
}

impl Coordinator {
    /// Leave to make the first attempt for a lock. It is waited for before anything else is made:
    /// many may wait. `None`: others of this client stand in line for the lock, and the first of
    /// them has leave, or waits for it.
    pub(crate) async fn admit_first(
        &self,
        info: &LockInfo,
        limit: Limit,
    ) -> Result<Option<Admitted<'_>>, Error> {
        if let Some(admitted) = self.admission.try_admit() {
            return Ok(Some(admitted));
        }
        if self.lines.has(&info.key) {
            return Ok(None);
        }
        // In boxes: who has leave needs no room for it.
        if limit == Limit::Never {
            let admitted = Box::pin(self.admission.0.acquire()).await;
            return Ok(Some(admitted.expect("nobody closes it")));
        }
        Box::pin(self.wait_for_admission(&info.name, limit)).await.map(Some)
    }

    /// Leave to make an attempt, if the caller does not have it: waits for the turn until its
    /// limit, if it has one, and tells those behind in `line`. A caller that does not want to wait
    /// for the lock waits for its turn all the same, as long as the patience.
    pub(super) async fn admit<'a>(
        &'a self,
        admitted: Option<Admitted<'a>>,
        lock: &LockName,
        limit: Limit,
        line: Option<&Turn<'_>>,
    ) -> Result<Admitted<'a>, Error> {
        if let Some(admitted) = admitted.or_else(|| self.admission.try_admit()) {
            return Ok(admitted);
        }
        let hold_up = |is_held_up| line.into_iter().for_each(|turn| turn.hold_up(is_held_up));
        hold_up(true);
        let admitted = Box::pin(self.wait_for_admission(lock, limit)).await;
        hold_up(false);
        admitted
    }

    async fn wait_for_admission(
        &self,
        lock: &LockName,
        limit: Limit,
    ) -> Result<Admitted<'_>, Error> {
        let Admission(turns) = &self.admission;
        let started = self.clock.now();
        let until = match limit {
            Limit::Until(moment) if started < moment => Some(moment),
            Limit::Now | Limit::Until(_) => Some(started + self.settings.quorum_timeout),
            Limit::Never => None,
        };
        let late = async {
            match until {
                Some(until) => self.clock.sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            Ok(admitted) = turns.acquire() => Ok(admitted),
            () = late => Err(overloaded(lock.as_str(), self.clock.now().since(started))),
        }
    }
}

pub(super) fn overloaded(lock: &str, after: Duration) -> Error {
    Error::new(Kind::Overloaded { lock: lock.into(), most: MOST, after }, Vec::new())
}
