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
/// It answers as a Redis server does, by the clock of tokio's runtime, which tests can pause, and
/// does what its faults tell it to. See the [module](super) for an example.
#[derive(Clone)]
pub struct EmbeddedVoter(pub(super) Arc<Server>);

impl EmbeddedVoter {
    /// Whether it is the same voter.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

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
    /// Options are few: `PX` and then `GET` of `SET`; `WITHSCORES` of the ranges. Scores are whole
    /// numbers.
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

    /// The channels listened to, sorted, with one entry for each connection and channel.
    pub fn subscriptions(&self) -> Vec<String> {
        self.0.act(|state| state.database.channels.subscriptions().map(str::to_owned).collect())
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

    /// Lets the voter confirm what is written from now on without writing it down, until the next
    /// [`restart`](Self::restart): it then has the data of this moment, and claims to have all.
    /// Clients that have connected meanwhile know better, and so does the holder of a vote that is
    /// missing; they tell the others.
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

    /// Starts the voter again with a copy of the data of another in place of its own, as where the
    /// folder of that one was copied. It claims to have kept all that it ever had.
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

    /// Deletes the fingerprint by which clients know the data, and nothing else. Clients learn of
    /// it as of [`wipe`](Self::wipe), and give the data another name when they look next.
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

    /// Lets each client look so often who the voter is, instead of every ten seconds as at a
    /// server, from its next look on.
    pub fn look_every(&self, interval: Duration) {
        self.0.act(|state| state.look_every = interval);
    }

    /// Deletes all data in place. Clients learn of it from the next answer to an acquisition or a
    /// renewal.
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

    /// Connects a client. To be called on its runtime.
    pub(crate) fn connect(&self, listener: Arc<dyn VoterEvents>, clock: Clock) -> Arc<dyn Node> {
        Arc::new(Connection::open(Arc::clone(&self.0), listener, clock))
    }

    /// Lets the voter claim to have run, and to have forgotten nothing, for so long by now. From
    /// here on that grows with the runtime's time, whatever the voter's own clock does. Its uptime
    /// starts over with each restart, and the time for which its data are known when it loses them.
    ///
    /// Clients are told at each new connection: a voter that is to be old when they meet it is
    /// made so before.
    pub fn set_uptime(&self, uptime: Duration) {
        self.0.act(|state| state.life.claim_uptime(uptime, state.now));
    }

    /// Lets the voter's clock run faster than the runtime's from now on, by `ppm` millionths, or
    /// slower where that is negative; at -1 000 000 and below it stands still. 0 lets it run true
    /// again, with the difference that has come up by then.
    ///
    /// This is the clock that `TIME` shows and that keys expire by. The delays of [`Fault`]s go by
    /// true time. Kills and restarts leave it alone.
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

    /// Sets the voter's clock forward by so many microseconds, or back where that is negative (but
    /// not to before 1970). What has expired before stays gone.
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

    /// Decides about each request as it is sent, and about each message of a channel as it is sent
    /// to one that listens: the faults that `decide` returns are for this one alone and come on top
    /// of those in force. The next call replaces it; `fault_each(|_| Vec::new())` ends it.
    ///
    /// For messages nothing matters but delays on the way `back`, and that
    /// [`DropReplies`](Fault::DropReplies) and [`DropRequests`](Fault::DropRequests) lose them.
    ///
    /// `decide` is called under the voter's lock: it must not call this voter, nor drop what does
    /// (a client, a guard). One that keeps a clone of the voter keeps it alive for ever.
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
        // What is replaced is dropped outside the lock: it may own what calls the voter.
        drop(self.0.act(|state| state.rules.each.replace(Box::new(decide))));
    }

    /// Breaks all connections to the voter. They stand again at once, and clients look again for
    /// messages that they may have missed. Who waits for an answer is told that the connection
    /// broke; answers and messages on their way are lost. A killed voter has no connections.
    ///
    /// What is sent from now on is in no order with the requests in flight that
    /// [arrive](InFlight::Arrives); those of one connection stay in order among themselves. A
    /// [`kill`](Self::kill) loses them after all.
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

    /// Breaks the connections of one client, as [`cut`](Self::cut) does those of all. Clients are
    /// told apart as in [`Ran::client`](super::Ran::client).
    pub fn cut_client(&self, client: &str, in_flight: InFlight) {
        self.0.act(|state| state.cut(in_flight, Some(client)));
    }

    /// Tells each request for which a script ran, right after it ran and before anything else does;
    /// [`command`](Self::command) is not told. There is one observer: the next call replaces it.
    ///
    /// `tell` is called under the voter's lock: it must not call this voter, nor drop what does (a
    /// client, a guard). One that keeps a clone of the voter keeps it alive for ever.
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
        // What is replaced is dropped outside the lock: it may own what calls the voter.
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
