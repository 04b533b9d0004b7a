//! The election, who leads and who watches: each is the async one, with the thread of its client.

use std::{fmt, sync::Arc, time::Duration};

use super::client_thread::ClientThread;
use crate::{
    locks::{self, Observed, inspection::Inspection},
    proto::{Error, HoldId, Leader, Token},
};

/// [`quorate::Election`](crate::Election) for programs without async.
#[derive(Clone)]
#[must_use = "it does nothing until somebody campaigns or asks"]
pub struct Election {
    election: locks::Election,
    thread: Arc<ClientThread>,
}

impl Election {
    pub(super) fn new(election: locks::Election, thread: &Arc<ClientThread>) -> Self {
        Self { election, thread: Arc::clone(thread) }
    }

    /// As [`Election::lease`](crate::Election::lease).
    pub fn lease(self, lease: Duration) -> Self {
        Self { election: self.election.lease(lease), ..self }
    }

    /// [`Election::campaign`](crate::Election::campaign); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::Election::campaign). [`is_inside_runtime`](Error::is_inside_runtime):
    /// nothing was sent.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect_blocking()?;
    /// let election = quorum.election("scheduler");
    /// let leadership = election.campaign("10.0.0.1:80")?;
    /// assert_eq!(election.leader()?.expect("somebody leads").text(), Some("10.0.0.1:80"));
    /// leadership.resign()
    /// # }
    /// ```
    pub fn campaign(&self, value: impl AsRef<[u8]>) -> Result<Leadership, Error> {
        let leadership = self.thread.wait(self.election.campaign(value))??;
        Ok(Leadership::new(leadership, &self.thread))
    }

    /// [`Election::try_campaign`](crate::Election::try_campaign); blocks for no longer than it
    /// takes to ask.
    ///
    /// # Errors
    ///
    /// As [there](crate::Election::try_campaign). [`is_inside_runtime`](Error::is_inside_runtime):
    /// nothing was sent.
    pub fn try_campaign(&self, value: impl AsRef<[u8]>) -> Result<Option<Leadership>, Error> {
        let leadership = self.thread.wait(self.election.try_campaign(value))??;
        Ok(leadership.map(|leadership| Leadership::new(leadership, &self.thread)))
    }

    /// [`Election::campaign_within`](crate::Election::campaign_within); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::Election::campaign_within).
    /// [`is_inside_runtime`](Error::is_inside_runtime): nothing was sent.
    pub fn campaign_within(
        &self,
        value: impl AsRef<[u8]>,
        limit: Duration,
    ) -> Result<Option<Leadership>, Error> {
        let leadership = self.thread.wait(self.election.campaign_within(value, limit))??;
        Ok(leadership.map(|leadership| Leadership::new(leadership, &self.thread)))
    }

    /// [`Election::campaign_or_busy`](crate::Election::campaign_or_busy); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::Election::campaign_or_busy).
    /// [`is_inside_runtime`](Error::is_inside_runtime): nothing was sent.
    pub fn campaign_or_busy(
        &self,
        value: impl AsRef<[u8]>,
        limit: Duration,
    ) -> Result<Leadership, Error> {
        let leadership = self.thread.wait(self.election.campaign_or_busy(value, limit))??;
        Ok(Leadership::new(leadership, &self.thread))
    }

    /// [`Election::leader`](crate::Election::leader); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::Election::leader). [`is_inside_runtime`](Error::is_inside_runtime).
    pub fn leader(&self) -> Result<Option<Leader>, Error> {
        self.thread.wait(self.election.leader())?
    }

    /// [`Election::observe`](crate::Election::observe): an iterator that blocks until something has
    /// changed.
    pub fn observe(&self) -> Observer {
        Observer { observer: self.election.observe(), thread: Arc::clone(&self.thread) }
    }

    /// [`Election::inspect`](crate::Election::inspect); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::Election::inspect). [`is_inside_runtime`](Error::is_inside_runtime).
    pub fn inspect(&self) -> Result<Inspection, Error> {
        self.thread.wait(self.election.inspect())?
    }

    /// [`Election::force_release`](crate::Election::force_release); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::Election::force_release).
    /// [`is_inside_runtime`](Error::is_inside_runtime).
    pub fn force_release(&self) -> Result<bool, Error> {
        self.thread.wait(self.election.force_release())?
    }

    /// [`Election::force_release_hold`](crate::Election::force_release_hold); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::Election::force_release_hold).
    /// [`is_inside_runtime`](Error::is_inside_runtime).
    pub fn force_release_hold(&self, hold: &HoldId) -> Result<(), Error> {
        self.thread.wait(self.election.force_release_hold(hold))?
    }

    /// [`Election::force_clear`](crate::Election::force_clear); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::Election::force_clear). [`is_inside_runtime`](Error::is_inside_runtime).
    pub fn force_clear(&self) -> Result<bool, Error> {
        self.thread.wait(self.election.force_clear())?
    }
}

impl fmt::Debug for Election {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.election.fmt(f)
    }
}

/// [`quorate::Leadership`](crate::Leadership) for programs without async.
///
/// Dropping it resigns in the background: dropping never blocks and never fails.
#[must_use = "it resigns when it is dropped"]
pub struct Leadership {
    leadership: locks::Leadership,
    thread: Arc<ClientThread>,
}

impl Leadership {
    fn new(leadership: locks::Leadership, thread: &Arc<ClientThread>) -> Self {
        Self { leadership, thread: Arc::clone(thread) }
    }

    /// The election's name.
    pub fn name(&self) -> &str {
        self.leadership.name()
    }

    /// The hold, as it stands on the voters.
    pub fn hold(&self) -> &HoldId {
        self.leadership.hold()
    }

    /// [`Leadership::votes`](crate::Leadership::votes).
    pub fn votes(&self) -> usize {
        self.leadership.votes()
    }

    /// [`Leadership::token`](crate::Leadership::token).
    pub fn token(&self) -> Token {
        self.leadership.token()
    }

    /// Whether this client leads. Read from the clock at each call: long work asks before each of
    /// its steps.
    pub fn is_held(&self) -> bool {
        self.leadership.is_held()
    }

    /// The time for which this client leads if no renewal succeeds; zero once the lead is lost.
    pub fn remaining(&self) -> Duration {
        self.leadership.remaining()
    }

    /// Waits until the lead is lost, no longer than `limit`, and returns why it was lost; `None` if
    /// this client leads still.
    ///
    /// # Errors
    ///
    /// [`is_inside_runtime`](Error::is_inside_runtime) only.
    pub fn lost_within(&self, limit: Duration) -> Result<Option<Error>, Error> {
        let lost = self.leadership.lost();
        self.thread.wait(async move { tokio::time::timeout(limit, lost).await.ok() })
    }

    /// [`Leadership::proclaim`](crate::Leadership::proclaim); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::Leadership::proclaim). [`is_inside_runtime`](Error::is_inside_runtime).
    pub fn proclaim(&self, value: impl AsRef<[u8]>) -> Result<(), Error> {
        self.thread.wait(self.leadership.proclaim(value))?
    }

    /// [`Leadership::resign`](crate::Leadership::resign); blocks.
    ///
    /// # Errors
    ///
    /// As [there](crate::Leadership::resign). [`is_inside_runtime`](Error::is_inside_runtime): it
    /// resigns in the background.
    pub fn resign(self) -> Result<(), Error> {
        let Self { leadership, thread } = self;
        thread.wait(leadership.resign())?
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.leadership.fmt(f)
    }
}

/// [`quorate::Observer`](crate::Observer) for programs without async: an iterator whose `next`
/// blocks until something has changed. It ends when the client is closed. The only error of its
/// items is [`is_inside_runtime`](Error::is_inside_runtime).
///
/// # Examples
///
/// ```
/// # fn main() -> Result<(), quorate::Error> {
/// # let voters = quorate::embedded::voters(3);
/// # let quorum = quorate::Quorate::builder().embedded(&voters).connect_blocking()?;
/// use quorate::Observed;
///
/// let leadership = quorum.election("scheduler").campaign("10.0.0.1:80")?;
/// for observed in quorum.election("scheduler").observe() {
///     match observed? {
///         Observed::Leader(leader) => println!("{:?} leads", leader.text()),
///         Observed::NoLeader => println!("nobody leads"),
///         other => println!("it cannot be known: {other:?}"),
///     }
/// #   quorum.close()?;
/// }
/// # drop(leadership);
/// # Ok(())
/// # }
/// ```
#[must_use = "it does nothing until it is asked for the next"]
pub struct Observer {
    observer: locks::Observer,
    thread: Arc<ClientThread>,
}

impl Observer {
    /// Waits for the next change, no longer than `limit`; `None` if there was none, or if the
    /// client is closed.
    ///
    /// # Errors
    ///
    /// [`is_inside_runtime`](Error::is_inside_runtime) only.
    pub fn next_within(&mut self, limit: Duration) -> Result<Option<Observed>, Error> {
        let Self { observer, thread } = self;
        let next = async { tokio::time::timeout(limit, observer.next()).await };
        Ok(thread.wait(next)?.ok().flatten())
    }
}

impl Iterator for Observer {
    type Item = Result<Observed, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let Self { observer, thread } = self;
        thread.wait(observer.next()).transpose()
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.observer.fmt(f)
    }
}
