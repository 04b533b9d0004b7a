//! Redisson's names, and beside them those of what it has not.

use std::{borrow::Cow, sync::Arc};

use crate::{
    keys::{MutexKeys, MutexParts},
    proto::LockName,
};

/// Redisson has a token and a channel.
static MUTEX: MutexParts = MutexParts {
    revoked: ["", ":quorate_revoked"],
    fence: ["redisson_lock_token:", ""],
    queue: ["", ":quorate_queue"],
    alive: ["", ":quorate_alive"],
    channel: Some(["redisson_lock__channel:", ""]),
};

pub(super) fn mutex(name: &LockName) -> MutexKeys {
    let name = name.as_str();
    MutexKeys::new(name.into(), tagged(name).into(), &MUTEX)
}

/// Where those stand who wait for an `RFairLock` of this name, and until when.
pub(super) fn fair_queue(name: &LockName) -> [Arc<str>; 2] {
    let tagged = tagged(name.as_str());
    ["queue", "timeout"].map(|part| format!("redisson_lock_{part}:{tagged}").into())
}

/// Those of an `RReadWriteLock`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RwNames {
    /// The record.
    pub(super) lock: Arc<str>,
    /// What the keys of its readers begin with.
    pub(super) stem: Arc<str>,
    /// Holds that were ended by force.
    pub(super) revoked: Arc<str>,
    /// The token of the latest write.
    pub(super) fence: Arc<str>,
    pub(super) channel: Arc<str>,
}

impl RwNames {
    pub(super) fn of(name: &LockName) -> Self {
        let name = name.as_str();
        let tagged = tagged(name);
        Self {
            lock: name.into(),
            revoked: format!("{tagged}:quorate_rw_revoked").into(),
            fence: format!("{tagged}:quorate_rw_fence").into(),
            channel: format!("redisson_rwlock:{tagged}").into(),
            stem: tagged.into(),
        }
    }
}

/// As Redisson marks the hash tag of what it derives from a name.
fn tagged(name: &str) -> Cow<'_, str> {
    if name.contains('{') { name.into() } else { format!("{{{name}}}").into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> LockName {
        LockName::parse(text).unwrap()
    }

    /// As Redisson's `RedissonLock` and its `prefixName` and `suffixName` make them.
    #[test]
    fn the_names_of_a_mutex_are_those_of_redisson() {
        for (lock, tagged) in [("invoice:42", "{invoice:42}"), ("invoice:{42}", "invoice:{42}")] {
            let keys = mutex(&name(lock));
            assert_eq!(keys.lock().to_string(), lock);
            assert_eq!(keys.channel().to_string(), format!("redisson_lock__channel:{tagged}"));
            assert_eq!(keys.fence().to_string(), format!("redisson_lock_token:{tagged}"));
            assert_eq!(keys.queue().to_string(), format!("{tagged}:quorate_queue"));
        }
        let [queue, timeouts] = fair_queue(&name("invoice:42"));
        assert_eq!(&*queue, "redisson_lock_queue:{invoice:42}");
        assert_eq!(&*timeouts, "redisson_lock_timeout:{invoice:42}");
    }

    /// As Redisson's `RedissonReadLock` makes them.
    #[test]
    fn the_names_of_a_read_write_lock_are_those_of_redisson() {
        for (lock, tagged) in [("invoice:42", "{invoice:42}"), ("invoice:{42}", "invoice:{42}")] {
            let names = RwNames::of(&name(lock));
            assert_eq!((&*names.lock, &*names.stem), (lock, tagged));
            assert_eq!(*names.channel, format!("redisson_rwlock:{tagged}"));
            assert_eq!(*names.revoked, format!("{tagged}:quorate_rw_revoked"));
            assert_eq!(*names.fence, format!("{tagged}:quorate_rw_fence"));
        }
    }
}
