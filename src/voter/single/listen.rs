//! Channels: a connection that listens is kept up beside that of the scripts, and the server's list
//! equal to ours.

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
/// Until what failed on a connection that still stands is tried again.
const PAUSE: Duration = Duration::from_millis(200);
/// How many replies may be on their way to another command than their own, before the connection is
/// given up: a refused request adds one.
const OUT_OF_ORDER: u32 = 64;
/// By so much more each time it is waited for those that are.
const STEP: Duration = Duration::from_millis(1);
/// The most wishes that are settled by one confirmation.
const BATCH: usize = 1024;

/// What is listened to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Channel {
    pub(super) name: Arc<str>,
    /// It has a hash slot, and what is published there stays with the server that has it.
    pub(super) sharded: bool,
}

/// What a caller wants, and where to tell what came of it.
pub(super) struct ListenWish {
    pub(super) channel: Channel,
    pub(super) listen: bool,
    pub(super) answer: oneshot::Sender<Outcome<()>>,
}

/// What a client listens to at one server, connected or not. Wishes wait for the first attempt to
/// connect, and for no other.
pub(super) struct Channels {
    wishes: mpsc::UnboundedReceiver<ListenWish>,
    wanted: HashSet<Channel>,
    /// An attempt has come to something.
    is_tried: bool,
    /// The server knows no channels with slots, or the user may not use them.
    plain: bool,
    confirmations: u64,
}

impl Channels {
    pub(super) fn new(wishes: mpsc::UnboundedReceiver<ListenWish>) -> Self {
        Self { wishes, wanted: HashSet::new(), is_tried: false, plain: false, confirmations: 0 }
    }

    /// Until there is a connection, or another attempt has failed, takes note of wishes that cannot
    /// be fulfilled now.
    pub(super) async fn refuse<T>(&mut self, until: impl Future<Output = T>, why: &Reason) -> T {
        self.is_tried = true;
        let mut until = pin!(until);
        loop {
            tokio::select! {
                biased;
                done = &mut until => return done,
                Some(wish) = self.wishes.recv() => {
                    let answer = wish.note(&mut self.wanted);
                    // The caller may have gone. `Listening` unsubscribes when it is dropped.
                    let _ = answer.send(Err(Cause::Unreachable(why.clone())));
                }
            }
        }
    }

    /// Keeps a connection up beside this one, and fulfils wishes. On each new one it listens to
    /// everything again and tells the listener.
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
                    let messages = link.carrier.messages();
                    self.plain = false;
                    tokio::select! {
                        () = link.watch(&mut router, || listener.is_waited_for()) => {}
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

/// Hands messages on, those from now on, until the client is gone.
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
                listener.called(outside.as_deref().unwrap_or(channel), &text);
            }
            Err(Lagged(_)) => listener.missed(),
            Err(Closed) => return,
        }
    }
}

impl ListenWish {
    /// Remembers what is wanted, connection or not.
    fn note(self, wanted: &mut HashSet<Channel>) -> oneshot::Sender<Outcome<()>> {
        if self.listen {
            wanted.insert(self.channel);
        } else {
            wanted.remove(&self.channel);
        }
        self.answer
    }
}

/// Whether nothing is to be tried again. A channel that the user may not listen to is taken back by
/// who asked; but in a cluster a server may not know yet that it has a slot.
fn is_settled(outcome: &Outcome<()>) -> bool {
    match outcome {
        Err(Cause::Rejected(why)) => why.lacks().is_some(),
        outcome => outcome.is_ok(),
    }
}

/// Listens to a channel with a slot, or leaves it, and says whether the server and the user's
/// rights allow for that. Other than to `SUBSCRIBE` the server answers in order, as it may have to
/// say `MOVED`.
async fn shard(link: &Link, channel: &str, listen: bool) -> Outcome<bool> {
    if !listen {
        let left = link.carrier.leave_shard(CONFIRMATION, channel).await;
        return left.map(|()| true).map_err(|why| link.cause(why, CONFIRMATION));
    }
    let asked = link.carrier.command(&patient(CONFIRMATION), "SSUBSCRIBE", vec![channel.into()]);
    let reply = asked.await;
    match link.noted(reply, CONFIRMATION)? {
        Frame::Push { .. } => Ok(true),
        other => match wire::value(other) {
            Err(Cause::Rejected(why)) if is_unusable(&why) => Ok(false),
            other => other.map(|_| true),
        },
    }
}

/// Whether the server or the user's rights lack the command.
fn is_unusable(why: &Reason) -> bool {
    why.is(ServerError::UnknownCommand) || why.lacks() == Some(Permission::Command)
}

// On one connection.
impl Channels {
    /// Ends when there will be no more wishes.
    async fn listen(&mut self, link: &Arc<Link>, listener: &dyn VoterEvents) {
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
                    // Many wishes must not keep the pause above from ever ending.
                    stale = !is_settled || stale && !self.restore(link, listener).await;
                }
            }
        }
    }

    /// Whether nothing is to be tried again.
    async fn fulfil(&mut self, link: &Arc<Link>, wishes: impl Iterator<Item = ListenWish>) -> bool {
        let (mut asked, mut answers) = (Vec::new(), Vec::new());
        for wish in wishes {
            asked.push((wish.channel.clone(), wish.listen));
            answers.push(wish.note(&mut self.wanted));
        }
        let outcome = self.settle(link, asked).await;
        for answer in answers {
            // The caller may have gone. `Listening` unsubscribes when it is dropped.
            let _ = answer.send(outcome.clone());
        }
        is_settled(&outcome)
    }

    /// The same for all that is wanted. Then the listener is told.
    async fn restore(&mut self, link: &Arc<Link>, listener: &dyn VoterEvents) -> bool {
        if self.wanted.is_empty() {
            return true;
        }
        let asked = self.wanted.iter().map(|channel| (channel.clone(), true)).collect();
        let is_settled = is_settled(&self.settle(link, asked).await);
        if is_settled {
            listener.missed();
        }
        is_settled
    }

    /// Listens to channels, or leaves them, in this order. Completes when all is in force. Of what
    /// failed it says first what is to be tried again.
    async fn settle(&mut self, link: &Arc<Link>, asked: Vec<(Channel, bool)>) -> Outcome<()> {
        let has_slot = |(channel, _): &(Channel, bool)| channel.sharded && !self.plain;
        let (sharded, mut rest): (Vec<_>, Vec<_>) = asked.into_iter().partition(has_slot);
        // Polled in this order, so they leave in it.
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
        // The others are asked for all the same, each by itself: a channel that is refused takes no
        // other with it.
        let rest = rest
            .into_iter()
            .map(|(channel, listen)| link.carrier.listen(CONFIRMATION, &channel.name, listen));
        outcomes.push(self.confirm(link, rest.collect()).await);
        outcomes.sort_by_key(is_settled);
        outcomes.into_iter().find(Outcome::is_err).unwrap_or(Ok(()))
    }

    /// Sends a PING behind requests that have left on this connection: when its answer is here, all
    /// is in force.
    ///
    /// A refused request (a user may lack the right to a channel) is answered with an error. fred
    /// does not expect it, and gives it to the next command. Where no command waits, fred drops it,
    /// and the request would seem to be in force. So the PING is in fred's queue before the first
    /// request can be answered.
    ///
    /// After such an error each command gets the reply to the one before it. That ends when a reply
    /// comes while no command waits. Each PING has a number, which the server repeats. PINGs are
    /// sent until one gets its own number back.
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
                Ok(Value::Text(number)) if number.parse::<u64>().is_ok() => {}
                Ok(_) => break,
                // The user may not send it: what else was refused has been answered before.
                Err(Cause::Rejected(why))
                    if why.lacks() == Some(Permission::Command) && why.is_about("ping") =>
                {
                    return refused.map_or(Ok(()), Err);
                }
                Err(why @ Cause::Rejected(_)) => refused = refused.or(Some(why)),
                Err(cause) => return Err(cause),
            }
            // What is under way may come meanwhile.
            time::sleep(STEP * turn).await;
            reply = self.ping(link).await;
        }
        let why = "replies out of order";
        link.reject(why);
        Err(Cause::Broken(why.into()))
    }

    /// Sends the next number, and completes with what fred takes for its answer.
    fn ping(&mut self, link: &Arc<Link>) -> impl Future<Output = Outcome<Value>> + use<> {
        self.confirmations += 1;
        let (link, number) = (Arc::clone(link), self.confirmations.to_string());
        async move {
            let asked = link.carrier.command(&patient(CONFIRMATION), "PING", vec![number.into()]);
            let reply = asked.await;
            link.noted(reply, CONFIRMATION).and_then(wire::value)
        }
    }
}
