//! The one trait between the coordinator and a voter.

use std::{fmt, sync::Arc, time::Duration};

use futures::future::BoxFuture;

pub(crate) use crate::engine::Stamp;
use crate::{
    scripts::{Script, Value},
    words::Cause,
};

/// The shard of a voter that has one.
pub(crate) const ONLY: usize = 0;

/// What came of a request to one voter.
pub(crate) type Outcome<T> = Result<T, Cause>;

/// A script with its keys and arguments. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) script: &'static Script,
    pub(crate) keys: Arc<[Arc<str>]>,
    pub(crate) args: Arc<[Arc<str>]>,
    /// How long an answer is worth waiting for.
    pub(crate) deadline: Duration,
}

/// Which server a voter is, and whether it may have forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Another value after every restart; equal for two addresses of one server.
    pub(crate) run_id: String,
    /// For how long it has run, in whole seconds, rounded down; where it was a replica before, for
    /// how long at least it is known as a primary, if that is less.
    pub(crate) uptime: Duration,
    /// It writes every change to disk before it answers, so a restart forgets nothing
    /// (`appendonly yes` and `appendfsync always`).
    pub(crate) durable: bool,
}

/// Hears who a voter is, what its channels say, and when they may have gone unheard.
pub(crate) trait Ear: Send + Sync {
    /// A new connection stands, and this is who answers on it. No script runs on a connection
    /// before this was called for it; called for each, the first included. Without a stamp the
    /// server does not tell its time. The server has one shard of the voter, mostly the only one.
    fn met(&self, shard: usize, identity: &Identity, stamp: Option<Stamp>);
    /// A connection of which was told has ended; with the reason, unless this side ended it.
    fn parted(&self, shard: usize, why: Option<&str>);
    /// What was in one shard is in another now, unless it was lost on the way.
    fn moved(&self, from: usize, to: usize, lost: bool);
    /// A message came on `channel`.
    fn called(&self, channel: &str, message: &str);
    /// Messages may have been lost (a reconnection, an overflow): whoever waits must look again.
    fn missed(&self);
}

/// A voter as seen by its task. The futures own all they need; each request leaves, in order, when
/// its future is *first polled*, at most once, and dropping the future does not call it back.
pub(crate) trait Node: fmt::Debug + Send + Sync {
    /// Runs a script. Answers by the call's deadline.
    fn run(&self, call: Call) -> BoxFuture<'static, Outcome<Value>>;

    /// In which shard a call with these keys runs, as far as is known by now.
    fn shard(&self, _keys: &[Arc<str>]) -> usize {
        ONLY
    }

    /// Listens to a channel; completes when the server is known to deliver what is published from
    /// then on. A node listens again by itself after a reconnection, and tells the ear.
    fn subscribe(&self, channel: Arc<str>) -> BoxFuture<'static, Outcome<()>>;

    /// Stops listening.
    fn unsubscribe(&self, channel: Arc<str>) -> BoxFuture<'static, Outcome<()>>;

    /// Who the server is, as it said on the connection that stands.
    fn identify(&self) -> BoxFuture<'static, Outcome<Identity>>;

    /// Ends the connections.
    fn close(&self) -> BoxFuture<'static, ()>;
}

/// What a server says that did not run the script now and may do so later.
const PASSING: [&str; 13] = [
    "LOADING",
    "BUSY",
    "READONLY",
    "MASTERDOWN",
    "MISCONF",
    "OOM",
    "NOREPLICAS",
    "CLUSTERDOWN",
    "MOVED",
    "ASK ",
    "TRYAGAIN",
    "non local key",
    "NOSCRIPT",
];

/// Whether what a server refuses with these words it may do later.
pub(super) fn is_passing(why: &str) -> bool {
    PASSING.iter().any(|word| why.contains(word))
}
