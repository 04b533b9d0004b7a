//! Several locks at once.

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use futures::{FutureExt, future::join_all};

use super::{LockHandle, LockParts, Mutex, RwLock, handle::after_work};
use crate::{
    acquire::{Coordinator, NotGranted},
    hold::{
        Entry, LockRequest, Lost, first_loss, lose_together, one_is_lost, try_while_held,
        while_held,
    },
    kinds::{Kind, MUTEX, READ, WRITE},
    proto::{Error, HoldId, Limit, LockKind, Refusal, Several, SeveralNext, Token},
};

/// A lock that can be one of [several](crate::Quorate::lock_all): a mutex, a fair mutex, the name
/// of a mutex, or a read/write lock to [read](RwLock::reading) or to [write](RwLock::writing).
#[derive(Clone)]
pub struct Lockable {
    name: Arc<str>,
    /// `None`: the mutex of this name, of the client that makes the list.
    lock: Option<Box<OneLock>>,
}

#[derive(Clone)]
struct OneLock {
    handle: LockHandle,
    kind: &'static Kind,
}

impl Lockable {
    fn of(handle: LockHandle, kind: &'static Kind) -> Self {
        Self { name: handle.name().into(), lock: Some(Box::new(OneLock { handle, kind })) }
    }

    fn lock_of(self, parts: &Arc<LockParts>) -> OneLock {
        let named = || OneLock { handle: LockHandle::new(parts, &self.name), kind: &MUTEX };
        self.lock.map_or_else(named, |lock| *lock)
    }
}

impl From<Mutex> for Lockable {
    fn from(mutex: Mutex) -> Self {
        let kind = mutex.asked_kind();
        Self::of(mutex.0, kind)
    }
}

/// The mutex of this name.
impl<N: AsRef<str>> From<N> for Lockable {
    fn from(name: N) -> Self {
        Self { name: name.as_ref().into(), lock: None }
    }
}

impl RwLock {
    /// Its reading side, as one of [several locks](crate::Quorate::lock_all).
    pub fn reading(&self) -> Lockable {
        Lockable::of(self.0.clone(), &READ)
    }

    /// Its writing side, as one of [several locks](crate::Quorate::lock_all).
    pub fn writing(&self) -> Lockable {
        Lockable::of(self.0.clone(), &WRITE)
    }
}

impl OneLock {
    fn request(&self) -> Result<LockRequest, Error> {
        // A lock that is given back because another one was taken must go to the next waiter of any
        // client. Handed on, it would go to a later task of this one (law 4;
        // `what_is_held_with_others_is_not_handed_on`).
        Ok(LockRequest { hands_on: false, ..self.handle.request(self.kind)? })
    }

    /// Its rank in an order of locks that is the same for all callers: by the name first.
    // With different orders, two callers could each keep what the other waits for. A read/write
    // lock of ours is another one than the mutex of its name; of Redisson's, both are one record,
    // so to name both is to name one twice.
    fn rank(&self) -> (&str, bool, bool) {
        let is_foreign = self.handle.parts.dialect.is_some();
        let is_rw = !is_foreign && self.kind.lock == LockKind::RwLock;
        (self.handle.name(), is_rw, is_foreign)
    }
}

/// Several locks, as one: all or none.
///
/// Made by [`Quorate::lock_all`](crate::Quorate::lock_all); a value that sends nothing before a
/// call such as [`lock`](Self::lock).
///
/// # How it waits
///
/// It asks for all locks at once. If all are free, it has them after one round trip. Otherwise it
/// gives back what it got, and waits for one of the locks that were taken, with no lock held. Once
/// it has that lock, it asks for all others, and so on. So callers may name the locks in any order,
/// and never wait for each other in a circle.
///
/// If the locks are busy all the time, callers that want several would starve. So a caller that
/// twice had one lock and not the others takes them one after the other, in the order of their
/// names, and keeps what it has while it waits in the queue of the next one. All such callers use
/// the same order, so none waits for ever.
///
/// A caller that has failed twice may hold a lock, without using it, while it waits for the next
/// one.
#[derive(Clone, Debug)]
#[must_use = "it does nothing until it is locked"]
pub struct LockAll {
    parts: Arc<LockParts>,
    locks: Vec<OneLock>,
}

impl LockAll {
    pub(crate) fn new(parts: &Arc<LockParts>, locks: impl Iterator<Item = Lockable>) -> Self {
        let locks = locks.map(|lock| lock.lock_of(parts)).collect();
        Self { parts: Arc::clone(parts), locks }
    }

    /// The [note](crate::Mutex::note) of each lock of the list that has none of its own.
    pub fn note(mut self, note: impl AsRef<str>) -> Self {
        for OneLock { handle, .. } in &mut self.locks {
            if handle.note.is_none() {
                *handle = handle.clone().note(&note);
            }
        }
        self
    }

    /// Acquires all locks, waiting for as long as any is taken.
    ///
    /// # Errors
    ///
    /// [`is_invalid`](Error::is_invalid): there is no lock in the list, one is in it twice, one has
    /// an owner or is of another client, or one of the names or leases cannot be used; nothing was
    /// sent. All others as [`Mutex::lock`](crate::Mutex::lock), for the first lock that has one.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up all places, and undoes on all voters whatever was sent.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// # async fn transfer() {}
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// let guard = quorum.lock_all(["account:1", "account:2"]).lock().await?; // two mutexes
    /// guard.while_held(transfer()).await?;
    /// guard.release().await?;
    ///
    /// // Of any kind:
    /// let order = quorum.fair_mutex("order:7").into();
    /// let prices = quorum.rw_lock("prices").reading();
    /// let guard = quorum.lock_all([order, prices]).lock().await?;
    /// # guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn lock(&self) -> impl Future<Output = Result<AllGuard, Error>> + Send + use<> {
        self.clone().acquire(Limit::Never)
    }

    /// Acquires all locks if all are free; `None` otherwise. Of tries at the same moment for the
    /// same locks one mostly succeeds: who got the first lock, in the order of the names, waits a
    /// moment for what the others give back.
    ///
    /// # Errors
    ///
    /// As [`lock`](Self::lock); `is_no_quorum` and `is_overloaded` as
    /// [`Mutex::try_lock`](crate::Mutex::try_lock).
    ///
    /// # Cancel safety
    ///
    /// As [`lock`](Self::lock).
    pub fn try_lock(&self) -> impl Future<Output = Result<Option<AllGuard>, Error>> + Send + use<> {
        let limit = Limit::Once(self.parts.coordinator.patience());
        self.clone().acquire(limit).map(unless_busy)
    }

    /// As [`lock`](Self::lock), waiting no longer than `limit`; `None` if some of the locks were
    /// still taken then. Nothing is left behind in any queue. May overrun `limit` by a voter
    /// deadline: what all voters were asked together is waited for.
    ///
    /// # Errors
    ///
    /// As [`lock`](Self::lock), but `is_no_quorum` only at the limit; `is_overloaded` as
    /// [`Mutex::lock_within`](crate::Mutex::lock_within).
    ///
    /// # Cancel safety
    ///
    /// As [`lock`](Self::lock).
    pub fn lock_within(
        &self,
        limit: Duration,
    ) -> impl Future<Output = Result<Option<AllGuard>, Error>> + Send + use<> {
        self.clone().acquire(self.within(limit)).map(unless_busy)
    }

    /// As [`lock_within`](Self::lock_within), but a lock that is still taken is an error, which
    /// says which one it is, and who holds it.
    ///
    /// # Errors
    ///
    /// [`is_busy`](Error::is_busy): another hold has one of the locks; see [`Error::lock`] and
    /// [`Error::holder`]. All others as [`lock_within`](Self::lock_within).
    ///
    /// # Cancel safety
    ///
    /// As [`lock`](Self::lock).
    pub fn lock_or_busy(
        &self,
        limit: Duration,
    ) -> impl Future<Output = Result<AllGuard, Error>> + Send + use<> {
        self.clone().acquire(self.within(limit))
    }

    /// Waits for all locks as [`lock`](Self::lock) does, runs the work as long as all are held, and
    /// gives them back when it is done, has failed or is dropped. The work is given the tokens of
    /// the locks, in the order of the list; a read has none.
    ///
    /// # Errors
    ///
    /// The error of the work; or, made into its type: as [`lock`](Self::lock), and
    /// [`is_lost`](Error::is_lost) if a lock was lost before the work was done. As in
    /// [`Mutex::run`](crate::Mutex::run), a release that is not confirmed yet is no error.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work, and gives back all locks.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// let accounts = quorum.lock_all(["account:1", "account:2"]);
    /// let moved = accounts.run(async |_tokens| Ok::<_, quorate::Error>(20)).await?;
    /// assert_eq!(moved, 20);
    /// # Ok(())
    /// # }
    /// ```
    pub fn run<T, E, F, W>(&self, work: F) -> impl Future<Output = Result<T, E>> + use<T, E, F, W>
    where
        E: From<Error>,
        F: FnOnce(Vec<Option<Token>>) -> W,
        W: Future<Output = Result<T, E>>,
    {
        let locked = self.lock();
        async move {
            let guard = locked.await?;
            let tokens = guard.tokens().map(|(_, token)| token).collect();
            let done = guard.try_while_held(work(tokens)).await;
            after_work(done, guard.release().await)
        }
    }

    fn within(&self, limit: Duration) -> Limit {
        Limit::Until(self.parts.coordinator.clock().now() + limit)
    }

    /// The requests for all locks. Fails if they cannot be used together.
    fn requests(&self) -> Result<Vec<LockRequest>, Error> {
        if self.locks.is_empty() {
            return Err(Error::invalid("there is no lock in the list of those to be locked"));
        }
        let requests = self.locks.iter().map(OneLock::request).collect::<Result<Vec<_>, _>>()?;
        let mut seen = BTreeSet::new();
        for (lock, request) in self.locks.iter().zip(&requests) {
            let name = lock.handle.name();
            let is_twice = !seen.insert(lock.rank());
            let what = match () {
                () if !Arc::ptr_eq(&request.holds, &self.parts.holds) => "is of another client",
                () if is_twice => "is in the list twice",
                () if request.owner.is_some() => "has an owner, and cannot be one of several",
                () => continue,
            };
            return Err(Error::invalid(format!("the lock `{name}` {what}")));
        }
        Ok(requests)
    }

    /// Acquires all locks. If one is taken at the limit, the error says which, and by whom.
    async fn acquire(self, limit: Limit) -> Result<AllGuard, Error> {
        let (requests, coordinator) = (self.requests()?, &*self.parts.coordinator);
        let mut order: Vec<usize> = (0..requests.len()).collect();
        order.sort_by_key(|place| self.locks[*place].rank());
        let entries = requests.iter().map(|_| None).collect();
        let (unknown, taken) = (None, None);
        let mut so_far = LocksSoFar { coordinator, requests, order, entries, unknown, taken };
        let mut several = Several::new(limit);
        loop {
            match several.next(coordinator.clock().now()) {
                SeveralNext::AskAll => so_far.ask(limit).await?,
                SeveralNext::WaitFor(one, limit) => {
                    several.waited(so_far.wait_for(one, limit).await?);
                    continue;
                }
                SeveralNext::TakeInOrder(limit) => {
                    // It keeps a lock while it waits for the next. All such callers have the same
                    // order, so the one with the highest lock of all waits for nobody of them.
                    for one in so_far.order.clone() {
                        if !so_far.wait_for(one, limit).await? {
                            return Err(so_far.refusal(one));
                        }
                    }
                }
                SeveralNext::GiveUp(one) => return Err(so_far.refusal(one)),
            }
            // A fixed lease may have ended while it waited for other locks.
            let lacks = |entry: &Option<Entry>| !entry.as_ref().is_some_and(Entry::is_held);
            let Some(missing) = so_far.entries.iter().position(lacks) else {
                let entries: Vec<_> = so_far.entries.into_iter().flatten().collect();
                lose_together(&entries);
                return Ok(AllGuard(entries));
            };
            // Before it waits: two callers that keep a lock and wait for the other's would wait for
            // ever.
            if !crate::mutant!("several_keep_what_they_have") {
                so_far.entries.fill_with(|| None);
            }
            several.missed(missing);
        }
    }
}

/// `None` if one of the locks was taken.
fn unless_busy(acquired: Result<AllGuard, Error>) -> Result<Option<AllGuard>, Error> {
    match acquired {
        Err(error) if error.is_busy() => Ok(None),
        acquired => acquired.map(Some),
    }
}

/// The least time that other callers have to give back what they got.
const AGAIN: Duration = Duration::from_millis(10);

/// Whether nobody could say who has the lock.
fn is_unknown(error: &Error) -> bool {
    error.is_no_quorum() || error.is_overloaded()
}

/// What a caller has of the locks that it wants.
struct LocksSoFar<'a> {
    coordinator: &'a Coordinator,
    requests: Vec<LockRequest>,
    /// The locks by rank: an order that is the same for all callers.
    order: Vec<usize>,
    entries: Vec<Option<Entry>>,
    /// The error if too few voters answered the last request.
    unknown: Option<Error>,
    /// The last lock that was refused, and what the voters said.
    taken: Option<(usize, Refusal)>,
}

impl LocksSoFar<'_> {
    /// Why the caller does not have all locks, or does not have `one`.
    fn refusal(self, one: usize) -> Error {
        // Law 9: if too few voters answered, it is not true that another hold has the lock.
        if let Some(error) = self.unknown {
            return error;
        }
        // Nothing was refused if a lease has ended while it waited for another lock.
        let (taken, refusal) = self.taken.unwrap_or((one, Refusal::default()));
        self.coordinator.busy(&self.requests[taken].record, refusal)
    }

    /// Notes the outcome of a request.
    fn note(&mut self, one: usize, entered: Result<Entry, NotGranted>) -> Result<(), Error> {
        match entered {
            Ok(entry) => {
                self.entries[one] = Some(entry);
                self.taken.take_if(|(taken, _)| *taken == one);
            }
            Err(NotGranted::Held(refusal)) => self.taken = Some((one, refusal)),
            Err(NotGranted::Failed(error)) => return Err(error),
        }
        Ok(())
    }

    /// Waits for one lock, and says whether it has it then.
    async fn wait_for(&mut self, one: usize, limit: Limit) -> Result<bool, Error> {
        self.unknown = None;
        match self.requests[one].enter_unless_refused(limit).await {
            Err(NotGranted::Failed(error)) if is_unknown(&error) && limit != Limit::Never => {
                self.unknown = Some(error);
            }
            entered => self.note(one, entered)?,
        }
        Ok(self.entries[one].is_some())
    }

    /// Asks for all locks that it does not have, at one moment. Waits for none; a caller that only
    /// tries waits for a moment.
    async fn ask(&mut self, limit: Limit) -> Result<(), Error> {
        self.unknown = None;
        let (clock, once) = (self.coordinator.clock(), limit.once(self.coordinator.patience()));
        let (started, requests) = (clock.now(), &self.requests);
        let missing = (0..requests.len()).filter(|one| self.entries[*one].is_none());
        let asked = missing.map(async |one| (one, requests[one].enter_unless_refused(once).await));
        let mut refused = false;
        let heard = join_all(asked).await;
        for (one, entered) in heard {
            match entered {
                // Not an error yet: a caller that may wait asks again, and fails if that goes on.
                Err(NotGranted::Failed(error)) if is_unknown(&error) => self.unknown = Some(error),
                entered => {
                    refused |= matches!(entered, Err(NotGranted::Held(_)));
                    self.note(one, entered)?;
                }
            }
        }
        // One lock that is taken is the answer, whatever is not known of the others.
        if refused {
            self.unknown = None;
        }
        if matches!(limit, Limit::Once(_)) {
            self.outlast(AGAIN.max(clock.now().since(started) * 2)).await?;
        }
        Ok(())
    }

    /// Lets a caller that got the first lock, but not all, wait for each of the others for this
    /// time.
    // Callers that got only later ones give them back now. So of several that try at one moment,
    // one gets all (`of_ten_that_try_the_same_three_locks_at_once_one_has_them`).
    async fn outlast(&mut self, time: Duration) -> Result<(), Error> {
        if self.entries[self.order[0]].is_none() || self.unknown.is_some() {
            return Ok(());
        }
        for one in self.order.clone() {
            let limit = Limit::Until(self.coordinator.clock().now() + time);
            if self.entries[one].is_none() && !self.wait_for(one, limit).await? {
                // It was refused before, and that is the answer, not that too few say so now.
                self.unknown = None;
                break;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Lockable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.lock {
            None => f.debug_struct(MUTEX.name).field("name", &self.name).finish(),
            Some(lock) => lock.fmt(f),
        }
    }
}

impl fmt::Debug for OneLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle.show(self.kind.name, f)
    }
}

// The guard of several locks.

/// Proof that this client holds all locks of a [`LockAll`](crate::LockAll), for as long as
/// [`is_held`](Self::is_held) says so.
///
/// When one of them is lost, all are: this guard is lost, and the others are given back. Dropping
/// it releases all of them in the background: dropping never blocks and never fails.
#[must_use = "the locks are released when the guard is dropped"]
pub struct AllGuard(Vec<Entry>);

impl AllGuard {
    /// The names of the locks, in the order of the list.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(Entry::name)
    }

    /// The name and the hold of each lock, in the order of the list.
    pub fn holds(&self) -> impl Iterator<Item = (&str, &HoldId)> {
        self.0.iter().map(|entry| (entry.name(), entry.id()))
    }

    /// The name of each lock with its fencing token, in the order of the list; a read has none.
    pub fn tokens(&self) -> impl Iterator<Item = (&str, Option<Token>)> {
        self.0.iter().map(|entry| (entry.name(), entry.token()))
    }

    /// Whether all locks may still be relied on. Read from the clock at each call: never true at or
    /// after the earliest of their deadlines.
    pub fn is_held(&self) -> bool {
        self.0.iter().all(Entry::is_held)
    }

    /// The time for which all locks may be relied on if no renewal succeeds; zero once one is lost.
    pub fn remaining(&self) -> Duration {
        self.0.iter().map(Entry::remaining).min().unwrap_or_default()
    }

    /// Completes when one of the locks is lost, with the reason. [`Error::lock`] says which. What
    /// is returned borrows nothing and can be cloned and spawned; once the locks are
    /// [released](Self::release), it completes as well.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect on the locks.
    pub fn lost(&self) -> Lost {
        one_is_lost(&self.0)
    }

    /// Runs `work` as long as all locks are held: drops it the moment one is lost.
    ///
    /// # Errors
    ///
    /// [`is_lost`](Error::is_lost): this lock was lost, and `work` was dropped unfinished; or it
    /// has ended after the loss, and what it returned is dropped.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `work`; the locks stay held.
    pub async fn while_held<F: Future>(&self, work: F) -> Result<F::Output, Error> {
        while_held(&self.0, work).await
    }

    /// [`while_held`](Self::while_held) for work that can fail: its error and the loss of a lock
    /// are one result.
    ///
    /// # Errors
    ///
    /// The error of `work`; or, made into its type, [`is_lost`](Error::is_lost).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `work`; the locks stay held.
    pub async fn try_while_held<T, E: From<Error>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        try_while_held(&self.0, work).await
    }

    /// Renews all leases now, and makes them this long at least, as
    /// [`MutexGuard::extend`](crate::MutexGuard::extend) does one.
    ///
    /// # Errors
    ///
    /// As [there](crate::MutexGuard::extend), for the first lock of the list that has one.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the locks held, with the old leases or the new ones.
    pub async fn extend(&self, lease: Duration) -> Result<(), Error> {
        let all = self.0.iter().map(|entry| entry.extend(Some(lease)));
        join_all(all).await.into_iter().collect()
    }

    /// Renews all leases now, each for as long as it was before, as
    /// [`MutexGuard::renew`](crate::MutexGuard::renew) does one.
    ///
    /// # Errors
    ///
    /// As [there](crate::MutexGuard::renew), for the first lock of the list that has one.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the locks held, with the old leases or the new ones.
    pub async fn renew(&self) -> Result<(), Error> {
        let all = self.0.iter().map(|entry| entry.extend(None));
        join_all(all).await.into_iter().collect()
    }

    /// Keeps all locks taken for `time`, counted from now, and then lets them expire, as
    /// [`MutexGuard::keep_for`](crate::MutexGuard::keep_for) does one.
    ///
    /// # Errors
    ///
    /// As [there](crate::MutexGuard::keep_for), for the first lock of the list that has one; of
    /// several that are lost the one that took the others along. What was held until then and has
    /// no error is kept.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future releases the locks, except locks for which a majority has stored `time`
    /// already.
    pub async fn keep_for(self, time: Duration) -> Result<(), Error> {
        // The cause, if one is lost: the errors below may name a lock that ended with it.
        let lost = first_loss(&self.0);
        let kept = join_all(self.0.into_iter().map(|entry| entry.keep_for(time))).await;
        lost.map_or_else(|| kept.into_iter().collect(), Err)
    }

    /// Gives all locks back. Returns when a majority has confirmed each; slow voters get the
    /// releases in the background.
    ///
    /// # Errors
    ///
    /// The first of these in the order of the list. All locks are given back in any case.
    /// [`is_lost`](Error::is_lost): one had been lost before; of several the one that took the
    /// others along. [`is_unconfirmed`](Error::is_unconfirmed): no majority confirmed in time; it
    /// goes on in the background.
    ///
    /// # Cancel safety
    ///
    /// The releases are sent when this is first polled; dropping the future afterwards loses only
    /// the answers. Dropped before, the guard is dropped: that releases as well.
    pub async fn release(self) -> Result<(), Error> {
        let lost = first_loss(&self.0);
        let released = join_all(self.0.into_iter().map(Entry::release)).await;
        lost.map_or_else(|| released.into_iter().collect(), Err)
    }
}

impl fmt::Debug for AllGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AllGuard")
            .field("holds", &self.holds().collect::<Vec<_>>())
            .field("remaining", &self.remaining())
            .finish()
    }
}
