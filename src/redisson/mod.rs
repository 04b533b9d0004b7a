//! Locks that services in Java have too, by the records and channels of Redisson.

mod names;
mod rw_record;

use std::{fmt, sync::Arc};

use names::{RwNames, fair_queue, mutex};
use rw_record::JavaRwRecord;

use crate::{
    acquire::ForeignQueue,
    locks::{
        Access, Admin, Dialect, ExclusiveKind, FairMutex, Form, LockAsked, LockHandle, LockParts,
        Mutex, MutexRecord, MutexTerms, Preference, RwLock, RwTerms,
    },
    proto::Error,
    scripts::redisson,
};

/// The locks of a client that are named and written as Redisson does, so that services in Java and
/// in Rust exclude and wake each other. The page `docs/redisson.md` says what works with what.
///
/// Made by [`Quorate::redisson`](crate::Quorate::redisson). The servers of the client are those of
/// the services in Java; one voter of a Redis Cluster may be among them, several may not. What else
/// the client locks keeps its own names: a mutex made here is another lock than one of the same
/// name that is made by [`Quorate::mutex`](crate::Quorate::mutex).
///
/// # Examples
///
/// ```no_run
/// # async fn example() -> Result<(), quorate::Error> {
/// let quorum = quorate::Quorate::connect(["redis://10.0.0.1"]).await?;
/// let guard = quorum.redisson().mutex("orders").lock().await?; // the RLock `orders`
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Redisson(Arc<LockParts>);

impl Redisson {
    pub(crate) fn new(parts: &Arc<LockParts>) -> Self {
        Self(Arc::new(LockParts { dialect: Some(&Java), ..LockParts::clone(parts) }))
    }

    /// The `RLock` of this name, or the `RFencedLock`; over several servers the `RedissonRedLock`
    /// of one on each. The record has the bare name. The channel is
    /// `redisson_lock__channel:{<name>}`. The tokens are counted in `redisson_lock_token:{<name>}`,
    /// which never expires.
    ///
    /// Java stands in no queue of ours, and gets the lock when it asks first. Waiting for a name
    /// that is an `RFairLock` in Java is [invalid](Error::is_invalid).
    pub fn mutex(&self, name: impl AsRef<str>) -> Mutex {
        Mutex::new(&self.0, name.as_ref())
    }

    /// The same lock, given to waiters in Rust in the order of asking. Java passes them when it
    /// asks first.
    pub fn fair_mutex(&self, name: impl AsRef<str>) -> FairMutex {
        FairMutex::new(&self.0, name.as_ref())
    }

    /// The `RReadWriteLock` of this name. The record has the bare name, the channel is
    /// `redisson_rwlock:{<name>}`, and each reader has a key for its lease.
    ///
    /// The client must have one voter: an `RReadWriteLock` is on one server. There is no queue, so
    /// readers pass writers that wait, and the only preference is
    /// [`Readers`](Preference::Readers); anything else is [invalid](Error::is_invalid) when the
    /// lock is asked for. A `keep_for` that is shorter than what is left of the lease does not end
    /// it sooner. Do not give a mutex and a read/write lock the same name: in Java readers join
    /// the record of a mutex.
    pub fn rw_lock(&self, name: impl AsRef<str>) -> RwLock {
        RwLock::new(&self.0, name.as_ref())
    }

    /// Looks at locks of Redisson, and ends their holds by force, whoever has them: mutexes and
    /// read/write locks. It [finds](Admin::find) none, as their names have nothing in common.
    pub fn admin(&self) -> Admin {
        Admin::new(&self.0)
    }
}

impl fmt::Debug for Redisson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redisson").finish_non_exhaustive()
    }
}

struct Java;

impl Dialect for Java {
    fn mutex(&self, handle: &LockHandle, kind: ExclusiveKind) -> Result<MutexRecord, Error> {
        let (name, rules) = handle.checked()?;
        if handle.coordinator().panel().shares_a_cluster {
            return Err(Error::invalid(
                "several voters of one cluster need keys that Redisson does not know: give the \
                 cluster one voter for its locks",
            ));
        }
        let mut terms = MutexTerms::new(handle.settings(), rules, kind);
        terms.is_foreign = true;
        if kind == ExclusiveKind::Mutex {
            // What an `RSpinLock` gives back calls nobody.
            terms.waiting = Some(handle.settings().waiting_briefly(rules.terms.lease));
        }
        // Java counts on from what it finds, and from 1 where that has ended.
        terms.keep = None;
        let [waiting, timeouts] = &fair_queue(&name);
        let look = Form::new(&redisson::QUEUE, rules, &[]).question([waiting, timeouts]);
        let queue = ForeignQueue { what: "an RFairLock in Java", look };
        Ok(MutexRecord::new(
            name.clone(),
            mutex(&name),
            handle.parts.forms.of_mutex(terms),
            Some(queue),
        ))
    }

    fn rw_lock(
        &self,
        handle: &LockHandle,
        access: Access,
        preference: Option<Preference>,
    ) -> Result<Arc<dyn LockAsked>, Error> {
        let (name, rules) = handle.checked()?;
        let voters = handle.coordinator().panel().quorum.voters();
        if voters > 1 {
            return Err(Error::invalid(format!(
                "a read/write lock of Redisson has one voter, and this client has {voters}: an \
                 RReadWriteLock is on one server, and would not exclude it"
            )));
        }
        if let Some(other @ (Preference::Writers | Preference::Fair)) = preference {
            return Err(Error::invalid(format!(
                "the preference `{other:?}` is unknown to an RReadWriteLock: the only one of \
                 Redisson is `Readers`"
            )));
        }
        let terms = RwTerms::new(handle.settings(), rules, access, Preference::Readers);
        Ok(Arc::new(JavaRwRecord::new(RwNames::of(&name), name, terms)))
    }
}
