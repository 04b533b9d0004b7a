//! Looking at a semaphore, and ending its holds by force.

use std::sync::Arc;

use futures::future::try_join_all;

use super::{
    Semaphore,
    asking::VoterSaid,
    inspection::{SemaphoreInspection, SemaphoreState, SemaphoreView},
    semaphore_record::SemaphoreRecord,
};
use crate::{
    node::Outcome,
    scripts::SemaphoreSeen,
    words::{Error, HoldId},
};

impl Semaphore {
    /// Asks every voter who has which permits, and who waits; waits for them as
    /// [`Mutex::inspect`](crate::Mutex::inspect) does. Where more than 256 permits are taken,
    /// voters are asked for 256 at a time, and what has changed meanwhile may be missing.
    ///
    /// # Errors
    ///
    /// As [`Mutex::inspect`](crate::Mutex::inspect).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// let exports = quorum.semaphore("exports", 3);
    /// let guard = exports.acquire().await?;
    /// let seen = exports.inspect().await?;
    /// assert_eq!((seen.free(), &seen.holders()[0].hold), (2, guard.hold()));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn inspect(&self) -> Result<SemaphoreInspection, Error> {
        let record = self.usable()?;
        let answers = self.asking.ask(&*record, &record.inspect(0)).await?;
        let read = |answer: Outcome<_>| answer.and_then(|answer| SemaphoreSeen::read(&answer));
        let mut seen: Vec<_> = answers.iter().map(|said| read(said.answer.clone())).collect();
        while let Some(from) = seen.iter().flatten().filter_map(|seen| seen.next).min() {
            let answers = self.asking.ask(&*record, &record.inspect(from)).await?;
            for (seen, more) in seen.iter_mut().zip(answers) {
                if let Ok(former) = seen {
                    let add = |more| former.go_on(from, more);
                    *seen = read(more.answer).map(add);
                }
            }
        }
        let view = |(VoterSaid { voter, side, quarantine, .. }, seen): (_, Outcome<_>)| {
            SemaphoreView { voter, side, state: seen.map(SemaphoreState::from), quarantine }
        };
        let voters = answers.into_iter().zip(seen).map(view).collect();
        Ok(SemaphoreInspection { asked: self.permits, voters })
    }

    /// Ends all holds that there are, whoever has them; calls whoever is next, and says whether
    /// there was any. As [`Mutex::force_release`](crate::Mutex::force_release): for operators who
    /// know that holders are gone or stuck.
    ///
    /// # Errors
    ///
    /// As [`Mutex::force_release`](crate::Mutex::force_release).
    ///
    /// # Cancel safety
    ///
    /// Dropped half way, some holds may have ended and others not; calling again finishes it.
    pub async fn force_release(&self) -> Result<bool, Error> {
        let holds = self.inspect().await?.holds();
        let record = self.usable()?;
        let ended = holds.iter().map(async |(hold, slots, left)| {
            let call = record.force_release(hold, *slots, self.asking.marker(Some(*left)));
            self.asking.ask(&*record, &call).await
        });
        try_join_all(ended).await?;
        Ok(!holds.is_empty())
    }

    /// Ends this hold by force, and no other: all of its permits are free then. For operators who
    /// have decided about the hold that they saw.
    ///
    /// # Errors
    ///
    /// [`is_not_holding`](Error::is_not_holding): the hold has a permit on no voter; what each
    /// voter says is in it. All others as [`force_release`](Self::force_release).
    ///
    /// # Cancel safety
    ///
    /// As [`force_release`](Self::force_release).
    pub async fn force_release_hold(&self, hold: &HoldId) -> Result<(), Error> {
        let seen = self.inspect().await?;
        let record = self.usable()?;
        let Some((_, slots, left)) = seen.holds().into_iter().find(|(found, ..)| found == hold)
        else {
            return Err(self.asking.not_holding(hold, seen.report()));
        };
        let call = record.force_release(hold, slots, self.asking.marker(Some(left)));
        self.asking.ask(&*record, &call).await?;
        Ok(())
    }

    /// As [`Mutex::force_clear`](crate::Mutex::force_clear): ends every hold, removes everybody who
    /// waits, and deletes what no semaphore has written.
    ///
    /// # Errors
    ///
    /// As [`Mutex::force_release`](crate::Mutex::force_release).
    ///
    /// # Cancel safety
    ///
    /// As [`Mutex::force_release`](crate::Mutex::force_release).
    pub async fn force_clear(&self) -> Result<bool, Error> {
        let record = self.usable()?;
        let cleared = self.asking.clear(&*record, &record.clear()).await?;
        Ok(self.force_release().await? || cleared)
    }

    fn usable(&self) -> Result<Arc<SemaphoreRecord>, Error> {
        self.record.clone()
    }
}
