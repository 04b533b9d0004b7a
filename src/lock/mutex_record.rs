//! The mutex on the voters: a hash of the hold and its count, with the lease as its expiry.

use std::{sync::Arc, time::Duration};

use crate::{
    coordinator::{Ask, Record},
    keys::{KeyScheme, MutexKeys},
    node::Call,
    scripts::{Script, mutex},
    words::{HoldId, LockName},
};

#[derive(Clone, Debug)]
pub(super) struct MutexRecord {
    name: LockName,
    keys: MutexKeys,
    deadline: Duration,
}

impl MutexRecord {
    /// `deadline`: how long each voter has to answer.
    pub(super) fn new(name: LockName, scheme: &KeyScheme, deadline: Duration) -> Self {
        Self { keys: scheme.mutex(&name), name, deadline }
    }

    pub(super) fn inspect(&self) -> Call {
        self.call(&mutex::INSPECT, [&self.keys.lock], [])
    }

    /// Ends a named hold; its mark stays for `marker`.
    pub(super) fn force_release(&self, hold: &HoldId, marker: Duration) -> Call {
        let keys = [&self.keys.lock, &self.keys.revoked];
        let args = [hold.as_str(), &millis(marker), &self.keys.channel];
        self.call(&mutex::FORCE_RELEASE, keys, args)
    }

    fn call<const K: usize, const A: usize>(
        &self,
        script: &'static Script,
        keys: [&Arc<str>; K],
        args: [&str; A],
    ) -> Call {
        debug_assert_eq!((K, A), (script.keys.len(), script.args.len()), "{}", script.name);
        Call {
            script,
            keys: keys.into_iter().cloned().collect(),
            args: args.into_iter().map(Arc::from).collect(),
            deadline: self.deadline,
        }
    }
}

impl Record for MutexRecord {
    fn kind(&self) -> &'static str {
        "mutex"
    }

    fn name(&self) -> &str {
        self.name.as_str()
    }

    fn key(&self) -> &Arc<str> {
        &self.keys.lock
    }

    fn channel(&self) -> &Arc<str> {
        &self.keys.channel
    }

    fn acquire(&self, ask: &Ask<'_>) -> Call {
        let args = [ask.hold.as_str(), &ask.count.to_string(), &millis(ask.lease)];
        self.call(&mutex::ACQUIRE, [&self.keys.lock], args)
    }

    fn renew(&self, ask: &Ask<'_>) -> Call {
        let args = [ask.hold.as_str(), &ask.count.to_string(), &millis(ask.lease)];
        self.call(&mutex::RENEW, [&self.keys.lock, &self.keys.revoked], args)
    }

    fn release(&self, hold: &HoldId, count: u32, wake: bool) -> Call {
        let channel = if wake { &*self.keys.channel } else { "" };
        let args = [hold.as_str(), &count.to_string(), channel];
        self.call(&mutex::RELEASE, [&self.keys.lock], args)
    }
}

/// The settings see to it that leases are whole milliseconds.
fn millis(time: Duration) -> String {
    time.as_millis().to_string()
}
