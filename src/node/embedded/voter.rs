use std::{fmt, sync::Arc};

use super::{
    connection::Connection,
    fault::Fault,
    fault_guard::FaultGuard,
    reply::Reply,
    server::{Server, ServerState},
};
use crate::{
    clock::Clock,
    node::{Ear, Node},
};

/// A voter inside the process. Clones are the same voter.
///
/// It answers as a Redis server does, by the clock of tokio's runtime, which tests can pause, and
/// does what its faults tell it to. See the [module](super) for an example.
#[derive(Clone)]
pub struct EmbeddedVoter(pub(super) Arc<Server>);

impl EmbeddedVoter {
    /// Makes an empty voter; its label stands for its address. Its clock begins now: where a test
    /// pauses the time, make it inside the test's runtime.
    ///
    /// ```
    /// let voter = quorate::embedded::EmbeddedVoter::new("north");
    /// assert_eq!(voter.label(), "north");
    /// ```
    pub fn new(label: impl Into<String>) -> Self {
        Self::with_clock(label.into(), Clock::tokio())
    }

    pub(super) fn with_clock(label: String, clock: Clock) -> Self {
        Self(Arc::new(Server::new(label.into(), clock)))
    }

    /// What stands for its address.
    pub fn label(&self) -> &str {
        &self.0.label
    }

    /// Runs one command, `EVAL` included, past all faults but [`kill`](Self::kill).
    ///
    /// It knows the commands that the crate's scripts use and a few more for tests to look and to
    /// plant: `SET GET DEL EXISTS TYPE KEYS FLUSHALL PTTL PEXPIRE PEXPIREAT TIME HSET HGET HDEL
    /// HEXISTS HKEYS HGETALL ZADD ZREM ZSCORE ZRANK ZCARD ZCOUNT ZRANGE ZRANGEBYSCORE PUBLISH`.
    /// Options are few: `PX` of `SET`, and then `GET`; `NX XX GT LT CH` of `ZADD`; `WITHSCORES` of
    /// the ranges.
    ///
    /// # Errors
    ///
    /// The text of the server's error.
    ///
    /// # Examples
    ///
    /// ```
    /// use quorate::embedded::{EmbeddedVoter, Reply};
    ///
    /// let voter = EmbeddedVoter::new("a");
    /// voter.command(&["SET", "greeting", "hello"])?;
    /// let script = "return redis.call('GET', KEYS[1])";
    /// let reply = voter.command(&["EVAL", script, "1", "greeting"])?;
    /// assert_eq!(reply, Reply::Text("hello".into()));
    ///
    /// let error = voter.command(&["HGET", "greeting", "field"]).unwrap_err();
    /// assert!(error.starts_with("WRONGTYPE"));
    /// # Ok::<(), String>(())
    /// ```
    pub fn command(&self, words: &[&str]) -> Result<Reply, String> {
        self.0.act(|state| state.command(words))
    }

    /// The keys there are, sorted.
    pub fn keys(&self) -> Vec<String> {
        self.0.act(|state| state.keys())
    }

    /// The channels listened to, sorted, with one entry for each connection and channel.
    pub fn subscriptions(&self) -> Vec<String> {
        self.0.act(|state| state.subscriptions())
    }

    /// How many scripts ran for clients so far; [`command`](Self::command) counts nothing.
    pub fn commands_seen(&self) -> u64 {
        self.0.act(|state| state.runs.values().sum())
    }

    /// How often one script (`mutex/acquire`, say) ran for clients so far.
    pub fn runs(&self, script_name: &str) -> u64 {
        self.0.act(|state| state.runs.get(script_name).copied().unwrap_or(0))
    }

    /// Kills the voter: its connections break with all that was under way, and nothing reaches it
    /// until a restart. Its data stays, and goes on expiring.
    pub fn kill(&self) {
        self.0.act(ServerState::kill);
    }

    /// Starts the voter again with its data, after a kill or instead of one. Clients are connected
    /// again at once, and hear that it writes down all that it is told.
    pub fn restart(&self) {
        self.0.act(|state| state.restart(true));
    }

    /// Starts the voter again without its data, likewise. It does not claim to write anything down
    /// until the next [`restart`](Self::restart).
    pub fn restart_empty(&self) {
        self.0.act(|state| state.restart(false));
    }

    /// Deletes all data in place. Clients learn of it from the next connection; of a server they
    /// do within ten seconds.
    ///
    /// ```
    /// let voter = quorate::embedded::EmbeddedVoter::new("a");
    /// voter.command(&["SET", "key", "value"])?;
    /// assert_eq!(voter.keys(), ["key"]);
    /// voter.wipe();
    /// assert!(voter.keys().is_empty());
    /// # Ok::<(), String>(())
    /// ```
    pub fn wipe(&self) {
        self.0.act(ServerState::wipe);
    }

    /// Stops the voter as `SIGSTOP` does: requests arrive and wait for [`resume`](Self::resume).
    pub fn stop(&self) {
        self.0.act(ServerState::stop);
    }

    /// Goes on with the requests that have arrived, in their order.
    pub fn resume(&self) {
        self.0.act(ServerState::resume);
    }

    /// Puts a fault in force for the requests sent from now on, until the guard is dropped.
    ///
    /// ```
    /// use quorate::embedded::{EmbeddedVoter, Fault};
    ///
    /// let voter = EmbeddedVoter::new("a");
    /// let fault = voter.fault(Fault::DropReplies);
    /// // What is asked now runs and is never answered.
    /// drop(fault);
    /// ```
    pub fn fault(&self, fault: Fault) -> FaultGuard {
        FaultGuard::new(Arc::clone(&self.0), fault)
    }

    /// Puts a fault in force for the next `requests` requests.
    pub fn fault_next(&self, requests: u64, fault: Fault) {
        self.0.act(|state| state.rules.add(fault, Some(requests)));
    }

    /// Connects a client. To be called on its runtime.
    pub(crate) fn connect(&self, ear: Arc<dyn Ear>, clock: Clock) -> Arc<dyn Node> {
        Arc::new(Connection::open(Arc::clone(&self.0), ear, clock))
    }
}

impl fmt::Debug for EmbeddedVoter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EmbeddedVoter({})", self.0.label)
    }
}
