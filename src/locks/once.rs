//! Work that is done once for each firing of a job.

use std::{
    fmt,
    ops::ControlFlow,
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::{
    FiringDone, LockHandle, LockParts, LockView,
    admin::inspect,
    handle::{given_token, wait},
};
use crate::{
    hold::{Entry, LockRequest, Lost},
    kinds::ONCE,
    log,
    proto::{Done, DoneSurvey, Error, HoldId, Rounded, Token},
};

/// One run that a job is to have. It is a number that grows from one run to the next.
///
/// `from` makes one of a number alone, such as that of a build. A firing that is made of a time is
/// compared with the voters' clocks: it is refused if the time is a minute ahead of them, or so far
/// back that voters may have [forgotten](Once::keep) the firing. All programs that start one job
/// should make its firings in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Firing {
    number: u64,
    /// Since 1970.
    at: Option<Duration>,
}

impl Firing {
    /// The run of this time, as a scheduler gives it. Its number is the whole seconds since 1970.
    pub fn at(time: SystemTime) -> Self {
        let at = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { number: at.as_secs(), at: Some(at) }
    }

    /// The latest run before `now` of a job that runs every `period`, beginning `offset` after
    /// 1970: its number is `(now - offset) / period`, rounded down.
    ///
    /// `now` is the own clock at the start, before anything is waited for. Machines whose timers
    /// fire late, by less than a period, name the same run; but not around the edge of a period,
    /// for as long as their clocks are apart. So let timers fire in the middle of a period: for a
    /// job at two each night an offset of an hour or of 14 does.
    ///
    /// # Panics
    ///
    /// If `period` is zero.
    pub fn every(period: Duration, offset: Duration, now: SystemTime) -> Self {
        let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let (now_nanos, period) = (now.saturating_sub(offset).as_nanos(), period.as_nanos());
        let whole = |number: u128| u64::try_from(number).unwrap_or(u64::MAX);
        let since = Duration::from_nanos(whole(now_nanos % period));
        Self { number: whole(now_nanos / period), at: Some(now.saturating_sub(since)) }
    }

    /// The number.
    pub fn number(&self) -> u64 {
        self.number
    }
}

impl From<u64> for Firing {
    fn from(number: u64) -> Self {
        Self { number, at: None }
    }
}

/// What became of a firing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnceOutcome<T> {
    /// The work was done here.
    Ran {
        /// What the work returned.
        value: T,
        /// A majority of the voters stores that it is done. If not, it may be done again.
        marked: bool,
    },
    /// This firing is done, or a later one.
    Passed {
        /// The latest firing that is done.
        latest: u64,
        /// When that was, by the clock of a voter.
        when: SystemTime,
    },
}

impl<T> From<FiringDone> for OnceOutcome<T> {
    fn from(FiringDone { firing: latest, when, .. }: FiringDone) -> Self {
        Self::Passed { latest, when }
    }
}

/// A job that several machines start, and one of them does: a mutex that remembers the latest
/// firing that is done.
///
/// Made by [`Quorate::once`](crate::Quorate::once). Another lock than the mutex of its name.
///
/// A caller that comes while another one is at work waits for it: to take over if the other fails
/// or dies, and to pass if the other has done the work. Work that fails is not done. A caller that
/// comes later passes, for as long as voters [remember](Self::keep) the firing.
///
/// # What is guaranteed
///
/// The work is done **at least once**. It is done **exactly once** unless a holder dies or is lost
/// between its effect and the mark, a holder goes on after its loss, or voters forget. The *mark*
/// is the latest firing that is done, as voters store it.
///
/// A majority has the mark before the lock is released. A voter stores it only for a hold that has
/// its vote, so a lost holder stores nothing there. A caller passes if one voter has its firing's
/// mark. It works only if a majority does not have it, without voters in
/// [quarantine](crate::Quarantine).
///
/// So no majority of the voters may lose its data within [`keep`](Self::keep), nor a smaller number
/// if fewer than all have stored the firing: let servers write to disk. Each caller stores the
/// latest firing again on voters that lack it.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), quorate::Error> {
/// # async fn make_report(_: quorate::Token) -> Result<u32, quorate::Error> { Ok(42) }
/// # let voters = quorate::embedded::voters(3);
/// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
/// use quorate::OnceOutcome;
///
/// // On each machine, for each build. For a job of a timer: `Firing::every(..)`.
/// let build = 4711;
/// let outcome = quorum.once("report").run(build, make_report).await?;
/// assert_eq!(outcome, OnceOutcome::Ran { value: 42, marked: true });
/// let late = quorum.once("report").run(build, make_report).await?;
/// assert!(matches!(late, OnceOutcome::Passed { .. }));
/// # Ok(())
/// # }
/// ```
#[must_use = "it does nothing until it is run"]
#[derive(Clone)]
pub struct Once {
    handle: LockHandle,
    keep: Duration,
    is_noted_before: bool,
}

/// How far ahead of the voters' clocks the time of a firing may be.
// A firing that is done closes the job for all earlier ones: by a machine whose clock is a year
// ahead, for a year.
const AHEAD: Duration = Duration::from_secs(60);

/// The longest time for which voters can remember a firing.
const LONGEST: Duration = Duration::from_secs(400 * 24 * 3600);

impl Once {
    pub(crate) fn new(parts: &Arc<LockParts>, name: &str) -> Self {
        let keep = Duration::from_secs(24 * 3600);
        Self { handle: LockHandle::new(parts, name), keep, is_noted_before: false }
    }

    /// For how long voters remember the latest firing after it was done. A day unless set; from the
    /// [longest lease](crate::Builder::longest_lease) to 400 days.
    pub fn keep(self, time: Duration) -> Self {
        Self { keep: time, ..self }
    }

    /// The lease, as [`Mutex::lease`](crate::Mutex::lease).
    pub fn lease(self, lease: Duration) -> Self {
        Self { handle: self.handle.lease(lease), ..self }
    }

    /// The longest time that the work may take, as
    /// [`Mutex::hold_at_most`](crate::Mutex::hold_at_most).
    pub fn hold_at_most(self, time: Duration) -> Self {
        Self { handle: self.handle.hold_at_most(time), ..self }
    }

    /// As [`Mutex::note`](crate::Mutex::note).
    pub fn note(self, note: impl AsRef<str>) -> Self {
        Self { handle: self.handle.note(note), ..self }
    }

    /// Stores that the firing is done before the work begins: work that fails or is cut off is not
    /// done again.
    pub fn at_most_once(self) -> Self {
        Self { is_noted_before: true, ..self }
    }

    /// Waits for the lock, does the work unless the firing is done, stores that it is, and gives
    /// the lock back. The work is given its [`Token`], and is dropped the moment the lock is lost.
    ///
    /// # Errors
    ///
    /// That of the work, which is not done then: its lock is given back in the background. Or, made
    /// into one of those:
    /// [`is_lost`](Error::is_lost), as [`Mutex::run`](crate::Mutex::run); and as
    /// [`enter`](Self::enter).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work, and releases the lock in the background.
    pub fn run<I: Into<Firing>, T, E, F, W>(
        &self,
        firing: I,
        work: F,
    ) -> impl Future<Output = Result<OnceOutcome<T>, E>> + use<I, T, E, F, W>
    where
        E: From<Error>,
        F: FnOnce(Token) -> W,
        W: Future<Output = Result<T, E>>,
    {
        let (this, firing) = (self.clone(), firing.into());
        async move {
            let guard = match this.turn(firing, None).await? {
                ControlFlow::Continue(guard) => guard,
                ControlFlow::Break(done) => return Ok(done.into()),
            };
            // Work that fails drops the guard: the firing is not done, and the next caller may do
            // it.
            let value = guard.entry.try_while_held(work(guard.token())).await?;
            // The work is done, whatever becomes of the lock from now on. An error here would hide
            // its result, so the outcome says whether the mark is stored.
            Ok(OnceOutcome::Ran { value, marked: guard.done().await.is_ok() })
        }
    }

    /// Waits for the lock and returns its guard. Work under the guard, and end with
    /// [`OnceGuard::done`]. `None`: this firing is done, or a later one.
    ///
    /// # Errors
    ///
    /// As [`Mutex::lock`](crate::Mutex::lock). [`is_invalid`](Error::is_invalid): also if `keep`
    /// cannot be used, if the number of the firing is 2⁵³ or more, or if its time is a minute ahead
    /// of the voters' clocks or longer ago than `keep`. [`is_not_entered`](Error::is_not_entered):
    /// the lock was given, and no majority has said in time what is done. It is released.
    ///
    /// # Cancel safety
    ///
    /// As [`Mutex::lock`](crate::Mutex::lock).
    pub fn enter<I: Into<Firing>>(
        &self,
        firing: I,
    ) -> impl Future<Output = Result<Option<OnceGuard>, Error>> + Send + use<I> {
        let turn = self.clone().turn(firing.into(), None);
        async { Ok(turn.await?.continue_value()) }
    }

    /// As [`enter`](Self::enter), waiting no longer than `limit`: then it fails with who has the
    /// lock, as [`Mutex::lock_or_busy`](crate::Mutex::lock_or_busy) does.
    ///
    /// # Errors
    ///
    /// [`is_busy`](Error::is_busy): another is at work. All others as [`enter`](Self::enter).
    ///
    /// # Cancel safety
    ///
    /// As [`Mutex::lock`](crate::Mutex::lock).
    pub fn enter_or_busy<I: Into<Firing>>(
        &self,
        firing: I,
        limit: Duration,
    ) -> impl Future<Output = Result<Option<OnceGuard>, Error>> + Send + use<I> {
        let turn = self.clone().turn(firing.into(), Some(limit));
        async { Ok(turn.await?.continue_value()) }
    }

    /// Asks every voter who is at work, who waits, and which firing is done, as
    /// [`Mutex::inspect`](crate::Mutex::inspect) does.
    ///
    /// # Errors
    ///
    /// As [`Mutex::inspect`](crate::Mutex::inspect).
    pub fn inspect(&self) -> impl Future<Output = Result<LockView, Error>> + Send + use<> {
        inspect(&self.handle, &ONCE)
    }

    fn request(&self, firing: Firing) -> Result<LockRequest, Error> {
        let least = self.handle.settings().longest_lease();
        if self.keep < least || self.keep > LONGEST {
            let (keep, least) = (Rounded(self.keep), Rounded(least));
            let bounds = format!("the longest lease of {least} and 400 days");
            return Err(Error::invalid(format!("`keep` of {keep} is not between {bounds}")));
        }
        // Lua has numbers of 53 bits: above that, two firings could be one.
        if firing.number >= Done::MOST {
            let what = format!("the firing {} is 2^53 or more", firing.number);
            return Err(Error::invalid(what));
        }
        self.handle.request(&ONCE)
    }

    /// The guard if the firing is to be done here; otherwise the firing that is done. In that case,
    /// and after an error, the lock is given back in the background.
    pub(crate) async fn turn(
        self,
        firing: Firing,
        limit: Option<Duration>,
    ) -> Result<ControlFlow<FiringDone, OnceGuard>, Error> {
        let request = self.request(firing);
        let entry = match limit {
            None => wait(request, |entry| entry).await?,
            Some(limit) => request?.enter_or_busy(self.handle.within(limit)).await?,
        };
        if let Some(done) = self.look(firing, &entry).await? {
            let (lock, latest) = (entry.name().to_owned(), done.firing);
            log::report_here(move || {
                tracing::info!(lock, firing = firing.number, latest, "firing passed");
            });
            return Ok(ControlFlow::Break(done.into()));
        }
        let memory_ms = u64::try_from(self.keep.as_millis()).unwrap_or(u64::MAX);
        let done = Done { firing: firing.number, when_ms: None, memory_ms };
        if self.is_noted_before {
            entry.note_done(done).await?;
        }
        let to_note = (!self.is_noted_before).then_some(done);
        Ok(ControlFlow::Continue(OnceGuard { entry, to_note }))
    }

    /// The latest firing that is done, if it is this one or a later one.
    async fn look(&self, firing: Firing, entry: &Entry) -> Result<Option<Done>, Error> {
        let survey = entry.ask_what_is_done().await?;
        self.check_time(firing, &survey)?;
        let Some(latest) = survey.latest() else { return Ok(None) };
        if survey.is_missing(latest.firing) {
            // Nobody goes on before a majority stores it again. Voters that lose their data one
            // after the other would otherwise forget it at last
            // (`voters_that_lose_their_data_one_after_the_other_forget_no_firing`).
            entry.note_done(latest).await?;
        }
        Ok(Some(latest).filter(|latest| latest.firing >= firing.number))
    }

    /// Fails if the time of the firing is too far from the voters' clocks.
    fn check_time(&self, firing: Firing, survey: &DoneSurvey) -> Result<(), Error> {
        // By the voters' clocks, as these decide when a mark is forgotten: a machine with a wrong
        // clock must not do again what is done, nor close the job for others.
        let Some((at, clock)) = firing.at.zip(survey.clock()) else { return Ok(()) };
        let number = firing.number;
        let what = if at > clock + AHEAD {
            let ahead = Rounded(at.saturating_sub(clock));
            format!("the firing {number} is {ahead} ahead of the voters' clocks")
        } else if clock > at + self.keep {
            let (ago, keep) = (Rounded(clock.saturating_sub(at)), Rounded(self.keep));
            format!("the firing {number} was {ago} ago, and voters remember one for {keep}")
        } else {
            return Ok(());
        };
        Err(Error::invalid(what))
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle.show("Once", f)
    }
}

/// Proof that this client is to do a firing of a [`Once`], for as long as
/// [`is_held`](Self::is_held) says so. Dropping it releases the lock in the background, and the
/// firing is not done.
#[must_use = "the lock is released when the guard is dropped"]
#[derive(Debug)]
pub struct OnceGuard {
    entry: Entry,
    /// What is to be stored when the work is done.
    to_note: Option<Done>,
}

impl OnceGuard {
    /// The hold, as voters store it and as the errors of other clients name it.
    pub fn hold(&self) -> &HoldId {
        self.entry.id()
    }

    /// The fencing token, as [`MutexGuard::token`](crate::MutexGuard::token).
    pub fn token(&self) -> Token {
        given_token(&self.entry)
    }

    /// Whether the lock may still be relied on, as
    /// [`MutexGuard::is_held`](crate::MutexGuard::is_held).
    pub fn is_held(&self) -> bool {
        self.entry.is_held()
    }

    /// The time for which the lock may be relied on if no renewal succeeds; zero once it is lost.
    pub fn remaining(&self) -> Duration {
        self.entry.remaining()
    }

    /// Completes when the lock is lost, as [`MutexGuard::lost`](crate::MutexGuard::lost).
    pub fn lost(&self) -> Lost {
        self.entry.lost()
    }

    /// The firing is done: returns when a majority of the voters stores that, and then gives the
    /// lock back.
    ///
    /// # Errors
    ///
    /// [`is_lost`](Error::is_lost): the lock had been lost before, or was meanwhile.
    /// [`is_not_entered`](Error::is_not_entered): no majority has confirmed it for a lease, nor for
    /// the [quorum timeout](crate::Builder::quorum_timeout), though the lock was renewed. After
    /// both the firing may be done again, and another may be at it already.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future releases the lock; voters may have stored it or not.
    pub async fn done(self) -> Result<(), Error> {
        let Self { entry, to_note } = self;
        let early = crate::mutant!("released_before_it_is_noted");
        let noted = match to_note {
            Some(_) if early => {
                entry.release().await?;
                return Ok(());
            }
            Some(done) => entry.note_work(done).await,
            None => Ok(()),
        };
        // Whether the firing is stored is the answer. An unconfirmed release only lets the next
        // caller wait for the lease.
        let _ = entry.release().await;
        noted
    }

    /// Gives the lock back. The firing is not done, and the next one may do it; after
    /// [`at_most_once`](Once::at_most_once) it is.
    ///
    /// # Errors
    ///
    /// As [`MutexGuard::release`](crate::MutexGuard::release).
    ///
    /// # Cancel safety
    ///
    /// As [`MutexGuard::release`](crate::MutexGuard::release).
    pub async fn release(self) -> Result<(), Error> {
        self.entry.release().await
    }
}
