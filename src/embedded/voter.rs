use std::{fmt, sync::Arc, time::Duration};

use super::{
    commands::Reply,
    data::Record,
    fault::{Fault, InFlight, Ran, Sent},
    server::{Connection, Server, ServerState},
};
use crate::{
    clock::Clock,
    voter::{Node, VoterEvents},
};

/// A voter inside the process. Clones are the same voter.
///
/// It answers as a Redis server does, by the clock of tokio's runtime, which tests can pause. Tests
/// can plant [faults](super::Fault). See the [module](super) for an example.
#[derive(Clone)]
pub struct EmbeddedVoter(pub(super) Arc<Server>);

impl EmbeddedVoter {
    /// Whether it is the same voter.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Makes an empty voter; its label stands for its address. Its clock begins now: if a test
    /// pauses the time, make the voter inside the test's runtime.
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

    /// The text that stands for its address.
    pub fn label(&self) -> &str {
        &self.0.label
    }

    /// Runs one command, also `EVAL`. It meets no [`Fault`], but fails while the voter is
    /// [killed](Self::kill).
    ///
    /// There are the commands that the crate's scripts use, and a few more for tests: `SET GET DEL
    /// EXISTS TYPE KEYS FLUSHALL PTTL PEXPIRE PEXPIREAT TIME HSET HGET HDEL HEXISTS HKEYS HGETALL
    /// ZADD ZREM ZSCORE ZRANK ZCARD ZCOUNT ZRANGE ZRANGEBYSCORE PUBLISH`. Options are few: `PX` and
    /// then `GET` of `SET`; `WITHSCORES` of the ranges. Scores are whole numbers.
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
        self.0.act(|state| state.database.keyspace.keys().map(str::to_owned).collect())
    }

    /// The channels with listeners, sorted, with one entry for each connection and channel.
    pub fn subscriptions(&self) -> Vec<String> {
        self.0.act(|state| state.database.channels.subscriptions().map(str::to_owned).collect())
    }

    /// How many requests for scripts of clients ran so far, without [`command`](Self::command).
    pub fn commands_seen(&self) -> u64 {
        self.0.act(|state| state.runs.values().sum())
    }

    /// How many requests for one script, such as `mutex/acquire`, ran for clients so far.
    pub fn runs(&self, script_name: &str) -> u64 {
        self.0.act(|state| state.runs.get(script_name).copied().unwrap_or(0))
    }

    /// Kills the voter: its connections break with all that was under way, and nothing reaches it
    /// until a restart. Its data stays, and goes on expiring.
    pub fn kill(&self) {
        self.0.act(ServerState::kill);
    }

    /// Starts the voter again with its data, whether or not it was killed. Clients are connected
    /// again at once. The voter says that it writes every change to disk.
    pub fn restart(&self) {
        self.0.act(|state| state.restart(true));
    }

    /// Starts the voter again without its data. Until the next [`restart`](Self::restart) it does
    /// not say that it writes changes to disk.
    pub fn restart_empty(&self) {
        self.0.act(|state| state.restart(false));
    }

    /// From now on the voter confirms changes without writing them to disk. After the next
    /// [`restart`](Self::restart) it has the data of this moment, and says that it lost nothing.
    /// Clients that connected in between notice, and so does the holder of a vote that is missing.
    /// They let the others know.
    ///
    /// ```
    /// let voter = quorate::embedded::EmbeddedVoter::new("a");
    /// voter.command(&["SET", "early", "value"])?;
    /// voter.lose_writes();
    /// voter.command(&["SET", "late", "value"])?;
    /// voter.restart();
    /// assert_eq!(voter.keys(), ["early"]);
    /// # Ok::<(), String>(())
    /// ```
    pub fn lose_writes(&self) {
        self.0.act(ServerState::lose_writes);
    }

    /// Starts the voter again with a copy of another voter's data in place of its own, as if
    /// somebody had copied the folder of the data. It says that it lost nothing.
    ///
    /// ```
    /// let voters = quorate::embedded::voters(2);
    /// voters[0].command(&["SET", "key", "value"])?;
    /// voters[1].restart_with_copy_of(&voters[0]);
    /// assert_eq!(voters[1].keys(), ["key"]);
    /// # Ok::<(), String>(())
    /// ```
    pub fn restart_with_copy_of(&self, other: &Self) {
        let (keyspace, life) =
            other.0.act(|state| (state.database.keyspace.clone(), state.life.clone()));
        self.0.act(|state| state.restart_with_copy(keyspace, &life));
    }

    /// Deletes the fingerprint of the data, and nothing else. Clients notice it as they notice
    /// [`wipe`](Self::wipe), and give the data another name when they look next.
    ///
    /// ```
    /// let voter = quorate::embedded::EmbeddedVoter::new("a");
    /// voter.command(&["SET", "key", "value"])?;
    /// voter.lose_fingerprint();
    /// assert_eq!(voter.keys(), ["key"]);
    /// # Ok::<(), String>(())
    /// ```
    pub fn lose_fingerprint(&self) {
        self.0.act(|state| state.life.lose_fingerprint());
    }

    /// Sets how often each client looks who the voter is, from its next look on. By default every
    /// ten seconds, as at a server.
    pub fn look_every(&self, interval: Duration) {
        self.0.act(|state| state.look_every = interval);
    }

    /// Deletes all data while the voter runs. Clients notice it by the next answer to an
    /// acquisition or a renewal.
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
        self.0.act(|state| state.stop(true));
    }

    /// Goes on with the requests that have arrived, in their order.
    pub fn resume(&self) {
        self.0.act(|state| state.stop(false));
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
        let rule = self.0.act(|state| state.rules.add(fault, None));
        FaultGuard { server: Arc::clone(&self.0), rule }
    }

    /// Puts a fault in force for the next `requests` requests.
    pub fn fault_next(&self, requests: u64, fault: Fault) {
        self.0.act(|state| state.rules.add(fault, Some(requests)));
    }

    /// Connects a client whose timers run on the current runtime.
    pub(crate) fn connect(&self, listener: Arc<dyn VoterEvents>, clock: Clock) -> Arc<dyn Node> {
        Arc::new(Connection::open(Arc::clone(&self.0), listener, clock))
    }

    /// Makes the voter say that it has run, and has forgotten nothing, for this time. Both times
    /// then grow with the runtime's time, whatever the voter's own clock does. The uptime starts
    /// over at each restart; the time without a loss starts over when it loses its data.
    ///
    /// Clients hear it at each new connection, so call this before they connect.
    pub fn set_uptime(&self, uptime: Duration) {
        self.0.act(|state| state.life.claim_uptime(uptime, state.now));
    }

    /// From now on the voter's clock runs faster than the runtime's, by `ppm` millionths, or slower
    /// if that is negative; at -1 000 000 and below it stands still. With 0 it runs as fast as the
    /// runtime's again, and keeps the difference of that moment.
    ///
    /// `TIME` shows this clock, and keys expire by it. The delays of [`Fault`]s go by the runtime's
    /// time. Kills and restarts do not change the clock.
    ///
    /// [`Fault`]: super::Fault
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), String> {
    /// let voter = quorate::embedded::EmbeddedVoter::new("a");
    /// voter.command(&["SET", "key", "value"])?;
    /// voter.command(&["PEXPIRE", "key", "60000"])?;
    /// voter.set_clock_rate(100_000); // a tenth too fast
    /// tokio::time::sleep(Duration::from_secs(10)).await;
    /// assert_eq!(voter.records()[0].left_ms, Some(60_000 - 11_000));
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_clock_rate(&self, ppm: i32) {
        self.0.act(|state| state.machine.set_clock_rate(ppm));
    }

    /// Sets the voter's clock forward by so many microseconds, or back if that is negative (but not
    /// to before 1970). What has expired before stays expired. If a client looked while the clock was
    /// ahead, others notice that it was set back.
    ///
    /// ```
    /// let voter = quorate::embedded::EmbeddedVoter::new("a");
    /// voter.command(&["SET", "key", "value"])?;
    /// voter.command(&["PEXPIRE", "key", "60000"])?;
    /// voter.jump_clock(61_000_000); // a minute and a second forward
    /// assert!(voter.keys().is_empty());
    /// # Ok::<(), String>(())
    /// ```
    pub fn jump_clock(&self, micros: i64) {
        self.0.act(|state| state.jump_clock(micros));
    }

    /// Calls `decide` for each request when it is sent, and for each message of a channel when it
    /// is sent to a listener. The faults that it returns are for this request or message alone, in
    /// addition to the faults in force. The next call replaces `decide`; to end it, call
    /// `fault_each(|_| Vec::new())`.
    ///
    /// Of the faults of a message, only delays on the way `back` have an effect, and
    /// [`DropReplies`](Fault::DropReplies) and [`DropRequests`](Fault::DropRequests), which lose
    /// it.
    ///
    /// `decide` is called under the voter's mutex: it must not call this voter, nor drop what does
    /// (a client, a guard). If it owns a clone of the voter, the voter is never dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use quorate::embedded::Fault;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// let voters = quorate::embedded::voters(1);
    /// let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// let there = Duration::from_millis(5);
    /// voters[0].fault_each(move |sent| match sent.script() {
    ///     Some("mutex/release") => vec![Fault::Delay { there, back: Duration::ZERO }],
    ///     _ => Vec::new(),
    /// });
    /// let guard = quorum.mutex("invoice:42").lock().await?;
    /// let started = tokio::time::Instant::now();
    /// guard.release().await?;
    /// assert_eq!(started.elapsed(), there);
    /// # Ok(())
    /// # }
    /// ```
    pub fn fault_each(&self, decide: impl FnMut(&Sent<'_>) -> Vec<Fault> + Send + 'static) {
        // Dropped outside the mutex: what is replaced may own a client, which calls the voter
        // (`who_decided_or_observed_before_may_own_a_client`).
        drop(self.0.act(|state| state.rules.each.replace(Box::new(decide))));
    }

    /// Breaks all connections to the voter. Clients are connected again at once, and ask again in
    /// case they missed a wake-up. Requests without an answer fail, as the connection broke.
    /// Answers and messages under way are lost. A killed voter has no connections.
    ///
    /// Requests in flight that [arrive](InFlight::Arrives) keep their order on each connection, but
    /// have no order with what is sent from now on. A [`kill`](Self::kill) loses them.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use quorate::embedded::{Fault, InFlight};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// let voters = quorate::embedded::voters(1);
    /// let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// let there = Duration::from_millis(50);
    /// voters[0].fault_next(1, Fault::Delay { there, back: Duration::ZERO });
    /// let cut = async {
    ///     tokio::time::sleep(there / 2).await;
    ///     voters[0].cut(InFlight::Arrives);
    /// };
    /// let mutex = quorum.mutex("invoice:42");
    /// let (error, ()) = tokio::join!(mutex.try_lock(), cut);
    /// assert!(error.unwrap_err().is_no_quorum());
    /// tokio::time::sleep(there).await;
    /// assert_eq!(voters[0].runs("mutex/acquire"), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn cut(&self, in_flight: InFlight) {
        self.0.act(|state| state.cut(in_flight, None));
    }

    /// Breaks the connections of one client, as [`cut`](Self::cut) breaks all. The client is named
    /// as in [`Ran::client`](super::Ran::client).
    pub fn cut_client(&self, client: &str, in_flight: InFlight) {
        self.0.act(|state| state.cut(in_flight, Some(client)));
    }

    /// Calls `tell` for each request of a client for which a script ran, before anything else runs.
    /// There is one observer: the next call replaces it.
    ///
    /// `tell` is called under the voter's mutex: it must not call this voter, nor drop what does (a
    /// client, a guard). If it owns a clone of the voter, the voter is never dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// let voters = quorate::embedded::voters(1);
    /// let seen = Arc::new(Mutex::new(Vec::new()));
    /// let notes = Arc::clone(&seen);
    /// voters[0].observe(move |ran| {
    ///     let granted = ran.answer().is_ok_and(|(code, ..)| code == 1);
    ///     notes.lock().unwrap().push((ran.script(), granted, ran.records().len()));
    /// });
    /// let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// quorum.mutex("invoice:42").lock().await?.release().await?;
    /// // The token stays.
    /// let expected = [("mutex/acquire", true, 2), ("mutex/release", true, 1)];
    /// assert_eq!(*seen.lock().unwrap(), expected);
    /// # Ok(())
    /// # }
    /// ```
    pub fn observe(&self, tell: impl Fn(&Ran<'_>) + Send + Sync + 'static) {
        // Dropped outside the mutex, as in `fault_each`.
        drop(self.0.act(|state| state.observe.replace(Box::new(tell))));
    }

    /// The live keys with their values, sorted.
    ///
    /// ```
    /// let voter = quorate::embedded::EmbeddedVoter::new("a");
    /// voter.command(&["HSET", "lock", "holder", "1"])?;
    /// let records = voter.records();
    /// assert_eq!(records[0].key, "lock");
    /// assert_eq!(records[0].fields, [("holder".to_owned(), "1".to_owned())]);
    /// assert_eq!(records[0].left_ms, None);
    /// # Ok::<(), String>(())
    /// ```
    pub fn records(&self) -> Vec<Record> {
        self.0.act(|state| state.database.keyspace.records().collect())
    }
}

impl fmt::Debug for EmbeddedVoter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EmbeddedVoter({})", self.0.label)
    }
}

/// Keeps a [`Fault`] in force until it is dropped.
#[must_use = "the fault ends when its guard is dropped"]
pub struct FaultGuard {
    server: Arc<Server>,
    rule: u64,
}

impl Drop for FaultGuard {
    fn drop(&mut self) {
        self.server.act(|state| state.rules.remove(self.rule));
    }
}

impl fmt::Debug for FaultGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FaultGuard({} of {})", self.rule, self.server.label)
    }
}
