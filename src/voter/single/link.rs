//! One connection: watched, and able to tell what last went wrong.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
#[cfg(unix)]
use fred::types::config::ServerConfig;
use fred::{
    clients::Client,
    error::{Error, ErrorKind},
    interfaces::{ClientLike, EventInterface},
    types::{
        ConnectHandle, Resp3Frame as Frame,
        config::{Config, ConnectionConfig, Options, PerformanceConfig, Server, TcpConfig},
    },
    util::sha1_hash,
};
use rustc_hash::FxHashMap;
use tokio::{
    sync::{Notify, broadcast},
    time,
};

use super::replies;
use crate::{
    clock::{Clock, Moment},
    proto::Cause,
    scripts::Script,
    voter::{Outcome, lock},
};

/// How often a connection that somebody waits on is asked for a sign of life, if none came.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// How often, in heartbeats, where nobody does: a proxy on the way may close what is idle for a
/// minute.
const IDLE: u32 = 50;
/// How long that sign may take.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long connecting, and each request of fred's own, may take with a server of which nothing is
/// known.
pub(super) const CONNECTING: Duration = Duration::from_secs(1);
/// How many messages wait for the task that hands them on, before all who wait must look again.
/// fred makes room for as many at once in each of its eight kinds of news: 0.7 KB for each.
pub(super) const BACKLOG: usize = 32;
/// The same of a connection on which nobody listens. Of errors only the latest matters.
pub(super) const NO_BACKLOG: usize = 1;
/// The trouble with one that nothing went wrong with until we closed it.
const CLOSED: &str = "connection closed";

/// One connection to one server.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) client: Client,
    /// Which server it goes to: `host:port`, or the path of a unix socket.
    pub(super) place: Arc<str>,
    /// Anything came from the server since somebody looked.
    answered: AtomicBool,
    /// A deadline has passed: is the server still there?
    doubted: Notify,
    /// Give the connection up at once.
    rejected: Notify,
    /// The server is a replica.
    demoted: AtomicBool,
    /// The server packs its replies, so it can read what is packed.
    packs: AtomicBool,
    /// The hashes of the scripts that the server has, as far as is known, by their names. Another
    /// connection may lead to another server, with no scripts yet.
    scripts: Mutex<FxHashMap<&'static str, Bytes>>,
    /// Where replicas are asked for.
    pub(super) acks: AckLine,
    /// Until when scripts may leave; for as long as it stands where nobody has to confirm it.
    trusted: Mutex<Option<Moment>>,
    trouble: Mutex<Trouble>,
}

/// What replicas were asked for, and what of that was heard, on one connection.
#[derive(Debug)]
pub(super) struct AckLine {
    /// How many scripts have left that need replicas.
    pub(super) left: AtomicU64,
    /// What the latest question came to. Locked while one is under way.
    pub(super) heard: Arc<tokio::sync::Mutex<AckHeard>>,
}

#[derive(Debug)]
pub(super) struct AckHeard {
    /// The number of the last script that left before it: what it came to is true of all before.
    pub(super) about: u64,
    pub(super) within: Duration,
    pub(super) count: Outcome<i64>,
}

impl Default for AckLine {
    fn default() -> Self {
        let nothing = AckHeard { about: 0, within: Duration::ZERO, count: Err(Cause::Unheard) };
        Self { left: AtomicU64::new(0), heard: Arc::new(tokio::sync::Mutex::new(nothing)) }
    }
}

#[derive(Debug)]
struct Trouble {
    errors: broadcast::Receiver<(Error, Option<Server>)>,
    latest: Arc<str>,
}

impl Link {
    /// A connection that stands, with the router that keeps it; or why there is none. `patience` is
    /// how long connecting may take.
    ///
    /// It is of one connection at most, so that nothing that was meant for it can leave on another.
    /// With a client that connects again it could: what is asked for between the end of its task
    /// and the next start of it waits in its queue, and goes first.
    pub(super) async fn connected(
        config: Config,
        patience: Duration,
        backlog: usize,
    ) -> Result<(Arc<Self>, Router), Arc<str>> {
        // Without a reconnection policy only a client that fails fast connects at all.
        let config = Config { fail_fast: true, ..config };
        let performance = PerformanceConfig {
            default_command_timeout: patience,
            broadcast_channel_capacity: backlog,
            ..PerformanceConfig::default()
        };
        let connection = ConnectionConfig {
            connection_timeout: patience,
            internal_command_timeout: patience,
            // Any other number sends a request again that may have run.
            max_command_attempts: 1,
            tcp: TcpConfig { nodelay: Some(true), ..TcpConfig::default() },
            ..ConnectionConfig::default()
        };
        let place = place(&config).into();
        let client = Client::new(config, Some(performance), Some(connection), None);
        let trouble = Trouble { errors: client.error_rx(), latest: CLOSED.into() };
        let link = Arc::new(Self {
            client,
            place,
            answered: AtomicBool::new(false),
            doubted: Notify::new(),
            rejected: Notify::new(),
            demoted: AtomicBool::new(false),
            packs: AtomicBool::new(false),
            scripts: Mutex::default(),
            acks: AckLine::default(),
            trusted: Mutex::default(),
            trouble: Mutex::new(trouble),
        });
        let mut connections = link.client.reconnect_rx();
        let mut router = Router(link.client.connect());
        tokio::select! {
            // fred says how long this may take, and what went wrong where the router ends first.
            () = router.ended() => Err(link.trouble()),
            _ = connections.recv() => Ok((link, router)),
        }
    }

    /// For a request that is sent at most once, and not at all where there is no connection.
    pub(super) fn options(deadline: Duration) -> Options {
        Options {
            // Zero would mean no limit at all.
            timeout: Some(deadline.max(Duration::from_millis(1))),
            max_attempts: Some(1),
            fail_fast: true,
            ..Options::default()
        }
    }

    /// Takes note of what came of a request, and puts it into our words.
    pub(super) fn noted(&self, reply: Result<Frame, Error>, deadline: Duration) -> Outcome<Frame> {
        match reply {
            Ok(frame) => {
                self.heard();
                Ok(frame)
            }
            Err(error) => {
                if *error.kind() == ErrorKind::Timeout {
                    self.doubt();
                }
                Err(self.cause(&error, deadline))
            }
        }
    }

    pub(super) fn cause(&self, error: &Error, deadline: Duration) -> Cause {
        replies::cause(error, deadline, || self.trouble())
    }

    /// The server gave a sign of life.
    pub(super) fn heard(&self) {
        self.answered.store(true, Ordering::Relaxed);
    }

    /// Has the server asked for a sign of life.
    pub(super) fn doubt(&self) {
        self.doubted.notify_one();
    }

    /// Has the connection replaced.
    pub(super) fn reject(&self) {
        self.rejected.notify_one();
    }

    /// The server turned out to be a replica: why that is the end.
    pub(super) fn demote(&self) -> Arc<str> {
        self.demoted.store(true, Ordering::Relaxed);
        format!("{} is a replica, which cannot vote", self.place).into()
    }

    /// Whether it was found to be a replica.
    pub(super) fn is_demoted(&self) -> bool {
        self.demoted.load(Ordering::Relaxed)
    }

    /// It has packed a reply.
    pub(super) fn may_pack(&self) {
        self.packs.store(true, Ordering::Relaxed);
    }

    /// Whether arguments may be packed.
    pub(super) fn packs(&self) -> bool {
        self.packs.load(Ordering::Relaxed)
    }

    /// By which hash the server knows a script, if it is known to have it.
    pub(super) fn sha_of(&self, script: &Script) -> Option<Bytes> {
        lock(&self.scripts).get(script.name).cloned()
    }

    /// The script was answered as a whole, so the server has it now.
    pub(super) fn has_script(&self, script: &Script) {
        lock(&self.scripts).insert(script.name, sha1_hash(script.source).into());
    }

    /// The server said that it does not have the script.
    pub(super) fn lacks_script(&self, script: &Script) {
        lock(&self.scripts).remove(script.name);
    }

    /// Scripts may leave until then. However late whoever ends the connection comes to it: a
    /// process that was stopped for a while may send first.
    pub(super) fn trust_until(&self, end: Moment) {
        *lock(&self.trusted) = Some(end);
    }

    /// Whether scripts may leave now.
    pub(super) fn is_trusted(&self) -> bool {
        lock(&self.trusted).is_none_or(|end| Clock::System.now() < end)
    }

    /// What last went wrong. Read when needed, from where fred left it, so it is never out of date.
    pub(super) fn trouble(&self) -> Arc<str> {
        use broadcast::error::TryRecvError::Lagged;
        let mut trouble = lock(&self.trouble);
        loop {
            match trouble.errors.try_recv() {
                Ok((error, _)) => trouble.latest = replies::readable(&error).into(),
                Err(Lagged(_)) => {}
                Err(_) => return Arc::clone(&trouble.latest),
            }
        }
    }

    pub(super) fn blame(&self, why: &str) {
        self.trouble();
        lock(&self.trouble).latest = why.into();
    }

    /// Returns once the connection is to be replaced.
    ///
    /// Not by `force_reconnection`, which waits for a router that may itself be stuck in a write,
    /// and then for up to five seconds until a stalled socket is closed.
    ///
    /// `is_waited_on`: somebody waits for what the server sends without being asked. A request has
    /// a deadline, which is sign enough.
    pub(super) async fn watch(&self, router: &mut Router, is_waited_on: impl Fn() -> bool) {
        tokio::select! {
            () = router.ended() => {}
            () = self.rejected.notified() => self.blame("replies out of step"),
            () = self.silence(is_waited_on) => self.blame("no answer, connection given up"),
        }
    }

    /// Completes when the server does not answer any more.
    async fn silence(&self, is_waited_on: impl Fn() -> bool) {
        let mut silent = 0;
        loop {
            tokio::select! {
                () = self.doubted.notified() => {
                    // That deadline was the first; this is the second. A caller's deadlines may be
                    // shorter than a round trip, so they alone never end a connection.
                    if !self.lives().await {
                        return;
                    }
                }
                () = time::sleep(HEARTBEAT) => {
                    let heard = self.answered.swap(false, Ordering::Relaxed);
                    silent = if heard { 0 } else { silent + 1 };
                    if silent >= (if is_waited_on() { 1 } else { IDLE }) {
                        if !self.lives().await && !self.lives().await {
                            return;
                        }
                        silent = 0;
                    }
                }
            }
        }
    }

    /// Whether the server answers anything at all; true where there is no connection to doubt.
    async fn lives(&self) -> bool {
        if !self.client.is_connected() {
            return true;
        }
        self.answered.store(false, Ordering::Relaxed);
        let options = Self::options(PATIENCE);
        match self.client.with_options(&options).ping::<()>(None).await {
            Err(error) if *error.kind() == ErrorKind::Timeout => {
                self.answered.load(Ordering::Relaxed)
            }
            _ => true,
        }
    }
}

fn place(config: &Config) -> String {
    #[cfg(unix)]
    if let ServerConfig::Unix { path } = &config.server {
        return path.display().to_string();
    }
    config.server.hosts().first().map(ToString::to_string).unwrap_or_default()
}

/// fred's task that owns the socket: the link is over when it ends, or is dropped. Aborted when
/// dropped: it holds itself alive otherwise.
#[derive(Debug)]
pub(super) struct Router(ConnectHandle);

impl Router {
    /// Completes when the task has ended by itself; not to be asked again then.
    pub(super) async fn ended(&mut self) {
        // What it ended with was told as an error of the client before.
        let _ = (&mut self.0).await;
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        self.0.abort();
    }
}
