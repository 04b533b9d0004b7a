//! One connection: watched, able to tell what last went wrong, and asked for replicas.
//!
//! `WAIT` tells how many replicas have what was written before it on its own connection, and the
//! server does nothing else for that connection meanwhile. So it leaves with the script, right
//! behind it, but only where none is under way: one at a time holds up whatever else there is to
//! do, and as few do as possible. Scripts that leave meanwhile run together as soon as it is
//! answered, and one more, for all of them, follows their answers.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use rustc_hash::FxHashMap;
use tokio::{
    sync::{Notify, OwnedMutexGuard},
    time,
};

use super::{
    carrier::{
        Argument, Carrier, Config, ConnectFailure, Frame, Raw, Router, Server, ServerConfig,
        Unanswered, at_once,
    },
    names::addresses,
    wire,
};
use crate::{
    clock::{Clock, Moment},
    proto::{Cause, Reason, Rounded},
    scripts::Value,
    settings::ReplicaAcks,
    voter::{Identity, Outcome, Stamp, contract::begin, lock},
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
    pub(super) carrier: Carrier,
    /// Which server it goes to: `host:port`, or the path of a unix socket.
    pub(super) place: Arc<str>,
    /// Who answers, once that is known.
    pub(super) known: OnceLock<Met>,
    /// Anything came from the server since somebody looked.
    pub(super) answered: AtomicBool,
    /// A deadline has passed: is the server still there?
    pub(super) doubted: Notify,
    /// Give the connection up at once.
    rejected: Notify,
    /// The server was found to be a replica.
    pub(super) is_demoted: AtomicBool,
    /// The server packs its replies, so it can read what is packed.
    pub(super) packs: AtomicBool,
    /// The hashes of the scripts that the server has, as far as is known, by their names. Another
    /// connection may lead to another server, with no scripts yet.
    pub(super) scripts: Mutex<FxHashMap<&'static str, Bytes>>,
    /// How many scripts have left that need replicas.
    left: AtomicU64,
    /// What the latest question for replicas came to. Locked while one is under way.
    acknowledged: Arc<tokio::sync::Mutex<Acknowledged>>,
    /// Until when scripts may leave; for as long as it stands where nobody has to confirm it. Then
    /// they may not, however late whoever ends the connection comes to it: a process that was
    /// stopped for a while may send first.
    pub(super) trusted: Mutex<Option<Moment>>,
    /// What last went wrong, as far as it was heard.
    trouble: Mutex<Reason>,
}

/// What a server said of itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Met {
    pub(super) identity: Identity,
    /// `None` where it does not tell its time.
    pub(super) stamp: Option<Stamp>,
    /// The server's life, as its fingerprint names it.
    pub(super) life: String,
    /// Which one it is in, where it was promoted.
    pub(super) tenure: Option<String>,
    /// Why votes may be gone before their time, although it answers.
    pub(super) evicts: Option<Reason>,
    /// It was set up to have a change on disk when it answers.
    pub(super) syncs: bool,
}

/// What a question for replicas came to.
#[derive(Debug)]
struct Acknowledged {
    /// The number of the last script that left before it: what it came to is true of all before.
    about: u64,
    within: Duration,
    count: Outcome<i64>,
}

impl Link {
    /// A connection that stands, with the router that keeps it; or why there is none. `patience` is
    /// how long the look-up of a name may be waited for, and how long an address may take then.
    /// `latest`: see [`addresses`].
    ///
    /// fred looks names up on threads of the runtime, so it gets numbers only. These it has read on
    /// such a thread, too, which takes no time.
    pub(super) async fn connected(
        config: Config,
        latest: &mut Option<Moment>,
        patience: Duration,
        backlog: usize,
    ) -> Result<(Arc<Self>, Router), Reason> {
        let place: Arc<str> = place(&config).into();
        let ServerConfig::Centralized { server } = config.server.clone() else {
            let connecting = Self::connected_at(config, place, patience, backlog);
            return connecting.await.map_err(|failure| failure.why.unwrap_or_else(closed));
        };
        let Ok(found) = time::timeout(patience, addresses(&server.host, latest)).await else {
            let (host, patience) = (server.host, Rounded(patience));
            return Err(format!("no address of `{host}` is known after {patience}").into());
        };
        let mut why = None;
        for address in found? {
            let server = Server { host: numeric(address).into(), ..server.clone() };
            let config = Config { server: ServerConfig::Centralized { server }, ..config.clone() };
            match Self::connected_at(config, Arc::clone(&place), patience, backlog).await {
                Ok(connected) => return Ok(connected),
                Err(ConnectFailure { why: told, has_answered }) => {
                    why = told;
                    if has_answered {
                        break;
                    }
                }
            }
        }
        Err(why.unwrap_or_else(closed))
    }

    async fn connected_at(
        config: Config,
        place: Arc<str>,
        patience: Duration,
        backlog: usize,
    ) -> Result<(Arc<Self>, Router), ConnectFailure> {
        let (carrier, router) = Carrier::connect(config, patience, backlog).await?;
        let count = Err(Cause::Unheard);
        let nothing = Acknowledged { about: 0, within: Duration::ZERO, count };
        let link = Arc::new(Self {
            carrier,
            place,
            known: OnceLock::new(),
            answered: AtomicBool::new(false),
            doubted: Notify::new(),
            rejected: Notify::new(),
            is_demoted: AtomicBool::new(false),
            packs: AtomicBool::new(false),
            scripts: Mutex::default(),
            left: AtomicU64::new(0),
            acknowledged: Arc::new(tokio::sync::Mutex::new(nothing)),
            trusted: Mutex::default(),
            trouble: Mutex::new(closed()),
        });
        Ok((link, router))
    }

    /// Takes note of what came of a request, and puts it into our words.
    pub(super) fn noted(&self, reply: Raw, deadline: Duration) -> Outcome<Frame> {
        match reply {
            Ok(frame) => {
                self.answered.store(true, Ordering::Relaxed);
                Ok(frame)
            }
            Err(why) => {
                if why == Unanswered::TimedOut {
                    self.doubted.notify_one();
                }
                Err(self.cause(why, deadline))
            }
        }
    }

    pub(super) fn cause(&self, why: Unanswered, deadline: Duration) -> Cause {
        match why {
            Unanswered::NeverSent(_) => Cause::Unreachable(self.trouble()),
            Unanswered::TimedOut => Cause::TimedOut(deadline),
            Unanswered::Broken(why) => Cause::Broken(why),
        }
    }

    /// The server turned out to be a replica: why that is the end.
    pub(super) fn demote(&self) -> Reason {
        self.is_demoted.store(true, Ordering::Relaxed);
        let why = Reason::from(format!("{} is a replica, which cannot vote", self.place));
        self.reject(why.clone());
        why
    }

    /// Has the connection given up at once.
    pub(super) fn reject(&self, why: impl Into<Reason>) {
        self.blame(why);
        self.rejected.notify_one();
    }

    /// What last went wrong.
    pub(super) fn trouble(&self) -> Reason {
        let mut trouble = lock(&self.trouble);
        if let Some(latest) = self.carrier.latest_error() {
            *trouble = latest;
        }
        trouble.clone()
    }

    pub(super) fn blame(&self, why: impl Into<Reason>) {
        self.trouble();
        *lock(&self.trouble) = why.into();
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
            () = self.rejected.notified() => {}
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
        if !self.carrier.is_connected() {
            return true;
        }
        self.answered.store(false, Ordering::Relaxed);
        match self.carrier.ping(PATIENCE).await {
            Err(Unanswered::TimedOut) => self.answered.load(Ordering::Relaxed),
            _ => true,
        }
    }
}

fn closed() -> Reason {
    CLOSED.into()
}

/// With the zone of an IPv6 address that has one.
fn numeric(address: SocketAddr) -> String {
    let text = address.to_string();
    text.rsplit_once(':').map_or_else(String::new, |(host, _)| host.to_owned())
}

fn place(config: &Config) -> String {
    #[cfg(unix)]
    if let ServerConfig::Unix { path } = &config.server {
        return path.display().to_string();
    }
    config.server.hosts().first().map(ToString::to_string).unwrap_or_default()
}

/// What the grant of a script that has left needs in order to count.
pub(super) struct AcksNeeded {
    acks: ReplicaAcks,
    left: Duration,
    deadline: Duration,
    link: Arc<Link>,
    sent: Moment,
    /// How many scripts had left.
    number: u64,
}

impl AcksNeeded {
    /// A script has just left: asks right behind it, where nobody asks.
    pub(super) fn behind(
        link: &Arc<Link>,
        acks: ReplicaAcks,
        left: Duration,
        deadline: Duration,
    ) -> Self {
        let number = 1 + link.left.fetch_add(1, Ordering::AcqRel);
        let (link, sent) = (Arc::clone(link), Clock::System.now());
        let this = Self { acks, left, deadline, link, sent, number };
        if let Ok(line) = Arc::clone(&this.link.acknowledged).try_lock_owned() {
            this.ask(line);
        }
        this
    }

    /// Whether enough replicas have in time what the script wrote.
    pub(super) async fn acknowledged(self) -> Outcome<()> {
        let rest = self.left.saturating_sub(Clock::System.now().since(self.sent));
        let counted = time::timeout(rest, self.counted()).await;
        counted.unwrap_or(Err(Cause::TimedOut(self.deadline)))
    }

    async fn counted(&self) -> Outcome<()> {
        loop {
            let line = Arc::clone(&self.link.acknowledged).lock_owned().await;
            if self.number > line.about {
                self.ask(line);
                continue;
            }
            let (count, needed) = (line.count.clone()?, self.acks.replicas);
            if count >= i64::from(needed) {
                return Ok(());
            }
            let acknowledged = u32::try_from(count).unwrap_or(0);
            return Err(Cause::Unacknowledged { acknowledged, needed, within: line.within });
        }
    }

    /// Asks for replicas of all that has left so far. Leaves at once.
    fn ask(&self, mut line: OwnedMutexGuard<Acknowledged>) {
        let about = self.link.left.load(Ordering::Acquire);
        let (within, deadline) = (self.acks.within(self.left), self.deadline);
        let within_ms = i64::try_from(within.as_millis()).unwrap_or(i64::MAX);
        let arguments = [i64::from(self.acks.replicas), within_ms].map(Argument::Integer).to_vec();
        let wait = begin(self.link.carrier.command(&at_once(self.left), "WAIT", arguments));
        // Whoever asked may go before it is answered, and others wait for the answer.
        tokio::spawn(async move {
            *line = Acknowledged { about, within, count: count(wait.await, deadline) };
        });
    }
}

/// How many replicas there were.
fn count(reply: Raw, deadline: Duration) -> Outcome<i64> {
    let frame = reply.map_err(|why| match why {
        Unanswered::TimedOut => Cause::TimedOut(deadline),
        // Whether it was sent or not: the script was.
        Unanswered::NeverSent(why) | Unanswered::Broken(why) => Cause::Broken(why),
    })?;
    match wire::value(frame)? {
        Value::Int(count) => Ok(count),
        other => Err(Cause::Rejected(format!("unexpected answer to WAIT: {other:?}").into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn a_question_without_a_count_may_have_been_sent() {
        let of = |why| count(Err(why), MS(200)).unwrap_err();
        assert_eq!(of(Unanswered::TimedOut), Cause::TimedOut(MS(200)));
        assert_eq!(of(Unanswered::NeverSent("closed".into())), Cause::Broken("closed".into()));
        let other = count(Ok(Frame::Null), MS(200)).unwrap_err();
        assert!(matches!(other, Cause::Rejected(_)), "{other}");
    }
}
