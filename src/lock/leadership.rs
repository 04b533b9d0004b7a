//! The guard of a leader.

use std::{fmt, sync::Arc, time::Duration};

use super::election_record::Speech;
use crate::{
    hold::{Entry, Lost},
    words::{Error, HoldId, LeaderValue, Token},
};

/// Proof that this client leads an [`Election`](crate::Election), for as long as
/// [`is_held`](Self::is_held) says so.
///
/// It is renewed in the background. Dropping it resigns in the background: dropping never blocks
/// and never fails. [`resign`](Self::resign) does the same and says whether it worked.
///
/// Followers cannot know of a loss in advance. So work that only the leader may do
/// belongs inside [`while_leader`](Self::while_leader), and what it writes should carry the
/// [`token`](Self::token).
#[must_use = "it resigns when it is dropped"]
pub struct Leadership {
    entry: Entry,
    token: Token,
    speech: Arc<Speech>,
}

impl Leadership {
    pub(super) fn new(entry: Entry, speech: Arc<Speech>) -> Self {
        let token = entry.token().expect("every leader has one");
        // Where voters gave it other numbers, nobody else can know which one it is.
        entry.tell_soon();
        Self { entry, token, speech }
    }

    /// The election's name.
    pub fn name(&self) -> &str {
        self.entry.name()
    }

    /// The hold, as it stands on the voters and as [`Leader::hold`](crate::Leader::hold) shows it.
    pub fn hold(&self) -> &HoldId {
        self.entry.id()
    }

    /// How many voters are known to have given it their votes, as of the last renewal.
    pub fn votes(&self) -> usize {
        self.entry.votes()
    }

    /// The fencing token: higher than that of every leader before. Show it to what only the leader
    /// may write to, and let that refuse whoever comes with a lower one.
    pub fn token(&self) -> Token {
        self.token
    }

    /// Whether this client leads. Read from the clock at each call: never true at or after the
    /// deadline, whatever the network did meanwhile.
    pub fn is_held(&self) -> bool {
        self.entry.is_held()
    }

    /// The time for which this client leads if no renewal succeeds; zero once the lead is lost.
    pub fn remaining(&self) -> Duration {
        self.entry.remaining()
    }

    /// Completes when the lead is lost, with the reason, as
    /// [`MutexGuard::lost`](crate::MutexGuard::lost) does.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect on the lead.
    pub fn lost(&self) -> Lost {
        self.entry.lost()
    }

    /// Runs `work` as long as this client leads: drops it the moment the lead is lost.
    ///
    /// What `work` has spawned, or has already sent elsewhere, is not called back.
    ///
    /// # Errors
    ///
    /// [`is_lost`](Error::is_lost): the lead was lost and `work` was dropped unfinished.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `work`; the client goes on leading.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// let leadership = quorum.election("scheduler").campaign("10.0.0.1:80").await?;
    /// let planned = leadership.while_leader(async { 20 + 22 }).await?;
    /// assert_eq!(planned, 42);
    /// leadership.resign().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn while_leader<F: Future>(&self, work: F) -> Result<F::Output, Error> {
        self.entry.while_held(work).await
    }

    /// [`while_leader`](Self::while_leader) for work that can fail: its error and the loss of the
    /// lead are one result.
    ///
    /// # Errors
    ///
    /// That of `work`; or, made into one of those, [`is_lost`](Error::is_lost).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `work`; the client goes on leading.
    pub async fn try_while_leader<T, E: From<Error>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        self.entry.while_held(work).await?
    }

    /// Replaces the value. Returns when a majority of the voters stores it: from then on everybody
    /// who asks sees it. Observers may see it a little sooner.
    ///
    /// # Errors
    ///
    /// [`is_invalid`](Error::is_invalid): the value has more than 4096 bytes; the old one stands.
    /// [`is_lost`](Error::is_lost): this client does not lead any more.
    /// [`is_not_entered`](Error::is_not_entered): no majority answered in time. The client leads as
    /// before, and its renewals go on telling the new value.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses only the answer, once it has been polled: renewals go on telling
    /// the new value.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// let election = quorum.election("scheduler");
    /// let leadership = election.campaign("starting").await?;
    /// leadership.proclaim("10.0.0.1:80").await?;
    /// let leader = election.leader().await?.expect("it was told to a majority");
    /// assert_eq!(leader.text(), Some("10.0.0.1:80"));
    /// # leadership.resign().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn proclaim(&self, value: impl AsRef<[u8]>) -> Result<(), Error> {
        self.speech.change(LeaderValue::new(value.as_ref())?);
        self.entry.tell("a new value").await
    }

    /// Gives the lead to the next candidate, at once. Returns when a majority has confirmed; slow
    /// voters are told in the background.
    ///
    /// # Errors
    ///
    /// [`is_lost`](Error::is_lost): the lead had been lost before; nothing of the next leader's was
    /// touched. [`is_unconfirmed`](Error::is_unconfirmed): no majority confirmed in time; it goes
    /// on in the background, and the lead is free when the lease ends at the latest.
    ///
    /// # Cancel safety
    ///
    /// It is sent when this is first polled; dropping the future afterwards loses only the answer.
    /// Dropped before, the `Leadership` is dropped: that resigns as well.
    pub async fn resign(self) -> Result<(), Error> {
        self.entry.release().await
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leadership")
            .field("name", &self.name())
            .field("hold", self.hold())
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}
