//! How many attempts a client makes at once. Further callers wait for their turn: if all asked at
//! once, the answers would come after the voter deadline, and healthy voters would seem silent.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

use super::{Coordinator, line::Turn};
use crate::{
    engine::Limit,
    words::{Error, Kind},
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
    /// Waits for the turn to make an attempt, until the caller's limit, if it has one, and tells
    /// those behind in `line`. A caller that does not want to wait for the lock waits for its turn
    /// all the same, as long as the patience.
    pub(super) async fn admit(
        &self,
        lock: &str,
        limit: Limit,
        line: Option<&Turn<'_>>,
    ) -> Result<Admitted<'_>, Error> {
        if let Some(admitted) = self.admission.try_admit() {
            return Ok(admitted);
        }
        let hold_up = |is_held_up| line.into_iter().for_each(|turn| turn.hold_up(is_held_up));
        hold_up(true);
        // Boxed: who waits for a lock has room for this future all the time.
        let admitted = Box::pin(self.wait_for_admission(lock, limit)).await;
        hold_up(false);
        admitted
    }

    async fn wait_for_admission(&self, lock: &str, limit: Limit) -> Result<Admitted<'_>, Error> {
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
            () = late => Err(overloaded(lock, self.clock.now().since(started))),
        }
    }
}

pub(super) fn overloaded(lock: &str, after: Duration) -> Error {
    Error::new(Kind::Overloaded { lock: lock.into(), most: MOST, after }, Vec::new())
}
