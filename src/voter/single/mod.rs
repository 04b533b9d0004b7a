//! One Redis server.
//!
//! Two connections: one for scripts, and beside it one that listens. A task keeps them up, watches
//! whether the server still answers, and replaces a connection on which it does not. On each new
//! one for scripts it asks the server who it is, before any script leaves on it.

// Why two connections, and why fred makes no new one by itself: decision 4 of `docs/design.md`.

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
    future::poll_fn,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    task::Poll,
    time::Duration,
};

use bytes::Bytes;
use futures::{
    FutureExt,
    future::{self, BoxFuture},
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
    carrier::{Frame, at_once},
    identity::{ask, look_call},
    link::{AcksNeeded, Link, Met},
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
/// Between a connection that stood for a while and the next attempt; then twice as long each time.
const PAUSE: Duration = Duration::from_millis(10);
/// The longest pause between two attempts.
const LONGEST: Duration = Duration::from_millis(500);
/// Why a request that the server did not run is not sent again.
const OVERTAKEN: &str = "and not sent again because later requests have overtaken it";
/// The trouble where nothing has been tried.
const UNTRIED: &str = "not connected yet";
/// The trouble where the connection is about to end.
const UNCONFIRMED: &str = "no majority of the sentinels has named this server of late";

/// How servers are logged in to and which of them are trusted, for all addresses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Security {
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<Tls>,
    /// For addresses that have no credentials.
    pub(crate) credentials: Option<Provider>,
}

/// What is asked of a server before it may vote.
#[derive(Clone, Debug, Default)]
pub(crate) struct Looks {
    /// What its grants need in order to count.
    pub(crate) acks: ReplicaAcks,
    /// The key of its fingerprint; none where it can have none.
    pub(crate) fingerprint: Option<Arc<str>>,
    /// It may delete keys where its memory is full.
    pub(crate) may_evict: bool,
    /// Which shard of the voter it has, mostly the only one.
    pub(crate) shard: usize,
    /// It belongs to a cluster: what is published on the channel of a lock is for those who listen
    /// at the server that has its slot (`PUBLISH` is passed on to all servers of a cluster). And
    /// there the voter's channels have other names.
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
    /// Starts to connect, and never stops to: a server that is down now may come up later. Must be
    /// called on a runtime.
    pub(crate) fn start(
        access: &Access,
        listener: Arc<dyn VoterEvents>,
        looks: Looks,
    ) -> Arc<Self> {
        let has_sentinels = access.sentinels.is_some();
        let runner = Arc::new(Runner { looks, has_sentinels, ..Runner::default() });
        let (wishes, asked) = mpsc::unbounded_channel();
        let channels = Channels::new(asked);

        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&runner).keep(access.clone(), listener, channels));
        #[cfg(feature = "tls")]
        if let Some(tls) = &access.secured.tls {
            tasks.spawn(Arc::clone(tls).tell_of_certificate());
        }

        let label = Arc::clone(access.label());
        Arc::new(Self { label, runner, wishes, tasks: Mutex::new(tasks) })
    }

    /// Listens to a channel, or leaves it.
    fn wish(&self, channel: Arc<str>, listen: bool) -> BoxFuture<'static, Outcome<()>> {
        let channel = match self.runner.looks.seat {
            Some(seat) => {
                let name = seat.name(&channel);
                // The channel of a lock has the slot of its keys. What is said on any other channel
                // reaches the whole cluster.
                Channel { sharded: hash_tag(&name) != &*name, name }
            }
            None => Channel { name: channel, sharded: false },
        };
        let (answer, answered) = oneshot::channel();
        // After `close` nobody takes it, and the answer is dropped with it.
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
            // Who asks right after the start wants to know about the server, not that this is the
            // start. What is known by then is the answer, whether that was enough time or not.
            let _ = time::timeout(IDENTIFICATION, runner.gate.tried()).await;
            runner.identity().await
        })
    }

    fn rename(&self, _: usize) -> BoxFuture<'static, Outcome<()>> {
        let runner = Arc::clone(&self.runner);
        async move { runner.rename().await }.boxed()
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

/// Sends scripts where the gate lets them pass: at most once, in order, answered by their deadline.
#[derive(Debug, Default)]
pub(in crate::voter) struct Runner {
    pub(in crate::voter) gate: Gate,
    order: Order,
    looks: Looks,
    /// They tell of promotions, too.
    has_sentinels: bool,
    /// The fingerprint could be read when the server was last looked at.
    is_named: AtomicBool,
    /// The fingerprint could not be read then, on whichever connection.
    is_unmarked: AtomicBool,
}

impl Runner {
    /// Sends when first polled. `asking`: the call is for a hash slot that is on its way to this
    /// server.
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
        // Nothing ran: as a whole it may go again.
        let open = departed.still_latest((0..answers.len()).collect(), &mut answers);
        if !open.is_empty() {
            let again = self.send(&link, &call.pick(&open), None, asking, rest).await?;
            for (request, answer) in open.into_iter().zip(again) {
                answers[request] = answer;
            }
        }
        Ok(answers)
    }

    /// The script, and right behind it the question for replicas where its grant needs them. It is
    /// sent by its hash; as a whole where the server is not known to have it.
    async fn send(
        &self,
        link: &Arc<Link>,
        call: &Call,
        sha: Option<Bytes>,
        asking: bool,
        left: Duration,
    ) -> Outcome<Answers> {
        let Call { script, deadline, .. } = *call;
        let is_whole = sha.is_none();
        let source = || ("EVAL", Bytes::from_static(script.source.as_bytes()));
        let (name, text) = sha.map_or_else(source, |sha| ("EVALSHA", sha));
        let is_told = script.votes && self.is_named.load(Relaxed);
        let fingerprint = self.looks.fingerprint.as_deref().filter(|_| is_told);
        let packs = link.packs.load(Relaxed);
        let words = wire::arguments(call, text, self.publish(), packs, fingerprint);
        let options = at_once(left);
        let sent = link.carrier.command(&options, name, words);
        let sent = if asking {
            // Both leave with the first poll, in this order. Where something came between them, the
            // server answers as if it had not been asked to.
            let ask = link.carrier.command(&options, "ASKING", Vec::new());
            async { future::join(ask, sent).await.1 }.boxed()
        } else {
            sent
        };
        let acks = self.looks.acks;
        let needs_acks = acks.replicas > 0 && script.votes;
        // The script first.
        let sent = if needs_acks { begin(sent) } else { sent };
        let needed = needs_acks.then(|| AcksNeeded::behind(link, acks, left, deadline));
        let request = async {
            let mut answers = self.read(link, link.noted(sent.await, deadline)?, call);
            let granted = |answer: &Outcome<Answer>| answer.as_ref().is_ok_and(Answer::is_done);
            if let Some(needed) = needed
                && answers.iter().any(granted)
                && let Err(cause) = Box::pin(needed.acknowledged()).await
            {
                if let Cause::Broken(why) = &cause {
                    self.gate.over(link, why);
                }
                let granted = answers.iter_mut().filter(|answer| granted(answer));
                granted.for_each(|answer| *answer = Err(cause.clone()));
            }
            Ok(answers)
        };
        let answers = self.answered(link, request).await?;
        if answers.iter().all(wire::is_unknown_script) {
            lock(&link.scripts).remove(script.name);
        } else if is_whole {
            lock(&link.scripts).insert(script.name, sha1_hash(&script.source).into());
        }
        Ok(answers)
    }

    /// The answers of a reply to a call. A server that has become a replica is left, so that the
    /// next connection finds its successor.
    fn read(&self, link: &Arc<Link>, frame: Frame, call: &Call) -> Answers {
        if matches!(frame, Frame::BlobString { .. }) {
            link.packs.store(true, Relaxed);
        }
        let answers = match wire::unpacked(frame) {
            Ok(value) => Answer::each(value, call.requests.len(), call.script.width),
            Err(cause) => call.all_failed(&cause),
        };
        if answers.iter().any(wire::is_of_a_replica) {
            self.gate.over(link, &link.demote());
        }
        answers
    }

    /// Polls the request at once. What is under way when its connection is over may have run: fred
    /// says so itself, but not of what came to it as its task was about to end.
    async fn answered<T>(
        &self,
        link: &Arc<Link>,
        request: impl Future<Output = Outcome<T>>,
    ) -> Outcome<T> {
        let (mut request, mut closed) = (pin!(request), pin!(self.gate.closed(link)));
        // Not by tokio's `select!`: that polls nothing where the task's budget is spent, and then
        // the request would not leave with its first poll.
        let outcome = poll_fn(|context| match request.as_mut().poll(context) {
            Poll::Pending => {
                closed.as_mut().poll(context).map(|()| Err(Cause::Broken(link.trouble())))
            }
            ready @ Poll::Ready(_) => ready,
        });
        let outcome = outcome.await;
        if let Err(Cause::Broken(why) | Cause::Unreachable(why)) = &outcome {
            // There is no other connection of this link. Whoever hears of this asks the next one.
            self.gate.over(link, why);
        }
        outcome
    }

    /// Who answers on the connection that stands: what was said there; and whether it takes new
    /// votes now. It is asked to write its fingerprint, by the way on which scripts leave for
    /// locks: what ends that would end them.
    async fn identity(&self) -> Outcome<Identity> {
        let link = self.gate.pass()?;
        let Some(Met { identity, life, .. }) = link.known.get() else { return Err(Cause::Unheard) };
        let Some(key) = &self.looks.fingerprint else {
            // It has no votes to give.
            self.reply("PING", &[]).await?;
            return Ok(identity.clone());
        };
        let answer = self.answers(&look_call(key, life, None, None), false).await?.pop();
        let refuses = match answer.unwrap_or(Err(Cause::Unheard)) {
            Ok(answer) => Fingerprint::read(&answer).and_then(|fingerprint| fingerprint.refusal),
            Err(Cause::Rejected(why)) => (!why.is_elsewhere()).then(|| Arc::clone(why.text())),
            Err(cause) => return Err(cause),
        };
        Ok(Identity { refuses, ..identity.clone() })
    }

    /// Gives the data that it had when it was met another name.
    async fn rename(&self) -> Outcome<()> {
        let link = self.gate.pass()?;
        match link.known.get() {
            Some(met) => identity::rename(&link, met).await,
            None => Ok(()),
        }
    }

    /// The command that publishes on the channel of a lock.
    fn publish(&self) -> &'static str {
        if self.looks.seat.is_some() { "SPUBLISH" } else { "PUBLISH" }
    }

    /// The reply to a command on the connection that stands.
    async fn reply(&self, name: &'static str, words: &[&str]) -> Outcome<Frame> {
        let link = self.gate.pass()?;
        self.answered(&link, ask(&link, name, words)).await
    }
}

/// The way for scripts: open while a connection stands on which the server has said who it is. With
/// what last went wrong where there is none; nothing before an attempt has come to anything.
#[derive(Debug, Default)]
pub(in crate::voter) struct Gate(watch::Sender<GateState>);

type GateState = Option<Result<Arc<Link>, Reason>>;

impl Gate {
    /// An attempt to connect has failed.
    fn failed(&self, why: Reason) {
        self.0.send_replace(Some(Err(why)));
    }

    /// Lets scripts pass to this link, until it is [over](Self::over).
    fn open(&self, link: &Arc<Link>) {
        self.0.send_replace(Some(Ok(Arc::clone(link))));
    }

    /// Closes the gate if it is open for this link. It never opens for the same one again.
    fn over(&self, link: &Arc<Link>, why: &Reason) {
        self.0.send_if_modified(|state| {
            let is_open = is_open_for(state, link);
            if is_open {
                *state = Some(Err(why.clone()));
            }
            is_open
        });
    }

    /// Completes when it is not open for this link.
    async fn closed(&self, link: &Arc<Link>) {
        // The sender is here, so this cannot fail.
        let _ = self.0.subscribe().wait_for(|state| !is_open_for(state, link)).await;
    }

    /// The link that a script may be sent by now.
    fn pass(&self) -> Outcome<Arc<Link>> {
        let link = match &*self.0.borrow() {
            Some(Ok(link)) => Arc::clone(link),
            shut => return Err(Cause::Unreachable(trouble(shut))),
        };
        let is_trusted = lock(&link.trusted).is_none_or(|end| Clock::System.now() < end);
        if is_trusted { Ok(link) } else { Err(Cause::Unreachable(UNCONFIRMED.into())) }
    }

    /// Completes when the first attempt to connect has come to something.
    pub(in crate::voter) async fn tried(&self) {
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

/// Which calls have left that nothing has followed.
///
/// A server that does not know a script (`SCRIPT FLUSH`, a restart), or that does not have the slot
/// of a lock any more, has run nothing, and sending the same again would be right but for one
/// thing: what left meanwhile has overtaken it. An acquire that came in behind its own undo would
/// leave a vote that nobody wants, and an undo behind the next attempt would take one that somebody
/// counts on.
///
/// So a request is sent again only where none of the same party, that is for the same key *and the
/// same hold*, left since. Between two holds no order was promised to anyone, unless they are
/// attempts from one place in a queue, which a later one may have left for good: these are one
/// party.
#[derive(Debug, Default)]
pub(in crate::voter) struct Order {
    /// How many calls have left.
    count: AtomicU64,
    /// By its party, the number of the call that carries its latest request, until that has come to
    /// something. A request that is not found here has been overtaken.
    latest: Mutex<FxHashMap<u64, u64>>,
}

/// A call that has left and has come to nothing yet.
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
    /// Of these requests of the call, which did not run, those since which none of their party has
    /// left; to the others that is the answer. They may leave again before anybody awaits anything:
    /// one task sends all requests of a hold, so none of them leaves between this look and that.
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
