//! The one trait between the coordinator and a voter.

use std::{fmt, sync::Arc, time::Duration};

use futures::future::BoxFuture;

pub(crate) use crate::engine::{Birth, Stamp};
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Another value after every restart; equal for two addresses of one server.
    pub(crate) run_id: String,
    /// Which data it has, where that is known.
    pub(crate) birth: Option<Birth>,
    /// For how long at least it has had them in this life; where there is no mark, for how long it
    /// says that it has run.
    pub(crate) age: Duration,
    /// It writes every change to disk before it answers, so a restart forgets nothing
    /// (`appendonly yes` and `appendfsync always`).
    pub(crate) durable: bool,
    /// It took over from another server, whose grants some clients may have gone on counting for so
    /// long afterwards; zero where it is not known that it did.
    pub(crate) overlap: Duration,
    /// Why it takes no new votes, though it answers.
    pub(crate) refuses: Option<Arc<str>>,
    /// What it needs of its memory, where that has a limit.
    pub(crate) memory: Option<Memory>,
}

/// In bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) used: u64,
    pub(crate) limit: u64,
}

impl Memory {
    /// From 0 to 1, or a little above.
    pub(crate) fn share(self) -> f64 {
        let thousandths = self.used.saturating_mul(1000) / self.limit.max(1);
        f64::from(u32::try_from(thousandths).unwrap_or(u32::MAX)) / 1000.0
    }
}

/// Hears who a voter is, what its channels say, and when they may have gone unheard.
pub(crate) trait Ear: Send + Sync {
    /// A new connection stands, and this is who answers on it. No script runs on a connection
    /// before this was called for it; called for each, the first included. Without a stamp the
    /// server does not tell its time. The server has one shard of the voter, mostly the only one.
    fn met(&self, shard: usize, identity: &Identity, stamp: Option<Stamp>);
    /// The server was asked again on a connection of which was told.
    fn seen(&self, shard: usize, identity: &Identity, stamp: Option<Stamp>);
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
