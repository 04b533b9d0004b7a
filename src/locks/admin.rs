//! Questions about a lock of any kind that need no hold of it; and how operators end holds by
//! force.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures::future::try_join_all;

use super::{
    LockParts,
    handle::LockHandle,
    view::{FiringDone, Holder, LockState, LockView, VoterView},
};
use crate::{
    kinds::{ELECTION, FAIR_MUTEX, Kind, LockRecord, ONCE, SEMAPHORE, WRITE, kind_of},
    proto::{self, Cause, Error, FoundLock, HoldId, LockKind, Shard, Verdict, VoterReport},
    scripts::{Answer, LockSeen},
    settings::Settings,
    voter::{Call, KeySearch, KeysFound, ONLY, Outcome},
};

/// How long a voter may take to name its locks.
// It looks at all of its keys, in many steps, so that nobody else waits for it.
const PATIENCE: Duration = Duration::from_secs(30);

/// Looks at all locks of a client's voters, and ends holds of any client by force: for operators
/// and tools.
///
/// Made by [`Quorate::admin`](crate::Quorate::admin), or for locks of Redisson by
/// [`Redisson::admin`](crate::Redisson::admin). Each call names a lock by its kind and its name. A
/// fair mutex is the mutex of its name.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), quorate::Error> {
/// # let voters = quorate::embedded::voters(3);
/// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
/// use quorate::LockKind;
///
/// let guard = quorum.mutex("invoice:42").lock().await?;
/// let admin = quorum.admin();
/// for found in admin.find("invoice:*", 100).await.locks {
///     let seen = admin.look(found.kind, &found.name).await?;
///     for held in &seen.holders {
///         println!("{} is held by {} for {:?} more", found.name, held.hold, held.ttl);
///     }
/// }
/// // Its holder is stuck, and its work can be done again.
/// admin.end(LockKind::Mutex, "invoice:42", guard.hold()).await?;
/// let next = quorum.mutex("invoice:42").lock().await?;
/// let error = admin.end(LockKind::Mutex, "invoice:42", guard.hold()).await.unwrap_err();
/// assert!(error.is_not_holding() && next.is_held());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Admin {
    parts: Arc<LockParts>,
}

/// The locks that were found on the voters, as [`Admin::find`] found them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct FoundLocks {
    /// Each lock once, by name.
    pub locks: Vec<FoundLock>,
    /// False if the voters that answered know more locks than `limit`.
    pub is_complete: bool,
    /// Voters that could not be asked, and why.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::proto::texts"))]
    pub missing: Vec<VoterReport>,
}

impl Admin {
    pub(crate) fn new(parts: &Arc<LockParts>) -> Self {
        Self { parts: Arc::clone(parts) }
    }

    /// Asks every voter who holds a lock and who waits for it. Once a majority has answered, the
    /// others have as long again as that took, or as they usually take, 100 ms at least.
    ///
    /// Where more than 256 permits of a semaphore are taken, voters are asked for 256 at a time,
    /// and what has changed meanwhile may be missing.
    ///
    /// # Errors
    ///
    /// [`is_no_quorum`](Error::is_no_quorum): fewer than a majority answered.
    /// [`is_invalid`](Error::is_invalid): the name cannot be used, or there are no such locks of
    /// Redisson. [`is_closed`](Error::is_closed): the client was closed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    pub fn look(
        &self,
        kind: LockKind,
        name: &str,
    ) -> impl Future<Output = Result<LockView, Error>> + Send + use<> {
        inspect(&LockHandle::new(&self.parts, name), kind_to_look_at(kind))
    }

    /// Looks for locks that somebody holds or waits for, on all voters. Every server is asked for
    /// all of its keys, by `SCAN`. This needs the right `+scan`; nothing else does.
    ///
    /// `names` is a pattern as `SCAN` takes it: `*` finds all locks, `invoice:*` those whose names
    /// begin so. Embedded voters know no signs but a `*` at the end. At most `limit` locks are
    /// found; none of [Redisson](crate::Redisson), whose names have nothing in common.
    ///
    /// What is found may have been released since: [look](Self::look) at it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// let guard = quorum.mutex("invoice:42").lock().await?;
    /// let found = quorum.admin().find("invoice:*", 100).await;
    /// assert_eq!(found.locks[0].name, "invoice:42");
    /// assert!(found.is_complete && found.missing.is_empty());
    /// # guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn find(
        &self,
        names: &str,
        limit: usize,
    ) -> impl Future<Output = FoundLocks> + Send + use<> {
        self.clone().found(kind_of, names.into(), limit)
    }

    async fn found(
        self,
        kind_of: fn(&str) -> Option<LockKind>,
        names: Arc<str>,
        limit: usize,
    ) -> FoundLocks {
        let mut found = FoundLocks { locks: Vec::new(), is_complete: false, missing: Vec::new() };
        // The names of another library's locks have nothing in common that could be searched for.
        if self.parts.dialect.is_some() {
            return found;
        }
        let coordinator = &self.parts.coordinator;
        let (clock, panel) = (coordinator.clock(), coordinator.panel());
        let keys = coordinator.settings().keys.clone();
        let search = KeySearch { keys, kind_of, names, limit };
        // All are asked before the first answer is awaited: together they take as long as the
        // slowest.
        let asked: Vec<_> = panel.voters.iter().map(|voter| voter.search(search.clone())).collect();
        let due = clock.now() + PATIENCE;
        let (mut locks, mut is_complete) = (BTreeSet::new(), true);
        for (at, (voter, asked)) in panel.voters.iter().zip(asked).enumerate() {
            let answer = clock.in_time(due, asked).await;
            match answer.unwrap_or(Err(Cause::TimedOut(PATIENCE))) {
                Ok(KeysFound { locks: more, is_complete: all }) => {
                    locks.extend(more);
                    is_complete &= all;
                }
                Err(cause) => {
                    let report = VoterReport::new(&**voter.label(), Verdict::Unknown(cause));
                    found.missing.push(VoterReport { side: panel.quorum.side(at), ..report });
                }
            }
        }
        found.is_complete = is_complete && locks.len() <= limit;
        found.locks = locks.into_iter().take(limit).collect();
        found
    }

    /// Ends one hold of any client by force, and wakes the next waiter. All other holds are left
    /// alone. Says how many voters have confirmed it: a majority.
    ///
    /// The holder learns at its next renewal that the lock is lost; with a fixed lease, which is
    /// not renewed, at its deadline; and in any case at its next call that asks the voters. Each of
    /// its calls then says that it was ended by force. Until then it believes to hold the lock, so
    /// this is for operators who know that it is gone or stuck. For 50 ms the tasks of its client
    /// can also hand a mutex on that was ended.
    ///
    /// # Errors
    ///
    /// [`is_not_holding`](Error::is_not_holding): the hold has the vote of no voter; what each
    /// voter says is in it. [`is_no_quorum`](Error::is_no_quorum): fewer than a majority answered;
    /// call again. All others as [`look`](Self::look).
    ///
    /// # Cancel safety
    ///
    /// Dropped half way, the hold may have ended or not; calling again finishes it.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// use quorate::{ErrorKind, LockKind};
    ///
    /// let guard = quorum.mutex("invoice:42").lock().await?;
    /// match quorum.admin().end(LockKind::Mutex, "invoice:42", guard.hold()).await {
    ///     Ok(voters) => println!("ended on {voters} voters"),
    ///     Err(error) => match error.kind() {
    ///         ErrorKind::NotHolding => println!("it has ended by itself: {error}"),
    ///         ErrorKind::NoQuorum => println!("call again: {error}"),
    ///         _ => return Err(error), // Invalid: the name; Closed
    ///     },
    /// }
    /// let error = guard.release().await.unwrap_err();
    /// assert!(error.is_lost() && error.to_string().contains("ended by force"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn end(
        &self,
        kind: LockKind,
        name: &str,
        hold: &HoldId,
    ) -> impl Future<Output = Result<usize, Error>> + Send + use<> {
        let (lock, hold) = (self.lock(kind, name), hold.clone());
        async move {
            let (handle, record) = lock?;
            // It must be held somewhere: a mark for a hold that nobody has would stay on all voters
            // for a lease, and the caller would take a typing error for an ended hold.
            let seen = LockView::new(handle.name(), kind, ask_all(&handle, &record).await?);
            let Some(held) = seen.all_holders().into_iter().find(|held| held.hold == hold) else {
                let kind = proto::Kind::NotHolding { lock: handle.name().into(), hold };
                return Err(Error::new(kind, seen.report()));
            };
            end(&handle, &record, &held).await
        }
    }

    /// Ends by force all holds of a lock, of any client: each hold with all its entries,
    /// all readers, all permits, and what is [kept](crate::MutexGuard::keep_for). The queue stays
    /// as it is: who waits comes in its order. Says which holds were ended; none where nobody holds
    /// it.
    ///
    /// For each of them it does what [`end`](Self::end) does. What is acquired after the voters
    /// have named the holds is not ended.
    ///
    /// # Errors
    ///
    /// As [`end`](Self::end), except that a lock without a holder is no error.
    ///
    /// # Cancel safety
    ///
    /// Dropped half way, some of the holds may have ended; calling again ends the others.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// use quorate::LockKind;
    ///
    /// let prices = quorum.rw_lock("prices");
    /// let (one, other) = (prices.read().await?, prices.read().await?);
    /// let ended = quorum.admin().end_all(LockKind::RwLock, "prices").await?;
    /// assert!(ended.len() == 2 && ended.contains(one.hold()) && ended.contains(other.hold()));
    /// assert!(prices.try_write().await?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn end_all(
        &self,
        kind: LockKind,
        name: &str,
    ) -> impl Future<Output = Result<Vec<HoldId>, Error>> + Send + use<> {
        let lock = self.lock(kind, name);
        async move {
            let (handle, record) = lock?;
            end_all(&handle, &record).await
        }
    }

    /// Takes out everything that keeps a lock from being acquired: ends every hold as
    /// [`end`](Self::end) does, removes everybody from the queue, and deletes values under the
    /// lock's keys that no lock has written, of whatever type. Says whether there was anything.
    ///
    /// For a lock that cannot be acquired though nobody holds it: [`look`](Self::look) fails with
    /// `WRONGTYPE`, or shows a place in the queue that nobody waits at and that does not end.
    /// Clients that do wait come back to the queue by themselves, each with its ticket; until then
    /// others may pass them. [Tokens](crate::Token) go on from the highest.
    ///
    /// # Errors
    ///
    /// As [`end`](Self::end), except that a lock without a holder is no error.
    ///
    /// # Cancel safety
    ///
    /// Dropped half way, some of it may be done; calling again finishes it.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// use quorate::LockKind;
    ///
    /// let guard = quorum.semaphore("exports", 1).acquire().await?;
    /// assert!(quorum.admin().clear(LockKind::Semaphore, "exports").await?);
    /// assert!(quorum.semaphore("exports", 1).try_acquire().await?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn clear(
        &self,
        kind: LockKind,
        name: &str,
    ) -> impl Future<Output = Result<bool, Error>> + Send + use<> {
        let lock = self.lock(kind, name);
        async move {
            let (handle, record) = lock?;
            // Before the holds are ended: a value of another type makes every other script fail.
            let answers = ask(&handle, &record, &record.clear()).await?;
            let cleared = answers.iter().any(|answer| answer.as_ref().is_ok_and(Answer::is_done));
            Ok(!end_all(&handle, &record).await?.is_empty() || cleared)
        }
    }

    /// Has all voters forget which firing of the [`Once`](crate::Once) of this name is done: the
    /// next one that is asked for is due. Says whether a voter had one.
    ///
    /// # Errors
    ///
    /// [`is_no_quorum`](Error::is_no_quorum): fewer than a majority answered. A voter that did not
    /// may still know of it, and one is enough: call again when all can be reached. All others as
    /// [`look`](Self::look).
    ///
    /// # Cancel safety
    ///
    /// Dropped half way, some voters may have forgotten it.
    pub fn forget_once(
        &self,
        name: &str,
    ) -> impl Future<Output = Result<bool, Error>> + Send + use<> {
        let lock = self.lock(LockKind::Once, name);
        async move {
            let (handle, record) = lock?;
            let answers = ask(&handle, &record, &record.forget_done()).await?;
            Ok(answers.iter().flatten().any(Answer::is_done))
        }
    }

    /// Copies which firings of all [`Once`](crate::Once)s are done to the voters that do not store
    /// it, until a majority of each set does; says how many jobs there are. For a [change of the
    /// voters](crate::Builder::replacing), by a client in the step *both*, before the old ones are
    /// left: `quorate copy-once` does that, and `quorate doctor` says whether it was done. Every
    /// server is asked for all of its keys, as by [`find`](Self::find).
    ///
    /// # Errors
    ///
    /// [`is_no_quorum`](Error::is_no_quorum): a majority of one set could not be asked, or did not
    /// store all; call again. [`is_closed`](Error::is_closed): the client was closed.
    ///
    /// # Cancel safety
    ///
    /// Dropped half way, some of it may be done; calling again finishes it.
    pub async fn copy_once(&self) -> Result<usize, Error> {
        let jobs = self.jobs().await?;
        for job in &jobs {
            let (handle, record) = self.lock(LockKind::Once, job)?;
            let answers = ask(&handle, &record, &record.note_done(None, None)).await?;
            let latest = answers.iter().flatten().filter_map(Answer::done).max();
            if latest.is_some() && !crate::mutant!("done_is_not_copied") {
                // A voter that answers has stored it, or a later one. It needs no vote for that:
                // what one voter has stored is done, whoever holds the lock now.
                ask(&handle, &record, &record.note_done(None, latest)).await?;
            }
        }
        Ok(jobs.len())
    }

    /// The names of all [`Once`](crate::Once)s of which a voter knows a firing that is done. Every
    /// server is asked for all of its keys, as by [`find`](Self::find).
    ///
    /// # Errors
    ///
    /// [`is_no_quorum`](Error::is_no_quorum): a majority of one set could not be asked.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    pub async fn jobs(&self) -> Result<Vec<String>, Error> {
        let of_done = |end: &str| (end == ":once:done").then_some(LockKind::Once);
        let found = self.clone().found(of_done, "*".into(), usize::MAX).await;
        let panel = self.parts.coordinator.panel();
        // A majority of each set was asked: a mark that a majority stores is on one of these
        // voters.
        let is_asked = |voter: usize| {
            let label = &**panel.voters[voter].label();
            found.missing.iter().all(|missing| missing.voter != label)
        };
        if !panel.quorum.reached(is_asked) {
            let (needed, after) = (panel.quorum.needed(), PATIENCE);
            let (lock, asked_ago, too_late) = ("*".into(), after, None);
            let kind = proto::Kind::NoQuorum { lock, needed, after, asked_ago, too_late };
            return Err(Error::new(kind, found.missing));
        }
        Ok(found.locks.into_iter().map(|lock| lock.name).collect())
    }

    fn lock(&self, kind: LockKind, name: &str) -> Result<(LockHandle, LockRecord), Error> {
        let handle = LockHandle::new(&self.parts, name);
        let record = handle.record(kind_to_look_at(kind))?;
        Ok((handle, record))
    }
}

/// The kind whose scripts see all holds of a lock.
// The fair mutex has the keys of the plain one, and the writer's scripts know the readers.
fn kind_to_look_at(kind: LockKind) -> &'static Kind {
    match kind {
        LockKind::Mutex => &FAIR_MUTEX,
        LockKind::RwLock => &WRITE,
        LockKind::Election => &ELECTION,
        LockKind::Once => &ONCE,
        LockKind::Semaphore => &SEMAPHORE,
    }
}

/// What all voters say about a lock; of an election also who leads.
pub(super) fn inspect(
    handle: &LockHandle,
    kind: &'static Kind,
) -> impl Future<Output = Result<LockView, Error>> + Send + use<> {
    let (handle, record) = (handle.clone(), handle.record(kind));
    async move {
        let record = record?;
        let (kind, voters) = (record.kind().lock, ask_all(&handle, &record));
        if record.kind().leader.is_none() {
            return Ok(LockView::new(handle.name(), kind, voters.await?));
        }
        let (voters, leader) = tokio::join!(voters, handle.coordinator().ask_who_leads(&record));
        // Without an answer to that, what each voter says is shown all the same.
        let leader = leader.ok().flatten();
        Ok(LockView { leader, ..LockView::new(handle.name(), kind, voters?) })
    }
}

/// Whether a majority has given its votes. Of two sets of voters one is enough.
pub(super) fn is_locked(
    handle: &LockHandle,
    kind: &'static Kind,
) -> impl Future<Output = Result<bool, Error>> + Send + use<> {
    let (coordinator, record) = (Arc::clone(handle.coordinator()), handle.record(kind));
    async move {
        let record = record?;
        let quorum = coordinator.panel().quorum;
        let (lock, (_, lists)) = (record.kind().lock, record.kind().look);
        // The answer itself names a holder that excludes all others. Readers and permits are in its
        // lists.
        let is_given = |answer: &Outcome<Answer>| {
            let answer = answer.as_ref().ok()?;
            let holds = || {
                Some(!LockState::read(lock, LockSeen::read(answer, lists).ok()?).holders.is_empty())
            };
            if answer.is_done() { Some(true) } else { holds() }
        };
        let say = |answers: &[Outcome<Answer>], given: bool| {
            quorum.reached(|voter| is_given(&answers[voter]) == Some(given))
        };
        let are_enough = |answers: &[_]| say(answers, true) || say(answers, false);
        let (call, started) = (record.look(0), coordinator.clock().now());
        let asked = coordinator.ask_until(&record, &call, record.rules(), are_enough);
        let answers = asked.await?;
        if quorum.reached_in_one(|voter| is_given(&answers[voter]) == Some(true)) {
            return Ok(true);
        }
        if say(&answers, false) || answers.iter().all(|answer| is_given(answer).is_some()) {
            return Ok(false);
        }
        // The voters that did not answer decide, so neither yes nor no is true (law 9).
        Err(coordinator.unanswered(&record, &answers, started))
    }
}

/// What each voter says about a lock.
async fn ask_all(handle: &LockHandle, record: &LockRecord) -> Result<Vec<VoterView>, Error> {
    let (kind, (_, lists)) = (record.kind().lock, record.kind().look);
    let read = |answer: Outcome<Answer>| LockSeen::read(&answer?, lists);
    let panel = handle.coordinator().panel();
    let answers = ask(handle, record, &record.look(0)).await?;
    let done = if kind == LockKind::Once {
        // In a box, so that the future of a look at another kind is no larger.
        let asked = Box::pin(async { ask(handle, record, &record.note_done(None, None)).await });
        asked.await?
    } else {
        Vec::new()
    };
    let done = |voter: usize| done.get(voter)?.as_ref().ok()?.done().map(FiringDone::from);
    // As of now and not of the question: it says whether a vote counts for a hold that asks next.
    let now = handle.coordinator().clock().now();
    let quarantined = |(voter, answer): (usize, &Outcome<Answer>)| {
        let only = Shard { voter, number: ONLY };
        let shard = answer.as_ref().map_or(only, |answer| answer.shard);
        Some(panel.standings.quarantine(shard, now)?.quarantined)
    };
    let quarantined: Vec<_> = answers.iter().enumerate().map(quarantined).collect();
    let mut seen: Vec<_> = answers.into_iter().map(read).collect();
    // A server answers nobody else while it makes an answer, so a long list of permits comes in
    // parts.
    while let Some(from) = seen.iter().flatten().filter_map(|seen| seen.next).min() {
        let more = ask(handle, record, &record.look(from)).await?.into_iter().map(read);
        let add = |(seen, more): (Outcome<LockSeen>, Outcome<_>)| Ok(seen?.go_on(from, more?));
        seen = seen.into_iter().zip(more).map(add).collect();
    }
    let view = |(voter, (seen, quarantine)): (usize, (Outcome<LockSeen>, _))| VoterView {
        voter: panel.voters[voter].label().to_string(),
        side: panel.quorum.side(voter),
        state: seen.map(|seen| LockState { done: done(voter), ..LockState::read(kind, seen) }),
        quarantine,
    };
    Ok(seen.into_iter().zip(quarantined).enumerate().map(view).collect())
}

/// Ends all that is held now.
// Each hold by its id: one that is acquired meanwhile was not meant, and stays.
async fn end_all(handle: &LockHandle, record: &LockRecord) -> Result<Vec<HoldId>, Error> {
    let views = ask_all(handle, record).await?;
    let holders = LockView::new(handle.name(), record.kind().lock, views).all_holders();
    try_join_all(holders.iter().map(|held| end(handle, record, held))).await?;
    Ok(holders.into_iter().map(|held| held.hold).collect())
}

/// Ends a named hold. Returns how many voters have confirmed it.
async fn end(handle: &LockHandle, record: &LockRecord, held: &Holder) -> Result<usize, Error> {
    let Holder { hold, slots, ttl, .. } = held;
    // The mark lasts for longer than the holder can go on without this vote: otherwise a late
    // renewal would bring the hold back. The holder renews from a third of its lease on.
    let left = ttl.unwrap_or_default().min(Settings::LONGEST_LEASE);
    let marker = (left * 4).max(handle.settings().lease);
    // Only a hold of a semaphore has slots.
    let slots = u16::try_from(slots.len().max(1)).unwrap_or(u16::MAX);
    let answers = ask(handle, record, &record.end(hold, slots, marker)).await?;
    Ok(answers.iter().filter(|answer| answer.is_ok()).count())
}

/// The answers of all voters that come in time.
async fn ask(
    handle: &LockHandle,
    record: &LockRecord,
    call: &Call,
) -> Result<Vec<Outcome<Answer>>, Error> {
    handle.coordinator().ask_until(record, call, record.rules(), |_| false).await
}
