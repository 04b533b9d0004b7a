//! One connection, and whether it still works; and the acknowledgements of replicas.

// `WAIT` says how many replicas have what its connection wrote before, and the server does nothing
// else for that connection meanwhile. So one `WAIT` at most is under way. It leaves right behind
// its script; one more, for all scripts that left meanwhile, follows its answer. With one behind
// each script, 64 tasks got 21 locks a second from a voter whose replica was 5 ms away, and 1,328
// with this.

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
    names::NAMES,
    wire,
};
use crate::{
    clock::{Clock, Moment},
    proto::{Cause, Reason, Rounded},
    scripts::Value,
    settings::ReplicaAcks,
    voter::{Identity, Outcome, Stamp, contract::begin, lock},
};

/// How long a connection on which a task waits may be without an answer before it gets a `PING`.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// How many such times if no task waits.
// 50 s, as a proxy on the way may close a connection that is idle for a minute. Not more often: an
// idle client sends few commands, and a server may have thousands of clients.
const IDLE: u32 = 50;
/// How long the answer to that `PING` may take.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long connecting, and each of fred's own requests, may take with a server that was not
/// reached yet.
pub(super) const CONNECTING: Duration = Duration::from_secs(1);
/// How many messages may wait on the connection that listens, before all waiters must ask again.
// fred makes room for as many in each of its eight channels at once, 0.7 KB for each. More messages
// at a time wake all waiters, which costs requests and no lock.
pub(super) const BACKLOG: usize = 32;
/// The same for the other connections. Of errors only the latest matters.
pub(super) const NO_BACKLOG: usize = 1;
/// What went wrong with a connection that only this side closed.
const CLOSED: &str = "connection closed";

/// One connection to one server.
pub(super) struct Link {
    pub(super) carrier: Carrier,
    /// Which server it goes to: `host:port`, or the path of a unix socket.
    pub(super) place: Arc<str>,
    /// The inspection of the server, once it may be used.
    pub(super) inspection: OnceLock<Inspection>,
    /// Whether anything came from the server since this was last reset.
    pub(super) answered: AtomicBool,
    /// Wakes the task that checks whether the server still answers: a deadline has passed.
    pub(super) suspected: Notify,
    /// Ends the connection at once.
    rejected: Notify,
    /// The server was found to be a replica.
    pub(super) is_demoted: AtomicBool,
    /// The server packs its replies, so it can unpack arguments.
    pub(super) packs: AtomicBool,
    /// The hashes of the scripts that the server has, by their names.
    // For each connection, as the next one may lead to another server, or to one that restarted.
    pub(super) scripts: Mutex<FxHashMap<&'static str, Bytes>>,
    /// How many scripts have left that replicas must acknowledge.
    sent: AtomicU64,
    /// The answer to the latest `WAIT`. Locked while one is under way.
    acknowledged: Arc<tokio::sync::Mutex<Acknowledged>>,
    /// Until when scripts may leave. `None`: no sentinels have to confirm the server.
    pub(super) trusted: Mutex<Option<Moment>>,
    /// What went wrong last.
    trouble: Mutex<Reason>,
}

/// What a server said of itself.
pub(super) struct Inspection {
    pub(super) identity: Identity,
    /// `None` if it does not tell its time.
    pub(super) stamp: Option<Stamp>,
    /// The server's life, as its fingerprint names it: another one after each start and promotion.
    pub(super) life: String,
    /// The tenure of a server that was promoted.
    pub(super) tenure: Option<String>,
    /// Why it may delete votes, if it may.
    pub(super) evicts: Option<Reason>,
    /// Whether it writes each change to disk before it answers.
    pub(super) syncs: bool,
}

/// The answer to a `WAIT`.
struct Acknowledged {
    /// The number of the last script that left before the `WAIT`. The answer holds for all before.
    about: u64,
    within: Duration,
    count: Outcome<i64>,
}

impl Link {
    /// Connects. `patience`: how long the look-up of a name, and then each address, may take.
    /// `latest`: see [`NAMES`].
    // fred looks names up on threads of the runtime's pool, where a slow name server would hold up
    // all voters. So it gets numbers only.
    pub(super) async fn connect(
        config: Config,
        latest: &mut Option<Moment>,
        patience: Duration,
        backlog: usize,
    ) -> Result<(Arc<Self>, Router), Reason> {
        let place: Arc<str> = place(&config).into();
        let ServerConfig::Centralized { server } = config.server.clone() else {
            let connecting = Self::connect_at(config, place, patience, backlog);
            return connecting
                .await
                .map_err(|failure| failure.why.unwrap_or_else(|| CLOSED.into()));
        };
        let found = NAMES.addresses(&server.host, latest);
        let Ok(found) = time::timeout(patience, found).await else {
            let (host, patience) = (server.host, Rounded(patience));
            return Err(format!("no address of `{host}` is known after {patience}").into());
        };
        let mut why = None;
        for address in found? {
            let server = Server { host: numeric(address).into(), ..server.clone() };
            let config = Config { server: ServerConfig::Centralized { server }, ..config.clone() };
            match Self::connect_at(config, Arc::clone(&place), patience, backlog).await {
                Ok(connected) => return Ok(connected),
                Err(failure) => {
                    why = failure.why;
                    // A wrong password is wrong at every address, and the error of the last one
                    // would hide it.
                    if failure.has_answered {
                        break;
                    }
                }
            }
        }
        Err(why.unwrap_or_else(|| CLOSED.into()))
    }

    async fn connect_at(
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
            inspection: OnceLock::new(),
            answered: AtomicBool::new(false),
            suspected: Notify::new(),
            rejected: Notify::new(),
            is_demoted: AtomicBool::new(false),
            packs: AtomicBool::new(false),
            scripts: Mutex::default(),
            sent: AtomicU64::new(0),
            acknowledged: Arc::new(tokio::sync::Mutex::new(nothing)),
            trusted: Mutex::default(),
            trouble: Mutex::new(CLOSED.into()),
        });
        Ok((link, router))
    }

    /// Notes what came of a request.
    pub(super) fn note_reply(&self, reply: Raw, deadline: Duration) -> Outcome<Frame> {
        match &reply {
            Ok(_) => self.answered.store(true, Ordering::Relaxed),
            Err(Unanswered::TimedOut) => self.suspected.notify_one(),
            Err(_) => {}
        }
        reply.map_err(|why| self.cause(why, deadline))
    }

    pub(super) fn cause(&self, why: Unanswered, deadline: Duration) -> Cause {
        match why {
            // fred only says that it did not send the command. Why the connection ended says more.
            Unanswered::NeverSent(_) => Cause::Unreachable(self.trouble()),
            Unanswered::TimedOut => Cause::TimedOut(deadline),
            Unanswered::Broken(why) => Cause::Broken(why),
        }
    }

    /// Ends the connection, as the server is a replica. Returns the reason.
    pub(super) fn demote(&self) -> Reason {
        self.is_demoted.store(true, Ordering::Relaxed);
        let why = Reason::from(format!("{} is a replica, which cannot vote", self.place));
        self.reject(why.clone());
        why
    }

    /// Ends the connection at once.
    pub(super) fn reject(&self, why: impl Into<Reason>) {
        self.set_trouble(why);
        self.rejected.notify_one();
    }

    /// What went wrong last.
    pub(super) fn trouble(&self) -> Reason {
        let mut trouble = lock(&self.trouble);
        if let Some(latest) = self.carrier.latest_error() {
            *trouble = latest;
        }
        trouble.clone()
    }

    pub(super) fn set_trouble(&self, why: impl Into<Reason>) {
        // Takes out fred's latest error first, which would otherwise replace this reason later.
        self.trouble();
        *lock(&self.trouble) = why.into();
    }

    /// Completes when the connection must be replaced. `is_waited_on`: whether a task waits for
    /// messages, which come without a request.
    // Not by fred's `force_reconnection`: it waits for a router that may itself be stuck in a
    // write, and then for up to five seconds until a stalled socket is closed. Nor by fred's
    // watchdog for unresponsive servers, which never fires while commands are sent.
    pub(super) async fn watch(&self, router: &mut Router, is_waited_on: impl Fn() -> bool) {
        tokio::select! {
            () = router.ended() => {}
            () = self.rejected.notified() => {}
            () = self.until_unresponsive(is_waited_on) => {
                self.set_trouble("no answer, connection given up");
            }
        }
    }

    /// Completes when the server does not answer any more.
    async fn until_unresponsive(&self, is_waited_on: impl Fn() -> bool) {
        let mut beats = 0;
        loop {
            tokio::select! {
                () = self.suspected.notified() => {
                    // A request was not answered by its deadline, which may be shorter than a round
                    // trip. So it alone never ends a connection: it takes a `PING` without answer.
                    if !self.answers().await {
                        return;
                    }
                }
                () = time::sleep(HEARTBEAT) => {
                    let answered = self.answered.swap(false, Ordering::Relaxed);
                    beats = if answered { 0 } else { beats + 1 };
                    // A request has a deadline. Only of messages nobody knows when they are due.
                    if beats >= (if is_waited_on() { 1 } else { IDLE }) {
                        // Two, as no request was late before. A pause of a second is no end.
                        if !self.answers().await && !self.answers().await {
                            return;
                        }
                        beats = 0;
                    }
                }
            }
        }
    }

    /// Whether the server answers anything at all.
    async fn answers(&self) -> bool {
        // Then the end of the router is near, which has a better reason.
        if !self.carrier.is_connected() {
            return true;
        }
        self.answered.store(false, Ordering::Relaxed);
        match self.carrier.ping(PATIENCE).await {
            // An answer to another command is as good: the `PING` may wait behind a slow script.
            Err(Unanswered::TimedOut) => self.answered.load(Ordering::Relaxed),
            _ => true,
        }
    }
}

/// The host of an address, with the zone of an IPv6 address that has one.
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

/// The acknowledgements that a script needs whose grants shall count.
pub(super) struct AcksNeeded {
    acks: ReplicaAcks,
    left: Duration,
    deadline: Duration,
    link: Arc<Link>,
    sent: Moment,
    /// The number of the script on its connection.
    number: u64,
}

impl AcksNeeded {
    /// For a script that has just left. Sends `WAIT` behind it, unless one is under way.
    pub(super) fn behind(
        link: &Arc<Link>,
        acks: ReplicaAcks,
        left: Duration,
        deadline: Duration,
    ) -> Self {
        let number = 1 + link.sent.fetch_add(1, Ordering::AcqRel);
        let (link, sent) = (Arc::clone(link), Clock::System.now());
        let this = Self { acks, left, deadline, link, sent, number };
        if let Ok(latest) = Arc::clone(&this.link.acknowledged).try_lock_owned() {
            this.ask(latest);
        }
        this
    }

    /// Fails unless enough replicas have in time what the script wrote.
    pub(super) async fn acknowledged(self) -> Outcome<()> {
        let rest = self.left.saturating_sub(Clock::System.now().since(self.sent));
        let answer = time::timeout(rest, async {
            loop {
                let latest = Arc::clone(&self.link.acknowledged).lock_owned().await;
                if self.number <= latest.about {
                    break latest;
                }
                // The first to find an answer from before its script asks for all that have left.
                self.ask(latest);
            }
        });
        let latest = answer.await.map_err(|_| Cause::TimedOut(self.deadline))?;
        let (count, needed) = (latest.count.clone()?, self.acks.replicas);
        if count >= i64::from(needed) {
            return Ok(());
        }
        let acknowledged = u32::try_from(count).unwrap_or(0);
        Err(Cause::Unacknowledged { acknowledged, needed, within: latest.within })
    }

    /// Sends `WAIT` for all scripts that have left so far.
    fn ask(&self, mut latest: OwnedMutexGuard<Acknowledged>) {
        let about = self.link.sent.load(Ordering::Acquire);
        let (within, deadline) = (self.acks.within(self.left), self.deadline);
        let within_ms = i64::try_from(within.as_millis()).unwrap_or(i64::MAX);
        let arguments = [i64::from(self.acks.replicas), within_ms].map(Argument::Integer).to_vec();
        let wait = begin(self.link.carrier.command(&at_once(self.left), "WAIT", arguments));
        // A task of its own: the caller may be dropped before the answer, for which others wait.
        tokio::spawn(async move {
            *latest = Acknowledged { about, within, count: count(wait.await, deadline) };
        });
    }
}

/// The number of replicas in an answer to `WAIT`.
fn count(reply: Raw, deadline: Duration) -> Outcome<i64> {
    let frame = reply.map_err(|why| match why {
        Unanswered::TimedOut => Cause::TimedOut(deadline),
        // Never `Unreachable`, which would say that nothing ran: the script has left before.
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
