//! Staying in an election: to campaign, to lead, and to campaign again.

use std::{
    ops::ControlFlow::{self, Break, Continue},
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use super::{Election, Leadership};
use crate::{
    log,
    proto::{Backoff, Error},
};

impl Election {
    /// Stays in the election: campaigns with `value`, does the work while it leads, and campaigns
    /// again, until the work returns [`Break`] or `shutdown` completes. Returns what the work
    /// broke with; `None` after `shutdown`.
    ///
    /// - The work returns [`Continue`]: the lead goes to the next candidate, and this one campaigns
    ///   again, behind all others.
    /// - The lead is lost: the work is dropped at the deadline, as
    ///   [`while_leader`](Leadership::while_leader) does it, and this candidate campaigns again.
    ///   What the work has spawned is not dropped. [`Leadership::ending`] completes before that, by
    ///   a grace of a third of the lease, 10 s at most.
    /// - No majority answers: it tries for as long as it takes.
    /// - `shutdown` completes while it leads: [`Leadership::ending`] completes, and the lead is
    ///   renewed until the work has ended. Then it is given up. So work that waits for nothing of
    ///   the kind goes on for ever, and a clone of the [`Leadership`] that outlives the work keeps
    ///   the lead.
    /// - `shutdown` completes while it does not lead: it returns at once.
    ///
    /// The [log](crate#logs) has a warning, "campaigns again", for each loss and each campaign that
    /// fails.
    ///
    /// # Errors
    ///
    /// Errors that [stay](Error::is_permanent): [`is_closed`](Error::is_closed),
    /// [`is_invalid`](Error::is_invalid), and [`is_no_quorum`](Error::is_no_quorum) where a
    /// majority refuses rights. All others are waited out, with a pause.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work, and resigns in the background.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// # async fn plan(_: quorate::Token) {}
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// # let shutdown = async {};
    /// use std::{ops::ControlFlow::Continue, time::Duration};
    ///
    /// let election = quorum.election("scheduler");
    /// let done: Option<()> = election
    ///     .lead("10.0.0.1:80", shutdown, async |leadership| {
    ///         loop {
    ///             tokio::select! {
    ///                 () = leadership.ending() => return Continue(()),
    ///                 () = tokio::time::sleep(Duration::from_secs(1)) => {
    ///                     plan(leadership.token()).await;
    ///                 }
    ///             }
    ///         }
    ///     })
    ///     .await?;
    /// assert_eq!(done, None, "it was shut down");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn lead<T>(
        &self,
        value: impl AsRef<[u8]>,
        shutdown: impl Future<Output = ()>,
        mut work: impl AsyncFnMut(Arc<Leadership>) -> ControlFlow<T>,
    ) -> Result<Option<T>, Error> {
        let (mut shutdown, mut pause, mut failed) = (pin!(shutdown), Self::pause(), None);
        loop {
            let next = self.next_lead(value.as_ref(), shutdown.as_mut(), &mut pause, failed);
            let Some(leadership) = next.await? else { return Ok(None) };
            let leadership = Arc::new(leadership);
            let worked = leadership.until_worked(shutdown.as_mut(), work(Arc::clone(&leadership)));
            let (done, is_shut_down) = worked.await;
            // If the work has left a clone, the lead stays with it: it may still be at work.
            let resigned = match Arc::into_inner(leadership) {
                Some(leadership) => leadership.resign().await,
                None => Ok(()),
            };
            failed = match done {
                Ok(Break(done)) => return Ok(Some(done)),
                _ if is_shut_down => return Ok(None),
                Ok(Continue(())) => resigned.err(),
                Err(lost) => Some(lost),
            };
        }
    }

    /// The pause between two campaigns.
    pub(crate) fn pause() -> Backoff {
        Backoff::new(Duration::from_millis(100), Duration::from_millis(500))
    }

    /// Campaigns until this client leads, or `None` after the shutdown. `failed`: why the lead
    /// before ended, if it was lost.
    pub(crate) async fn next_lead(
        &self,
        value: &[u8],
        mut shutdown: Pin<&mut impl Future<Output = ()>>,
        pause: &mut Backoff,
        mut failed: Option<Error>,
    ) -> Result<Option<Leadership>, Error> {
        let coordinator = self.0.coordinator();
        loop {
            if let Some(error) = failed {
                let (election, error) = (self.0.name().to_owned(), error.to_string());
                log::report_here(move || tracing::warn!(election, error, "campaigns again"));
                tokio::select! {
                    biased;
                    () = &mut shutdown => return Ok(None),
                    () = coordinator.clock().sleep(pause.pause(coordinator.chance())) => {}
                }
            }
            let campaign = tokio::select! {
                biased;
                // By the drop, its place leaves the queue and its votes are given back.
                () = &mut shutdown => return Ok(None),
                campaign = self.campaign(value) => campaign,
            };
            match campaign {
                Err(error) if error.is_permanent() => return Err(error),
                Err(error) => failed = Some(error),
                // The next trouble is another one: it begins with a short pause.
                Ok(leadership) => {
                    pause.reset();
                    return Ok(Some(leadership));
                }
            }
        }
    }
}

impl Leadership {
    /// Completes when the work of the leader should end:
    ///
    /// - a third of the lease, and 10 s at most, before the lead is lost unless it is renewed;
    /// - once the lead is lost;
    /// - under [`Election::lead`], at the shutdown. The lead is renewed until the work has ended.
    ///
    /// If a renewal succeeds after that, the client goes on leading.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    pub async fn ending(&self) {
        tokio::select! {
            biased;
            () = self.1.until(|is_ending| *is_ending) => {}
            () = self.0.until_nearly_lost() => {}
        }
    }

    /// Does the work. At a shutdown before its end, it completes [`ending`](Self::ending), and goes
    /// on with the work. Also says whether there was a shutdown.
    async fn until_worked<T>(
        &self,
        shutdown: impl Future<Output = ()>,
        work: impl Future<Output = T>,
    ) -> (Result<T, Error>, bool) {
        let mut working = pin!(self.while_leader(work));
        tokio::select! {
            biased;
            // First: work that ends at the moment of the shutdown has its result.
            done = &mut working => return (done, false),
            () = shutdown => {}
        }
        self.1.change(|is_ending| *is_ending = true);
        (working.await, true)
    }
}
