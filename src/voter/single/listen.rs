//! The connection that listens, beside that for scripts, and the channels to which it listens.

use std::{
    collections::HashSet,
    pin::pin,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use futures::future::{self, BoxFuture, join_all};
use tokio::{
    sync::{
        broadcast::{
            self,
            error::RecvError::{Closed, Lagged},
        },
        mpsc, oneshot,
    },
    time,
};

use super::{
    carrier::{Frame, Message, Raw, parts, patient},
    dial::Connector,
    link::Link,
    wire,
};
use crate::{
    proto::{Cause, Permission, Reason, ServerError},
    scripts::Value,
    voter::{Outcome, VoterEvents, contract::begin, pauses::Pauses, seat::Seat},
};

/// How long the server may take to confirm.
const CONFIRMATION: Duration = Duration::from_secs(1);
/// The pause before channels that failed on a connection that still stands are asked for again.
const PAUSE: Duration = Duration::from_millis(200);
/// How many replies may go to another command than their own before the connection is given up.
// Each refused request adds one. They come back into order, on a busy machine after a while: with
// three tries, connections that were well were given up.
const OUT_OF_ORDER: u32 = 64;
/// By how much the pause between two tries grows.
const STEP: Duration = Duration::from_millis(1);
/// The most wishes that share one confirmation.
const BATCH: usize = 1024;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Channel {
    pub(super) name: Arc<str>,
    /// The channel has a hash slot: its messages stay with the server of that slot.
    pub(super) sharded: bool,
}

/// A caller's wish to listen to a channel, or to leave it.
pub(super) struct ListenWish {
    pub(super) channel: Channel,
    pub(super) listen: bool,
    pub(super) answer: oneshot::Sender<Outcome<()>>,
}

/// The channels to which a client wants to listen at one server, connected or not.
pub(super) struct Channels {
    wishes: mpsc::UnboundedReceiver<ListenWish>,
    wanted: HashSet<Channel>,
    /// Whether a first attempt to connect has ended.
    // Wishes wait for the first attempt alone. If they waited for each, a client could not close,
    // and a cluster not follow its next map, while a server is connected to again.
    is_tried: bool,
    /// Whether the server has no channels with slots, or the user may not use them.
    plain: bool,
    confirmations: u64,
}

impl Channels {
    pub(super) fn new(wishes: mpsc::UnboundedReceiver<ListenWish>) -> Self {
        Self { wishes, wanted: HashSet::new(), is_tried: false, plain: false, confirmations: 0 }
    }

    /// Notes wishes, and answers that they cannot be fulfilled now, until `until` completes.
    pub(super) async fn refuse<T>(&mut self, until: impl Future<Output = T>, why: &Reason) -> T {
        self.is_tried = true;
        let mut until = pin!(until);
        loop {
            tokio::select! {
                biased;
                done = &mut until => return done,
                Some(wish) = self.wishes.recv() => {
                    let answer = wish.note(&mut self.wanted);
                    // The caller may have gone. `ChannelListener` unsubscribes when it is dropped.
                    let _ = answer.send(Err(Cause::Unreachable(why.clone())));
                }
            }
        }
    }

    /// Keeps a connection up beside this one, and fulfils wishes.
    pub(super) async fn keep(
        &mut self,
        connector: &mut Connector,
        beside: &Link,
        listener: &dyn VoterEvents,
        seat: Option<Seat>,
    ) {
        let mut pauses = Pauses::new(super::PAUSE, super::LONGEST);
        let first = connector.connect_beside(beside);
        let mut connected = if self.is_tried {
            self.refuse(first, &super::UNTRIED.into()).await
        } else {
            first.await
        };
        self.is_tried = true;
        loop {
            let why = match connected {
                Ok((link, mut router)) => {
                    pauses.reset();
                    // Before the first `SUBSCRIBE`: messages that come earlier would be lost.
                    let messages = link.carrier.messages();
                    // The new connection may lead to a newer server, or to a user with more rights.
                    self.plain = false;
                    tokio::select! {
                        () = link.watch(&mut router, || listener.has_waiters()) => {}
                        () = hear(&link, messages, listener, seat) => {}
                        () = self.listen(&link, listener) => {}
                    }
                    link.trouble()
                }
                Err(why) => why,
            };
            let pause = pauses.after(Some(&why), rand::random());
            let again = async {
                time::sleep(pause).await;
                connector.connect_beside(beside).await
            };
            connected = self.refuse(again, &why).await;
        }
    }
}

/// Passes messages on to the listener until the connection has ended.
async fn hear(
    link: &Link,
    mut messages: broadcast::Receiver<Message>,
    listener: &dyn VoterEvents,
    seat: Option<Seat>,
) {
    loop {
        match messages.recv().await {
            Ok(message) => {
                link.answered.store(true, Relaxed);
                let (channel, text) = parts(&message);
                let outside = seat.and_then(|seat| seat.outside_channel(channel));
                listener.deliver(outside.as_deref().unwrap_or(channel), &text);
            }
            // Some were overwritten, and nobody knows whose: all waiters must ask again.
            Err(Lagged(_)) => listener.note_lost_messages(),
            Err(Closed) => return,
        }
    }
}

impl ListenWish {
    /// Notes what is wanted, connected or not.
    fn note(self, wanted: &mut HashSet<Channel>) -> oneshot::Sender<Outcome<()>> {
        if self.listen {
            wanted.insert(self.channel);
        } else {
            wanted.remove(&self.channel);
        }
        self.answer
    }
}

/// Whether nothing has to be tried again.
fn is_settled(outcome: &Outcome<()>) -> bool {
    match outcome {
        // A missing right stays, and the caller leaves such a channel. Any other refusal passes: in
        // a cluster, a server may not know yet that a slot is its own.
        Err(Cause::Rejected(why)) => why.lacks().is_some(),
        outcome => outcome.is_ok(),
    }
}

/// Listens to a channel with a slot, or leaves it. False if the server or the user's rights lack
/// such channels.
// No `PING` has to confirm this: the server answers `SSUBSCRIBE` like any command, as it may have
// to answer `MOVED`.
async fn shard(link: &Link, channel: &str, listen: bool) -> Outcome<bool> {
    if !listen {
        let left = link.carrier.leave_shard(CONFIRMATION, channel).await;
        return left.map(|()| true).map_err(|why| link.cause(why, CONFIRMATION));
    }
    let asked = link.carrier.command(&patient(CONFIRMATION), "SSUBSCRIBE", vec![channel.into()]);
    let reply = asked.await;
    match link.note_reply(reply, CONFIRMATION)? {
        Frame::Push { .. } => Ok(true),
        other => match wire::value(other) {
            Err(Cause::Rejected(why)) if is_unusable(&why) => Ok(false),
            other => other.map(|_| true),
        },
    }
}

/// Whether the server, or the user's rights, lack the command.
fn is_unusable(why: &Reason) -> bool {
    why.is(ServerError::UnknownCommand) || why.lacks() == Some(Permission::Command)
}

// On one connection.
impl Channels {
    /// Fulfils wishes until no more can come.
    async fn listen(&mut self, link: &Arc<Link>, listener: &dyn VoterEvents) {
        // A new connection listens to nothing yet.
        let mut stale = !self.restore(link, listener).await;
        let mut batch = Vec::new();
        loop {
            tokio::select! {
                biased;
                () = time::sleep(PAUSE), if stale => stale = !self.restore(link, listener).await,
                count = self.wishes.recv_many(&mut batch, BATCH) => {
                    if count == 0 {
                        return;
                    }
                    let is_settled = self.fulfil(link, batch.drain(..)).await;
                    // With each wish the pause above begins anew. It would never end if many came.
                    stale = !is_settled || stale && !self.restore(link, listener).await;
                }
            }
        }
    }

    /// Fulfils wishes. Returns whether nothing has to be tried again.
    async fn fulfil(&mut self, link: &Arc<Link>, wishes: impl Iterator<Item = ListenWish>) -> bool {
        let (mut asked, mut answers) = (Vec::new(), Vec::new());
        for wish in wishes {
            asked.push((wish.channel.clone(), wish.listen));
            answers.push(wish.note(&mut self.wanted));
        }
        let outcome = self.settle(link, asked).await;
        for answer in answers {
            // The caller may have gone. `ChannelListener` unsubscribes when it is dropped.
            let _ = answer.send(outcome.clone());
        }
        is_settled(&outcome)
    }

    /// The same for all channels that are wanted.
    async fn restore(&mut self, link: &Arc<Link>, listener: &dyn VoterEvents) -> bool {
        if self.wanted.is_empty() {
            return true;
        }
        let asked = self.wanted.iter().map(|channel| (channel.clone(), true)).collect();
        let is_settled = is_settled(&self.settle(link, asked).await);
        if is_settled {
            // Only now: a message of the time before could still be missed after the waiters asked.
            listener.note_lost_messages();
        }
        is_settled
    }

    /// Listens to channels, or leaves them, in this order. Completes when the server has done all.
    /// Fails with the cause that must be tried again, if there is one.
    async fn settle(&mut self, link: &Arc<Link>, asked: Vec<(Channel, bool)>) -> Outcome<()> {
        let has_slot = |(channel, _): &(Channel, bool)| channel.sharded && !self.plain;
        let (sharded, mut rest): (Vec<_>, Vec<_>) = asked.into_iter().partition(has_slot);
        // `join_all` polls in this order, so they leave in this order.
        let sent = sharded.iter().map(|(channel, on)| shard(link, &channel.name, *on));
        let (sent, mut outcomes) = (join_all(sent).await, Vec::new());
        for (asked, outcome) in sharded.into_iter().zip(sent) {
            match outcome {
                Ok(true) => {}
                Ok(false) => {
                    self.plain = true;
                    rest.push(asked);
                }
                Err(cause) => outcomes.push(Err(cause)),
            }
        }
        // Also if some of those failed, and each by itself: one command for several channels would
        // be refused for all.
        let rest = rest
            .into_iter()
            .map(|(channel, listen)| link.carrier.listen(CONFIRMATION, &channel.name, listen));
        outcomes.push(self.confirm(link, rest.collect()).await);
        outcomes.sort_by_key(is_settled);
        outcomes.into_iter().find(Outcome::is_err).unwrap_or(Ok(()))
    }

    /// Sends a `PING` behind requests that have left on this connection. When the answer is here,
    /// the server has done them all.
    // The server answers a refused request with an error: the user may lack the right to a channel.
    // fred does not expect that error, and gives it to the next command; if none waits, fred drops
    // it, and the channel would seem to be listened to. So the `PING` is in fred's queue before the
    // first request can be answered.
    //
    // After such an error each command gets the reply to the one before it, until a reply comes
    // while no command waits. So each `PING` has a number, which the server repeats, and further
    // ones are sent until one gets its own number back.
    async fn confirm(
        &mut self,
        link: &Arc<Link>,
        asked: Vec<BoxFuture<'static, Raw<()>>>,
    ) -> Outcome<()> {
        let reply = begin(self.ping(link));
        let (written, mut reply) = future::join(join_all(asked), reply).await;
        for written in written {
            written.map_err(|why| link.cause(why, CONFIRMATION))?;
        }
        let mut refused = None;
        for turn in 1..OUT_OF_ORDER {
            match reply {
                Ok(Value::Text(number)) if number == self.confirmations.to_string() => {
                    return refused.map_or(Ok(()), Err);
                }
                // The answer to an earlier one.
                Ok(Value::Text(number)) if number.parse::<u64>().is_ok() => {}
                Ok(_) => break,
                // The user may not send `PING`. That answer too comes behind those to the requests.
                Err(Cause::Rejected(why))
                    if why.lacks() == Some(Permission::Command) && why.is_about("ping") =>
                {
                    return refused.map_or(Ok(()), Err);
                }
                Err(why @ Cause::Rejected(_)) => refused = refused.or(Some(why)),
                Err(cause) => return Err(cause),
            }
            // Replies may come meanwhile, while no command waits: that restores the order.
            time::sleep(STEP * turn).await;
            reply = self.ping(link).await;
        }
        let why = "replies out of order";
        link.reject(why);
        Err(Cause::Broken(why.into()))
    }

    /// Sends the next number, and completes with the reply that fred takes for its answer.
    fn ping(&mut self, link: &Arc<Link>) -> impl Future<Output = Outcome<Value>> + use<> {
        self.confirmations += 1;
        let (link, number) = (Arc::clone(link), self.confirmations.to_string());
        async move {
            let asked = link.carrier.command(&patient(CONFIRMATION), "PING", vec![number.into()]);
            let reply = asked.await;
            link.note_reply(reply, CONFIRMATION).and_then(wire::value)
        }
    }
}
