//! The election.

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use futures::{
    Stream, StreamExt,
    stream::{self, BoxStream},
};

use super::{
    LockView,
    admin::{inspect, is_locked},
    handle::{given_token, lock, taking},
};
use crate::{
    acquire::{Coordinator, ElectionWatch},
    hold::{Entry, LockRequest, Lost},
    kinds::{AnnouncedValue, ELECTION, LockRecord},
    proto::{Error, HoldId, Leader, LeaderValue, Token},
    signal::Signal,
};

lock! {
    /// An election: one of the candidates leads, and its value says where to find it.
    ///
    /// Made by [`Quorate::election`](crate::Quorate::election); a cheap value that says which
    /// election and how, and that sends nothing before a call. A candidate
    /// [campaigns](Self::campaign) with a value, its address for example. Everybody can ask
    /// [once](Self::leader) who leads, or [observe](Self::observe) it.
    ///
    /// Candidates come in the order of asking, as with a [fair
    /// mutex](crate::Mutex#the-fair-mutex), whose guarantees hold here too. A leader that resigns
    /// hands over at once. One that dies is replaced when its lease ends. An election is another
    /// lock than the mutex of the same name.
    ///
    /// # The value
    ///
    /// The voters store it with the hold of the leader, and delete it with the hold. It has at most
    /// 4096 bytes, text or not, and the leader can [replace](Leadership::proclaim) it. Everybody
    /// who may read the voters' data can read it.
    ///
    /// A service whose replicas take turns for as long as they run calls [`lead`](Self::lead).
    ///
    /// # What is not guaranteed
    ///
    /// An observed leader may have lost its lead by the time you call it. To reject a former
    /// leader, compare [tokens](Leader::token).
    #[must_use = "it does nothing until somebody campaigns or asks"]
    Election;

    /// The lease of a leader, renewed from a third of it on. It is also the longest time for which
    /// a dead leader keeps the next one from leading. Default: the client's.
    lease(lease: Duration);

    /// The longest time for which a candidate may lead before it has to campaign again, as
    /// [`Mutex::hold_at_most`](crate::Mutex::hold_at_most): so no program that is stuck leads for
    /// ever. Set it only if leaders resign in time by themselves, as every lead ends by it.
    hold_at_most(time: Duration);

    /// As [`Mutex::note`](crate::Mutex::note): what is said of the candidate and of the leader
    /// beside its value. It is the candidate's for as long as it waits and leads, and is not
    /// replaced.
    note(note: impl AsRef<str>);
}

impl Election {
    taking! {
        |self, value: V| self.candidacy(value.as_ref()) => Leadership where V: AsRef<[u8]>;
        /// Waits until this client leads, behind all candidates that came before.
        ///
        /// # Errors
        ///
        /// [`is_invalid`](Error::is_invalid): the value has more than 4096 bytes, or the name or
        /// the lease cannot be used; nothing was sent. [`is_no_quorum`](Error::is_no_quorum): no
        /// majority of the voters has answered for longer than the [quorum
        /// timeout](crate::Builder::quorum_timeout); each voter's cause is in it.
        /// [`is_closed`](Error::is_closed): the client was closed.
        ///
        /// # Cancel safety
        ///
        /// Dropping the future gives up the place in the queue, and undoes on all voters whatever
        /// was sent. In `select!` in a loop, keep the future: a new one has a new place, at the
        /// end.
        ///
        /// # Examples
        ///
        /// ```
        /// # #[tokio::main(flavor = "current_thread")]
        /// # async fn main() -> Result<(), quorate::Error> {
        /// # let voters = quorate::embedded::voters(3);
        /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
        /// let election = quorum.election("scheduler");
        /// let leadership = election.campaign("10.0.0.1:80").await?; // waits; then renewed
        /// let leader = election.leader().await?.expect("somebody leads");
        /// assert_eq!((leader.text(), leader.token()), (Some("10.0.0.1:80"), leadership.token()));
        /// leadership.resign().await?;
        ///
        /// // By what is to be done after an error:
        /// use quorate::ErrorKind;
        ///
        /// match election.campaign("10.0.0.1:80").await {
        ///     Ok(leadership) => leadership.resign().await?,
        ///     Err(error) => match error.kind() {
        ///         ErrorKind::NoQuorum => println!("campaign again: {error}"),
        ///         ErrorKind::Closed => println!("this program is about to end"),
        ///         _ => return Err(error), // Invalid: the value, the name or the lease
        ///     },
        /// }
        /// # Ok(())
        /// # }
        /// ```
        campaign;

        /// Leads if nobody leads and nobody waits to; `None` otherwise. It does not pass those who
        /// wait, and waits in no queue itself.
        ///
        /// # Errors
        ///
        /// As [`campaign`](Self::campaign); `is_no_quorum` and `is_overloaded` as
        /// [`Mutex::try_lock`](crate::Mutex::try_lock).
        ///
        /// # Cancel safety
        ///
        /// As [`campaign`](Self::campaign).
        try_campaign;

        /// As [`campaign`](Self::campaign), waiting no longer than `limit`; `None` if its turn had
        /// not come by then. Nothing is left behind in the queue.
        ///
        /// # Errors
        ///
        /// As [`campaign`](Self::campaign), but `is_no_quorum` only at the limit; `is_overloaded`
        /// as [`Mutex::lock_within`](crate::Mutex::lock_within).
        ///
        /// # Cancel safety
        ///
        /// As [`campaign`](Self::campaign).
        campaign_within;

        /// As [`campaign_within`](Self::campaign_within), but fails if its turn has not come. The
        /// error names the hold of the leader, and says when its lease would end.
        ///
        /// # Errors
        ///
        /// [`is_busy`](Error::is_busy): somebody leads, or others come first; see [`Error::holder`]
        /// and [`Error::lease_left`]. All others as [`campaign_within`](Self::campaign_within).
        ///
        /// # Cancel safety
        ///
        /// As [`campaign`](Self::campaign).
        campaign_or_busy;
    }

    fn candidacy(&self, value: &[u8]) -> Result<LockRequest, Error> {
        let announced = AnnouncedValue::of(LeaderValue::new(value)?);
        Ok(self.0.request_of(self.0.record(&ELECTION)?.announcing(&announced)))
    }

    /// Asks who leads. `None`: nobody.
    ///
    /// # Errors
    ///
    /// [`is_no_quorum`](Error::is_no_quorum): nobody can say. Too few voters answered, or they
    /// may have forgotten whom they voted for, or the candidate that has their votes has not
    /// confirmed that it leads; what each of them said is in the error.
    /// [`is_invalid`](Error::is_invalid): the name or the lease cannot be used.
    /// [`is_closed`](Error::is_closed): the client was closed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    pub fn leader(&self) -> impl Future<Output = Result<Option<Leader>, Error>> + Send + use<> {
        let (asked, coordinator) = (self.0.record(&ELECTION), Arc::clone(self.0.coordinator()));
        async move { coordinator.ask_who_leads(&asked?).await }
    }

    /// Follows who leads: a stream that begins with who leads now, and goes on with each change.
    ///
    /// It listens to the voters, and asks all of them when some of them say that something has
    /// changed, when messages may have been lost, when the lease of the leader would end, and by
    /// the [poll interval](crate::Builder::poll_interval). So it shows a change within a round
    /// trip, and misses no change that lasts. It never shows a leader whom no majority names, nor a
    /// candidate that has not won, and a value that was replaced never comes back.
    ///
    /// Nothing is sent before the stream is polled.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// use quorate::Observed;
    ///
    /// let election = quorum.election("scheduler");
    /// let mut observer = election.observe();
    /// assert!(matches!(observer.next().await, Some(Observed::NoLeader)));
    /// let leadership = election.campaign("10.0.0.1:80").await?;
    /// match observer.next().await {
    ///     Some(Observed::Leader(leader)) => assert_eq!(leader.text(), Some("10.0.0.1:80")),
    ///     other => panic!("{other:?}"),
    /// }
    /// leadership.resign().await?;
    /// assert!(matches!(observer.next().await, Some(Observed::NoLeader)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn observe(&self) -> Observer {
        let stream = match self.0.record(&ELECTION) {
            Ok(asked) => changes(Arc::clone(self.0.coordinator()), asked).boxed(),
            Err(error) => stream::iter([Observed::Unknown(error)]).boxed(),
        };
        Observer { name: self.0.name().to_owned(), stream: Mutex::new(stream) }
    }

    /// Whether a majority of the voters has given its vote, to a leader or to a candidate that has
    /// just won, as [`Mutex::is_locked`](crate::Mutex::is_locked).
    ///
    /// # Errors
    ///
    /// As [there](crate::Mutex::is_locked).
    pub fn is_locked(&self) -> impl Future<Output = Result<bool, Error>> + Send + use<> {
        is_locked(&self.0, &ELECTION)
    }

    /// Asks every voter who leads and who waits, as [`Mutex::inspect`](crate::Mutex::inspect) does.
    ///
    /// # Errors
    ///
    /// As [`Mutex::inspect`](crate::Mutex::inspect).
    pub fn inspect(&self) -> impl Future<Output = Result<LockView, Error>> + Send + use<> {
        inspect(&self.0, &ELECTION)
    }
}

// The guard of a leader.

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
pub struct Leadership(pub(super) Entry, pub(super) Signal<bool>);

impl Leadership {
    fn new(entry: Entry) -> Self {
        // This renewal confirms that it leads. Only the winner knows that it has won, and until a
        // majority stores its confirmation, observers name no leader (guarantee 11). Nobody waits
        // for it: a confirmation that is lost goes with the next renewal.
        entry.renew_soon();
        Self(entry, Signal::new(false))
    }

    /// The election's name.
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// The hold, as voters store it and as [`Leader::hold`](crate::Leader::hold) shows it.
    pub fn hold(&self) -> &HoldId {
        self.0.id()
    }

    /// How many voters have given it their votes, as of the last renewal.
    pub fn votes(&self) -> usize {
        self.0.votes()
    }

    /// The fencing token: higher than that of every leader before. Show it to what only the leader
    /// may write to, and let that refuse lower ones.
    pub fn token(&self) -> Token {
        given_token(&self.0)
    }

    /// Whether this client leads. Read from the clock at each call: never true at or after the
    /// deadline, whatever the network did meanwhile.
    pub fn is_held(&self) -> bool {
        self.0.is_held()
    }

    /// The time for which this client leads if no renewal succeeds; zero once the lead is lost.
    pub fn remaining(&self) -> Duration {
        self.0.remaining()
    }

    /// Completes when the lead is lost, with the reason, as
    /// [`MutexGuard::lost`](crate::MutexGuard::lost) does.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect on the lead.
    pub fn lost(&self) -> Lost {
        self.0.lost()
    }

    /// Runs `work` as long as this client leads: drops it the moment the lead is lost.
    ///
    /// Tasks that `work` has spawned go on, and what it has sent elsewhere stays sent.
    ///
    /// # Errors
    ///
    /// [`is_lost`](Error::is_lost): the lead was lost and `work` was dropped unfinished. Or `work`
    /// blocked its thread, and has ended after the loss: then what it returned is dropped.
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
        self.0.while_held(work).await
    }

    /// [`while_leader`](Self::while_leader) for work that can fail: its error and the loss of the
    /// lead are one result.
    ///
    /// # Errors
    ///
    /// The error of `work`; or, made into its type, [`is_lost`](Error::is_lost).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `work`; the client goes on leading.
    pub async fn try_while_leader<T, E: From<Error>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        self.0.try_while_held(work).await
    }

    /// Replaces the value. Returns when a majority of the voters stores it: from then on everybody
    /// who asks sees it. Observers may see it a little sooner.
    ///
    /// # Errors
    ///
    /// [`is_invalid`](Error::is_invalid): the value has more than 4096 bytes; the old one stays.
    /// [`is_lost`](Error::is_lost): this client does not lead any more.
    /// [`is_not_entered`](Error::is_not_entered): no majority answered in time. The client leads as
    /// before, and its renewals carry the new value.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses only the answer, once it has been polled: renewals carry the new
    /// value.
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
        let value = LeaderValue::new(value.as_ref())?;
        let announced = self.0.announced();
        self.0.change_and_renew(|| announced.change(value), "a new value").await
    }

    /// Gives the lead to the next candidate, at once. Returns when a majority has confirmed; slow
    /// voters get the release in the background.
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
        self.0.release().await
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

// A stream of who leads.

/// Who leads an [`Election`](crate::Election), by what the voters say together.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Observed {
    /// A majority names this leader, which has confirmed that it won.
    Leader(Leader),
    /// Nobody leads: no candidate can have a majority.
    NoLeader,
    /// Nobody can say whether anybody leads: too few voters answer, or those that do may have
    /// forgotten whom they voted for, or the candidate that has their votes has not confirmed that
    /// it leads. The error has what each of them said.
    Unknown(Error),
}

/// A stream of who leads an [`Election`](crate::Election): first who leads now, and then each
/// change.
///
/// Made by [`Election::observe`](crate::Election::observe). It ends when the client is closed, or
/// with an error as [`Observed::Unknown`] if the election cannot be asked for at all. It listens to
/// the voters from when it is first polled until it is dropped. Of changes that come faster than it
/// is polled it shows only the last.
#[must_use = "it does nothing until it is polled"]
pub struct Observer {
    name: String,
    /// In a mutex that nobody waits for.
    // `BoxStream` is not `Sync`, and a public type should be.
    stream: Mutex<BoxStream<'static, Observed>>,
}

impl Observer {
    /// The next change, without a need for `StreamExt`; `None` once the client is closed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: the next call goes on.
    pub async fn next(&mut self) -> Option<Observed> {
        self.changes().next().await
    }

    fn changes(&mut self) -> &mut BoxStream<'static, Observed> {
        self.stream.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

fn changes(
    coordinator: Arc<Coordinator>,
    asked: LockRecord,
) -> impl Stream<Item = Observed> + Send {
    // In a future, as a stream that nobody polls must not subscribe to anything.
    let begin = async move { ElectionWatch::start(&coordinator, asked) };
    stream::once(begin).flat_map(|watch| {
        stream::unfold(watch, async |mut watch| {
            let observed = match watch.next().await? {
                Ok(Some(leader)) => Observed::Leader(leader),
                Ok(None) => Observed::NoLeader,
                Err(error) => Observed::Unknown(error),
            };
            Some((observed, watch))
        })
    })
}

impl Stream for Observer {
    type Item = Observed;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Observed>> {
        self.changes().poll_next_unpin(context)
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").field("name", &self.name).finish_non_exhaustive()
    }
}
