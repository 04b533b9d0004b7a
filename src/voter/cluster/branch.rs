//! One server of a cluster, as one of the voters uses it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::redirect::Endpoint;
use crate::{
    proto::Stamp,
    voter::{Address, Ear, Identity, Looks, SingleNode},
};

/// The connections to a server that leads a shard.
#[derive(Clone, Debug)]
pub(super) struct Branch {
    pub(super) shard: usize,
    pub(super) at: Endpoint,
    pub(super) node: Arc<SingleNode>,
}

impl Branch {
    pub(super) fn start(
        shard: usize,
        at: Endpoint,
        address: &Address,
        ear: Arc<dyn Ear>,
        names: Arc<Names>,
        looks: Looks,
    ) -> Self {
        let ear = Arc::new(BranchEar { shard, ear, names });
        Self { shard, at, node: SingleNode::start(address, ear, looks) }
    }
}

/// What the channels that are listened to are called outside.
#[derive(Debug, Default)]
pub(super) struct Names(Mutex<HashMap<Arc<str>, Arc<str>>>);

impl Names {
    pub(super) fn learn(&self, here: &Arc<str>, outside: &Arc<str>) {
        if here != outside {
            self.names().insert(Arc::clone(here), Arc::clone(outside));
        }
    }

    pub(super) fn forget(&self, here: &str) {
        self.names().remove(here);
    }

    fn outside(&self, here: &str) -> Option<Arc<str>> {
        self.names().get(here).cloned()
    }

    fn names(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<str>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells the voter's ear which shard it is, and by which names it knows the channels.
struct BranchEar {
    shard: usize,
    ear: Arc<dyn Ear>,
    names: Arc<Names>,
}

impl Ear for BranchEar {
    fn met(&self, _: usize, identity: &Identity, stamp: Option<Stamp>) -> bool {
        self.ear.met(self.shard, identity, stamp)
    }

    fn seen(&self, _: usize, identity: &Identity, stamp: Option<Stamp>) -> bool {
        self.ear.seen(self.shard, identity, stamp)
    }

    fn parted(&self, _: usize, why: Option<&str>) {
        self.ear.parted(self.shard, why);
    }

    fn moved(&self, from: usize, to: usize, lost: bool) {
        self.ear.moved(from, to, lost);
    }

    fn called(&self, channel: &str, message: &str) {
        let outside = self.names.outside(channel);
        self.ear.called(outside.as_deref().unwrap_or(channel), message);
    }

    fn is_waited_for(&self) -> bool {
        self.ear.is_waited_for()
    }

    fn missed(&self) {
        self.ear.missed();
    }
}
