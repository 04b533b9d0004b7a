//! Locks that are shared with Java services, by the records and channels of Redisson.

mod kinds;

use std::sync::Arc;

use kinds::{FAIR_JAVA_MUTEX, JAVA_MUTEX, JAVA_READ, JAVA_WRITE};

use crate::{
    kinds::{Form, Kind, LockRecord, Preference},
    locks::{Admin, Dialect, LockHandle, LockParts, Mutex, RwLock},
    proto::{Error, LockKind, LockName},
};

/// Locks with the names and records of Redisson, so that services in Java and in Rust exclude and
/// wake each other. The page `docs/redisson.md` says what works with what.
///
/// Made by [`Quorate::redisson`](crate::Quorate::redisson). The client needs the same servers as
/// the services in Java. A Redis Cluster among them must be one voter, not several. The client's
/// other locks keep their own names: a mutex made here is another lock than the mutex of the same
/// name made by [`Quorate::mutex`](crate::Quorate::mutex).
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
#[derive(Clone, Debug)]
pub struct Redisson(Arc<LockParts>);

impl Redisson {
    pub(crate) fn new(parts: &Arc<LockParts>) -> Self {
        let mut parts = LockParts::clone(parts);
        parts.dialect = Some(&Java);
        Self(Arc::new(parts))
    }

    /// The `RLock` of this name, or the `RFencedLock`; over several servers the `RedissonRedLock`
    /// of one `RLock` on each. The record has the bare name. The channel is
    /// `redisson_lock__channel:{<name>}`. Tokens are counted in `redisson_lock_token:{<name>}`,
    /// which never expires.
    ///
    /// Java does not enter our queue, and gets the lock if it asks first. Waiting for a name that
    /// is an `RFairLock` in Java is [invalid](Error::is_invalid).
    pub fn mutex(&self, name: impl AsRef<str>) -> Mutex {
        Mutex::new(&self.0, name.as_ref())
    }

    /// The same lock, given to waiters in Rust in the order of asking. Java passes them if it asks
    /// first.
    pub fn fair_mutex(&self, name: impl AsRef<str>) -> Mutex {
        self.mutex(name).fair()
    }

    /// The `RReadWriteLock` of this name. The record has the bare name, the channel is
    /// `redisson_rwlock:{<name>}`, and each reader has a key for its lease.
    ///
    /// The client must have one voter: an `RReadWriteLock` is on one server. There is no queue, so
    /// readers pass writers that wait, and the only preference is
    /// [`Readers`](Preference::Readers). Anything else is [invalid](Error::is_invalid) when the
    /// lock is asked for. A `keep_for` that is shorter than the rest of the lease does not end the
    /// lease sooner. Do not give a mutex and a read/write lock the same name: in Java, readers and
    /// writers join the record of a mutex.
    pub fn rw_lock(&self, name: impl AsRef<str>) -> RwLock {
        RwLock::new(&self.0, name.as_ref())
    }

    /// Looks at locks of Redisson, and ends their holds by force, whoever has them: mutexes and
    /// read/write locks. It [finds](Admin::find) none, as their names have nothing in common.
    pub fn admin(&self) -> Admin {
        Admin::new(&self.0)
    }
}

struct Java;

impl Dialect for Java {
    fn record(&self, handle: &LockHandle, kind: &'static Kind) -> Result<LockRecord, Error> {
        let java = match kind.lock {
            LockKind::Mutex if kind.is_fair => &FAIR_JAVA_MUTEX,
            LockKind::Mutex => &JAVA_MUTEX,
            LockKind::RwLock if kind.is_shared => &JAVA_READ,
            LockKind::RwLock => &JAVA_WRITE,
            other => return Err(Error::invalid(format!("there is no {other} of another library"))),
        };
        let (name, form) = handle.form(java, Preference::Readers)?;
        let panel = handle.coordinator().panel();
        if kind.lock == LockKind::RwLock {
            check_rw_lock(panel.quorum.voters(), handle.preference)?;
        } else if panel.shares_a_cluster {
            return Err(Error::invalid(
                "several voters of one cluster need keys that Redisson does not know: give the \
                 cluster one voter for its locks",
            ));
        }
        Ok(record(name, form))
    }
}

fn record(name: LockName, form: Arc<Form>) -> LockRecord {
    // As Redisson does: the record has the bare name, and all keys that are derived from it have
    // the name as their hash tag, unless it has one. So all are in one slot.
    let lock: Arc<str> = name.as_str().into();
    let is_tagged = name.as_str().contains('{');
    let tagged = if is_tagged { Arc::clone(&lock) } else { format!("{{{lock}}}").into() };
    LockRecord::new(name, [lock, tagged], form, None)
}

fn check_rw_lock(voters: usize, preference: Option<Preference>) -> Result<(), Error> {
    if voters > 1 {
        return Err(Error::invalid(format!(
            "a read/write lock of Redisson has one voter, and this client has {voters}: an \
             RReadWriteLock is on one server, and would not exclude it"
        )));
    }
    match preference {
        Some(other @ (Preference::Writers | Preference::Fair)) => Err(Error::invalid(format!(
            "the preference `{other:?}` is unknown to an RReadWriteLock: the only one of \
             Redisson is `Readers`"
        ))),
        Some(Preference::Readers) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{kinds::Forms, settings::Settings};

    fn named(name: &str, kind: &'static Kind) -> LockRecord {
        let settings = Settings::default();
        let rules = settings.rules(settings.lease).unwrap();
        let form = Forms::new(&settings).of(kind, rules, Preference::Readers, &settings);
        record(LockName::parse(name).unwrap(), form)
    }

    /// As Redisson's `RedissonLock` and its `prefixName` and `suffixName` make them, and its
    /// `RedissonReadLock`.
    #[test]
    fn keys_and_channels_are_those_of_redisson() {
        for (name, tagged) in [("invoice:42", "{invoice:42}"), ("invoice:{42}", "invoice:{42}")] {
            let mutex = named(name, &JAVA_MUTEX);
            let keys = mutex.clear();
            let own = ["revoked", "queue", "alive"].map(|end| format!("{tagged}:quorate_{end}"));
            let [revoked, queue, alive] = own.each_ref().map(String::as_str);
            let fence = format!("redisson_lock_token:{tagged}");
            assert_eq!(keys.keys().collect::<Vec<_>>(), [name, revoked, &fence, queue, alive]);
            let channel = format!("redisson_lock__channel:{tagged}");
            assert_eq!(mutex.channel().as_deref(), Some(&*channel));
            let (_, waits) = mutex.look_for_foreign_queue().unwrap();
            let keys = ["queue", "timeout"].map(|end| format!("redisson_lock_{end}:{tagged}"));
            assert!(waits.keys().eq(&keys), "{waits:?}");

            for kind in [&JAVA_READ, &JAVA_WRITE] {
                let lock = named(name, kind);
                let keys = ["revoked", "fence"].map(|end| format!("{tagged}:quorate_rw_{end}"));
                let [revoked, fence] = keys.each_ref().map(String::as_str);
                assert!(lock.clear().keys().eq([name, revoked, fence]), "{lock:?}");
                assert!(lock.look(0).keys().eq([name, tagged, fence]), "{lock:?}");
                let channel = format!("redisson_rwlock:{tagged}");
                assert_eq!(lock.channel().as_deref(), Some(&*channel));
            }
        }
    }
}
