//! A voter that is one Redis server.
//!
//! It has two connections: one for scripts, and one that listens. A task keeps both up, watches
//! whether the server still answers, and replaces a connection on which it does not. On each new
//! connection for scripts it asks the server who it is, before any script leaves on it.

// Why two connections, and why fred never reconnects: design 4.

mod access;
mod address;
mod carrier;
mod connection;
mod credentials;
mod dial;
mod identity;
mod link;
mod listen;
mod names;
#[cfg(feature = "tls")]
mod tls;
mod wire;

#[cfg(test)]
mod tests;

use std::{
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::{
    FutureExt,
    future::{self, BoxFuture, Either},
};
use rustc_hash::FxHashMap;
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinSet,
    time,
};

pub(super) use self::dial::Inquirer;
#[cfg(feature = "tls")]
pub use self::tls::Tls;
pub(crate) use self::{access::Access, carrier::sha1_hash, credentials::Provider};
pub use self::{address::Address, credentials::Credentials};
use self::{
    carrier::{Frame, Raw, at_once},
    identity::{ask, look_call},
    link::{AcksNeeded, Inspection, Link},
    listen::{Channel, Channels, ListenWish},
};
use super::{
    Answers, Call, Identity, KeySearch, KeysFound, Node, Outcome, VoterEvents,
    contract::begin,
    lock,
    seat::{Seat, hash_tag},
};
use crate::{
    clock::Clock,
    proto::{Cause, Reason, ServerReport},
    scripts::{Answer, Fingerprint},
    settings::ReplicaAcks,
};

/// How long a server may take to say who it is.
const IDENTIFICATION: Duration = Duration::from_secs(3);
/// The pause after a connection that stood for a while has ended. It doubles with each attempt.
const PAUSE: Duration = Duration::from_millis(10);
/// The longest pause between two attempts to connect.
const LONGEST: Duration = Duration::from_millis(500);
/// Why a request that the server did not run is not sent again.
const OVERTAKEN: &str = "and not sent again because later requests have overtaken it";
/// Why no script can be sent before the first attempt to connect has ended.
const UNTRIED: &str = "not connected yet";
/// Why no script may be sent although a connection stands.
const UNCONFIRMED: &str = "no majority of the sentinels has named this server recently";

/// TLS and credentials for all addresses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Security {
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<Tls>,
    /// For addresses without credentials.
    pub(crate) credentials: Option<Provider>,
}

/// How to inspect a server before it may vote.
#[derive(Clone, Debug, Default)]
pub(crate) struct InspectionSettings {
    /// The replicas that must acknowledge its grants.
    pub(crate) acks: ReplicaAcks,
    /// The key of its fingerprint, if it has one.
    pub(crate) fingerprint: Option<Arc<str>>,
    /// Whether it may delete keys when its memory is full.
    pub(crate) may_evict: bool,
    /// The shard of the voter that it has.
    pub(crate) shard: usize,
    /// The voter's seat, if the server belongs to a cluster. Keys and channels have other names
    /// there.
    pub(crate) seat: Option<Seat>,
}

/// A single server. Its tasks end with [`Node::close`] or when it is dropped.
pub(crate) struct SingleNode {
    label: Arc<str>,
    pub(super) runner: Arc<Runner>,
    wishes: mpsc::UnboundedSender<ListenWish>,
    tasks: Mutex<JoinSet<()>>,
}

impl SingleNode {
    /// Starts to connect, and goes on until it is closed or dropped. To be called on a runtime.
    pub(crate) fn start(
        access: &Access,
        listener: Arc<dyn VoterEvents>,
        looks: InspectionSettings,
    ) -> Arc<Self> {
        let has_sentinels = access.sentinels.is_some();
        let runner = Arc::new(Runner { looks, has_sentinels, ..Runner::default() });
        let (wishes, asked) = mpsc::unbounded_channel();
        let channels = Channels::new(asked);

        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&runner).keep(access.clone(), listener, channels));
        #[cfg(feature = "tls")]
        if let Some(tls) = &access.tls {
            tasks.spawn(Arc::clone(tls).watch_certificate());
        }

        let label = Arc::clone(access.label());
        Arc::new(Self { label, runner, wishes, tasks: Mutex::new(tasks) })
    }

    /// Listens to a channel, or leaves it.
    fn wish(&self, channel: Arc<str>, listen: bool) -> BoxFuture<'static, Outcome<()>> {
        let channel = match self.runner.looks.seat {
            Some(seat) => {
                let name = seat.name(&channel);
                // The channel of a lock has the slot of its keys, and stays with the server of that
                // slot. On any other channel, a message goes to all servers of the cluster.
                Channel { sharded: hash_tag(&name) != &*name, name }
            }
            None => Channel { name: channel, sharded: false },
        };
        let (answer, answered) = oneshot::channel();
        // After `close`, this drops the wish, and with it the sender of the answer.
        let _ = self.wishes.send(ListenWish { channel, listen, answer });
        let runner = Arc::clone(&self.runner);
        async move {
            answered.await.unwrap_or_else(|_| Err(Cause::Unreachable(runner.gate.trouble())))
        }
        .boxed()
    }
}

impl Node for SingleNode {
    fn send(&self, call: Call) -> BoxFuture<'static, Answers> {
        begin(Arc::clone(&self.runner).run(call, false))
    }

    fn subscribe(&self, channel: Arc<str>) -> BoxFuture<'static, Outcome<()>> {
        self.wish(channel, true)
    }

    fn unsubscribe(&self, channel: Arc<str>) -> BoxFuture<'static, Outcome<()>> {
        self.wish(channel, false)
    }

    fn identify(&self) -> BoxFuture<'static, Outcome<Identity>> {
        let runner = Arc::clone(&self.runner);
        begin(async move {
            // Right after the start, the answer would otherwise be that it is not connected yet: a
            // client came back with a bare majority of five healthy servers.
            let _ = time::timeout(IDENTIFICATION, runner.gate.until_tried()).await;
            runner.identity().await
        })
    }

    fn rename(&self, _: usize) -> BoxFuture<'static, Outcome<()>> {
        let runner = Arc::clone(&self.runner);
        async move {
            let link = runner.gate.pass()?;
            match link.inspection.get() {
                Some(inspection) => identity::rename(&link, inspection).await,
                None => Ok(()),
            }
        }
        .boxed()
    }

    fn survey(&self, calls: Arc<str>) -> BoxFuture<'static, Outcome<Vec<ServerReport>>> {
        let (server, runner) = (self.label.to_string(), Arc::clone(&self.runner));
        async move { Ok(vec![ServerReport { server, info: runner.survey(calls).await }]) }.boxed()
    }

    fn search(&self, search: KeySearch) -> BoxFuture<'static, Outcome<KeysFound>> {
        Arc::clone(&self.runner).search(search).boxed()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        let mut tasks = std::mem::take(&mut *lock(&self.tasks));
        async move { tasks.shutdown().await }.boxed()
    }
}

/// Sends scripts by the connection that stands: at most once, in order, answered by their deadline.
#[derive(Default)]
pub(in crate::voter) struct Runner {
    pub(in crate::voter) gate: Gate,
    order: Order,
    looks: InspectionSettings,
    /// Whether sentinels name the server.
    has_sentinels: bool,
    /// Whether the latest look could read the fingerprint, and a script may read it too.
    is_named: AtomicBool,
    /// Whether the latest look could not read the fingerprint, on whichever connection.
    is_unmarked: AtomicBool,
}

impl Runner {
    /// Sends when first polled. `asking`: the slot of the call is moving to this server.
    pub(in crate::voter) async fn run(self: Arc<Self>, call: Call, asking: bool) -> Answers {
        let answers = self.answers(&call, asking).await;
        answers.unwrap_or_else(|cause| call.all_failed(&cause))
    }

    async fn answers(&self, call: &Call, asking: bool) -> Outcome<Answers> {
        let (link, left) = (self.gate.pass()?, Clock::System.now());
        let departed = self.order.leave(call);
        let sha = lock(&link.scripts).get(call.script.name).cloned();
        let mut answers = self.send(&link, call, sha, asking, call.deadline).await?;
        let rest = call.deadline.saturating_sub(Clock::System.now().since(left));
        if rest.is_zero() || !answers.iter().all(wire::is_unknown_script) {
            return Ok(answers);
        }
        // The server forgot the script and ran nothing, so the call may leave again, with its text.
        let open = departed.still_latest((0..answers.len()).collect(), &mut answers);
        if !open.is_empty() {
            let again = self.send(&link, &call.pick(&open), None, asking, rest).await?;
            for (request, answer) in open.into_iter().zip(again) {
                answers[request] = answer;
            }
        }
        Ok(answers)
    }

    /// Sends the script by its hash (`sha`), or by its text if the server may not have it, and the
    /// question for replicas right behind it.
    async fn send(
        &self,
        link: &Arc<Link>,
        call: &Call,
        sha: Option<Bytes>,
        asking: bool,
        left: Duration,
    ) -> Outcome<Answers> {
        let Call { script, deadline, .. } = *call;
        let has_text = sha.is_none();
        let sent = self.command(link, call, sha, asking, left);
        let acks = self.looks.acks;
        let needs_acks = acks.replicas > 0 && script.votes;
        // The script must leave first: `WAIT` asks about what its connection has written before.
        let sent = if needs_acks { begin(sent) } else { sent };
        let needed = needs_acks.then(|| AcksNeeded::behind(link, acks, left, deadline));
        let request = async {
            let mut answers = self.read(link, link.note_reply(sent.await, deadline)?, call);
            let granted = |answer: &Outcome<Answer>| answer.as_ref().is_ok_and(Answer::is_done);
            // A refusal needs no replica.
            if let Some(needed) = needed
                && answers.iter().any(granted)
                && let Err(cause) = Box::pin(needed.acknowledged()).await
            {
                if let Cause::Broken(why) = &cause {
                    self.gate.shut(link, why);
                }
                let granted = answers.iter_mut().filter(|answer| granted(answer));
                granted.for_each(|answer| *answer = Err(cause.clone()));
            }
            Ok(answers)
        };
        let answers = self.answered(link, request).await?;
        if answers.iter().all(wire::is_unknown_script) {
            lock(&link.scripts).remove(script.name);
        } else if has_text {
            lock(&link.scripts).insert(script.name, sha1_hash(&script.source).into());
        }
        Ok(answers)
    }

    /// The command that runs a call's script, which is sent when first polled.
    fn command(
        &self,
        link: &Link,
        call: &Call,
        sha: Option<Bytes>,
        asking: bool,
        left: Duration,
    ) -> BoxFuture<'static, Raw> {
        let source = || ("EVAL", Bytes::from_static(call.script.source.as_bytes()));
        let (name, text) = sha.map_or_else(source, |sha| ("EVALSHA", sha));
        // An answer that may be counted says which data it comes from, so that deleted data are
        // noticed with it, and not ten seconds later (guarantee 4).
        let names_data = call.script.votes && self.is_named.load(Relaxed);
        let fingerprint = self.looks.fingerprint.as_deref().filter(|_| names_data);
        let packs = link.packs.load(Relaxed);
        let words = wire::arguments(call, text, self.publish(), packs, fingerprint);
        let options = at_once(left);
        let sent = link.carrier.command(&options, name, words);
        if !asking {
            return sent;
        }
        // Both leave with the first poll, in this order. The server takes `ASKING` for the next
        // command alone: if another came between, the script would be redirected again.
        let ask = link.carrier.command(&options, "ASKING", Vec::new());
        async { future::join(ask, sent).await.1 }.boxed()
    }

    /// Reads the answers in a reply to a call.
    fn read(&self, link: &Arc<Link>, frame: Frame, call: &Call) -> Answers {
        // A server that packs its replies has `cmsgpack`, so it can unpack arguments too.
        if matches!(frame, Frame::BlobString { .. }) {
            link.packs.store(true, Relaxed);
        }
        let answers = match wire::unpacked(frame) {
            Ok(value) => Answer::each(value, call.requests.len(), call.script.width),
            Err(cause) => call.all_failed(&cause),
        };
        // The next connection may find the server that is the primary now.
        if answers.iter().any(wire::is_of_a_replica) {
            self.gate.shut(link, &link.demote());
        }
        answers
    }

    /// Polls a request at once, and completes with its result, or when the connection has ended.
    // fred says itself that a request may have run when its connection ended, but it answers no
    // request that came to it as its task was about to end.
    async fn answered<T>(
        &self,
        link: &Arc<Link>,
        request: impl Future<Output = Outcome<T>>,
    ) -> Outcome<T> {
        // Not by tokio's `select!`, which polls nothing if the task's budget is spent. The request
        // would not leave with its first poll then, and under load an undo could leave before its
        // acquire (law 6).
        let outcome = match future::select(pin!(request), pin!(self.gate.until_shut(link))).await {
            Either::Left((outcome, _)) => outcome,
            Either::Right(_) => Err(Cause::Broken(link.trouble())),
        };
        if let Err(Cause::Broken(why) | Cause::Unreachable(why)) = &outcome {
            // A link never connects again. Shut at once, so that no later request waits for it.
            self.gate.shut(link, why);
        }
        outcome
    }

    /// Who the server is, as it said on the connection that stands, and whether it takes new votes
    /// now.
    async fn identity(&self) -> Outcome<Identity> {
        let link = self.gate.pass()?;
        let Some(Inspection { identity, life, .. }) = link.inspection.get() else {
            return Err(Cause::Unheard);
        };
        let Some(key) = &self.looks.fingerprint else {
            // It has no slots, and so no votes to give.
            self.reply("PING", &[]).await?;
            return Ok(identity.clone());
        };
        // By a write of the fingerprint, as locks write. A server that is full answers `PING`.
        let answer = self.answers(&look_call(key, life, None, None), false).await?.pop();
        let refuses = match answer.unwrap_or(Err(Cause::Unheard)) {
            Ok(answer) => Fingerprint::read(&answer).and_then(|fingerprint| fingerprint.refusal),
            Err(Cause::Rejected(why)) => (!why.is_elsewhere()).then(|| Arc::clone(why.text())),
            Err(cause) => return Err(cause),
        };
        Ok(Identity { refuses, ..identity.clone() })
    }

    /// The command that publishes on the channel of a lock.
    fn publish(&self) -> &'static str {
        // In a cluster, `PUBLISH` would go to every server; waiters listen at that of the slot.
        if self.looks.seat.is_some() { "SPUBLISH" } else { "PUBLISH" }
    }

    /// The reply to a command on the connection that stands.
    async fn reply(&self, name: &'static str, words: &[&str]) -> Outcome<Frame> {
        let link = self.gate.pass()?;
        self.answered(&link, ask(&link, name, words)).await
    }
}

/// Lets scripts leave while a connection stands on which the server has said who it is.
#[derive(Default)]
pub(in crate::voter) struct Gate(watch::Sender<GateState>);

/// The connection, or why there is none. `None` until the first attempt to connect has ended.
type GateState = Option<Result<Arc<Link>, Reason>>;

impl Gate {
    /// An attempt to connect has failed.
    fn note_failure(&self, why: Reason) {
        self.0.send_replace(Some(Err(why)));
    }

    /// Lets scripts leave by this link until it is [shut](Self::shut).
    fn open(&self, link: &Arc<Link>) {
        self.0.send_replace(Some(Ok(Arc::clone(link))));
    }

    /// Shuts the gate if it is open for this link.
    // Not if it is open for a later link: an answer on the former one may come this late.
    fn shut(&self, link: &Arc<Link>, why: &Reason) {
        self.0.send_if_modified(|state| {
            let is_open = is_open_for(state, link);
            if is_open {
                *state = Some(Err(why.clone()));
            }
            is_open
        });
    }

    /// Completes when the gate is not open for this link.
    async fn until_shut(&self, link: &Arc<Link>) {
        // The sender is here, so this cannot fail.
        let _ = self.0.subscribe().wait_for(|state| !is_open_for(state, link)).await;
    }

    /// The link by which a script may leave now.
    fn pass(&self) -> Outcome<Arc<Link>> {
        let link = match &*self.0.borrow() {
            Some(Ok(link)) => Arc::clone(link),
            shut => return Err(Cause::Unreachable(trouble(shut))),
        };
        // Read here, not by a timer alone: a process that was stopped may send before the task runs
        // that ends the connection, to a primary that others have replaced (law 1).
        let is_trusted = lock(&link.trusted).is_none_or(|end| Clock::System.now() < end);
        if is_trusted { Ok(link) } else { Err(Cause::Unreachable(UNCONFIRMED.into())) }
    }

    /// Completes when the first attempt to connect has ended.
    pub(in crate::voter) async fn until_tried(&self) {
        // The sender is here, so this cannot fail.
        let _ = self.0.subscribe().wait_for(Option::is_some).await;
    }

    /// What last went wrong.
    fn trouble(&self) -> Reason {
        trouble(&self.0.borrow())
    }
}

fn trouble(state: &GateState) -> Reason {
    match state {
        Some(Err(why)) => why.clone(),
        _ => UNTRIED.into(),
    }
}

fn is_open_for(state: &GateState, link: &Arc<Link>) -> bool {
    matches!(state, Some(Ok(open)) if Arc::ptr_eq(open, link))
}

/// The latest call of each party, which shows whether a request was overtaken.
// If a server does not have a script (`SCRIPT FLUSH`, a restart), or not the slot of a lock any
// more, it has run nothing. The request may be sent again, unless a later one of its party left
// meanwhile: an acquire behind its own undo would leave a vote that nobody wants (law 6), and an
// undo behind the next attempt would take a vote on which that attempt relies.
#[derive(Default)]
pub(in crate::voter) struct Order {
    /// How many calls have left.
    count: AtomicU64,
    /// For each party the number of the call with its latest request, until that is answered.
    latest: Mutex<FxHashMap<u64, u64>>,
}

/// A call that has left and is not answered yet.
pub(in crate::voter) struct Departed<'a> {
    order: &'a Order,
    call: &'a Call,
    number: u64,
}

impl Order {
    /// A call leaves.
    pub(in crate::voter) fn leave<'a>(&'a self, call: &'a Call) -> Departed<'a> {
        let (mut latest, number) = (lock(&self.latest), self.count.fetch_add(1, Relaxed));
        for request in &*call.requests {
            latest.insert(request.party, number);
        }
        Departed { order: self, call, number }
    }
}

impl Departed<'_> {
    /// Those of these requests that no later one of their party has overtaken. The answers of the
    /// others then say that they were. The caller must send the requests before it awaits anything.
    // Then no other request can leave in between: one task sends all requests of a hold.
    pub(in crate::voter) fn still_latest(
        &self,
        unrun: Vec<usize>,
        answers: &mut Answers,
    ) -> Vec<usize> {
        let latest = lock(&self.order.latest);
        let is_latest =
            |at: &usize| latest.get(&self.call.requests[*at].party) == Some(&self.number);
        let (open, overtaken): (Vec<_>, Vec<_>) = unrun.into_iter().partition(is_latest);
        for answer in overtaken {
            if let Err(Cause::Rejected(why)) = &mut answers[answer] {
                *why = why.reworded(format!("{why}, {OVERTAKEN}"));
            }
        }
        open
    }
}

impl Drop for Departed<'_> {
    fn drop(&mut self) {
        let mut latest = lock(&self.order.latest);
        for request in &*self.call.requests {
            if latest.get(&request.party) == Some(&self.number) {
                latest.remove(&request.party);
            }
        }
    }
}
