//! Channels: one task keeps a connection up, and the server's list equal to ours.

use std::{
    collections::HashSet,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use fred::{
    error::Error,
    interfaces::{ClientLike, EventInterface, PubsubInterface},
    types::{Message, Resp3Frame as Frame, config::Options},
};
use futures::future::{self, BoxFuture, join_all};
use tokio::{
    sync::{
        broadcast::{
            self,
            error::RecvError::{Closed, Lagged},
        },
        mpsc, oneshot, watch,
    },
    time,
};

use super::{
    Address, Runner, UNTRIED,
    dial::Dialer,
    link::{BACKLOG, Link},
    wire,
};
use crate::{
    proto::Cause,
    scripts::Value,
    voter::{Ear, Outcome, contract::begin, pauses::Pauses, seat::Seat},
};

/// How long the server may take to confirm.
const CONFIRMATION: Duration = Duration::from_secs(1);
/// Until what failed on a connection that still stands is tried again.
const PAUSE: Duration = Duration::from_millis(200);
/// How many replies may be on their way to another command than their own, before the connection is
/// given up: a refused request adds one.
const OUT_OF_STEP: u32 = 64;
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

/// Keeps a connection up, for as long as this future is polled, and fulfils wishes. On each new
/// connection it listens to everything again and tells the ear.
pub(super) async fn keep(
    address: Address,
    ear: Arc<dyn Ear>,
    mut wishes: mpsc::UnboundedReceiver<ListenWish>,
    runner: Arc<Runner>,
    tried: watch::Sender<Option<Arc<str>>>,
) {
    let mut dialer = Dialer::new(address, BACKLOG);
    let mut wanted = HashSet::new();
    let mut pauses = Pauses::new(super::PAUSE, super::LONGEST);
    loop {
        let connected = tokio::select! {
            connected = dialer.connect() => connected,
            () = refuse(&mut wishes, &mut wanted, &tried) => return,
        };
        let why = match connected {
            Ok((link, mut router, _)) => {
                pauses.reset();
                let messages = link.client.message_rx();
                tried.send_replace(Some(link.trouble()));
                let (listens, wanted) = (Arc::clone(&link), &mut wanted);
                let listener = Listener { link: listens, wanted, plain: false, confirmations: 0 };
                tokio::select! {
                    () = link.watch(&mut router, || ear.is_waited_for()) => {}
                    () = runner.gate.elsewhere(&link.place) => {}
                    () = hear(&link, messages, &*ear, runner.looks.seat) => {}
                    () = listener.listen(&*ear, &mut wishes) => return,
                }
                link.trouble()
            }
            Err(why) => why,
        };
        let pause = pauses.after(&why, rand::random());
        tried.send_replace(Some(why));
        tokio::select! {
            () = time::sleep(pause) => {}
            () = refuse(&mut wishes, &mut wanted, &tried) => return,
        }
    }
}

/// Takes note of wishes that cannot be fulfilled now; completes when there will be no more.
async fn refuse(
    wishes: &mut mpsc::UnboundedReceiver<ListenWish>,
    wanted: &mut HashSet<Channel>,
    tried: &watch::Sender<Option<Arc<str>>>,
) {
    while let Some(wish) = wishes.recv().await {
        let answer = wish.note(wanted);
        // Whoever asked may have gone, and then takes the wish back himself.
        let _ = answer.send(Err(unreachable(tried.borrow().as_ref())));
    }
}

/// With the latest trouble.
pub(super) fn unreachable(trouble: Option<&Arc<str>>) -> Cause {
    Cause::Unreachable(trouble.map_or_else(|| UNTRIED.into(), Arc::clone))
}

/// Hands messages on, those from now on, until the client is gone.
async fn hear(
    link: &Link,
    mut messages: broadcast::Receiver<Message>,
    ear: &dyn Ear,
    seat: Option<Seat>,
) {
    loop {
        match messages.recv().await {
            Ok(message) => {
                link.answered.store(true, Relaxed);
                let text = message.value.as_str().unwrap_or_default();
                let outside = seat.and_then(|seat| seat.outside_channel(&message.channel));
                ear.called(outside.as_deref().unwrap_or(&message.channel), &text);
            }
            Err(Lagged(_)) => ear.missed(),
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

/// Listens to a channel with a slot, or leaves it, and says whether the server and the user's
/// rights allow for that. Other than to `SUBSCRIBE` the server answers in order, as it may have to
/// say `MOVED`.
async fn shard(link: &Link, options: &Options, channel: &str, listen: bool) -> Outcome<bool> {
    if !listen {
        let left = link.client.with_options(options).sunsubscribe(channel).await;
        return left.map(|()| true).map_err(|error| link.cause(&error, CONFIRMATION));
    }
    let reply = link.command(options, "SSUBSCRIBE", vec![channel.into()]).await;
    match link.noted(reply, CONFIRMATION)? {
        Frame::SimpleError { data, .. }
            if data.starts_with("ERR unknown command") || data.starts_with("NOPERM") =>
        {
            Ok(false)
        }
        Frame::Push { .. } => Ok(true),
        other => wire::value(other).map(|_| true),
    }
}

/// What listens on one connection.
struct Listener<'a> {
    link: Arc<Link>,
    wanted: &'a mut HashSet<Channel>,
    /// The server knows no channels with slots, or the user may not use them.
    plain: bool,
    confirmations: u64,
}

impl Listener<'_> {
    /// Ends when there will be no more wishes.
    async fn listen(mut self, ear: &dyn Ear, wishes: &mut mpsc::UnboundedReceiver<ListenWish>) {
        let mut stale = self.restore(ear).await.is_err();
        let mut batch = Vec::new();
        loop {
            tokio::select! {
                biased;
                () = time::sleep(PAUSE), if stale => stale = self.restore(ear).await.is_err(),
                count = wishes.recv_many(&mut batch, BATCH) => {
                    if count == 0 {
                        return;
                    }
                    self.fulfil(batch.drain(..)).await;
                    // Many wishes must not keep the pause above from ever ending.
                    stale = stale && self.restore(ear).await.is_err();
                }
            }
        }
    }

    async fn fulfil(&mut self, wishes: impl Iterator<Item = ListenWish>) {
        let (mut asked, mut answers) = (Vec::new(), Vec::new());
        for wish in wishes {
            asked.push((wish.channel.clone(), wish.listen));
            answers.push(wish.note(self.wanted));
        }
        // Each by itself: a channel that is refused takes no other with it.
        let outcome = self.settle(&Link::options(CONFIRMATION), asked, 1).await;
        for answer in answers {
            // Whoever asked may have gone, and then takes the wish back himself.
            let _ = answer.send(outcome.clone());
        }
    }

    async fn restore(&mut self, ear: &dyn Ear) -> Outcome<()> {
        if self.wanted.is_empty() {
            return Ok(());
        }
        // The news of a connection comes a little before fred counts it as one.
        let options = Options { fail_fast: false, ..Link::options(CONFIRMATION) };
        let asked: Vec<_> = self.wanted.iter().map(|channel| (channel.clone(), true)).collect();
        let count = asked.len();
        self.settle(&options, asked, count).await?;
        ear.missed();
        Ok(())
    }

    /// Listens to channels, or leaves them, in this order. Completes when all is in force. Of those
    /// without slots so many are asked for `at_once`, of one kind.
    async fn settle(
        &mut self,
        options: &Options,
        asked: Vec<(Channel, bool)>,
        at_once: usize,
    ) -> Outcome<()> {
        let has_slot = |(channel, _): &(Channel, bool)| channel.sharded && !self.plain;
        let (sharded, mut rest): (Vec<_>, Vec<_>) = asked.into_iter().partition(has_slot);
        let link = Arc::clone(&self.link);
        // Polled in this order, so they leave in it.
        let sent = sharded.iter().map(|(channel, on)| shard(&link, options, &channel.name, *on));
        let (sent, mut failed) = (join_all(sent).await, None);
        for (asked, outcome) in sharded.into_iter().zip(sent) {
            match outcome {
                Ok(true) => {}
                Ok(false) => {
                    self.plain = true;
                    rest.push(asked);
                }
                Err(cause) => failed = failed.or(Some(cause)),
            }
        }
        // The others are asked for all the same. Each request names a channel: `SUBSCRIBE` without
        // one is an error, which would shift all later replies.
        let rest = rest.chunks(at_once).map(|asked| {
            let names = asked.iter().map(|(channel, _)| channel.name.to_string());
            let (names, listen): (Vec<_>, _) = (names.collect(), asked[0].1);
            let client = link.client.with_options(options);
            // It completes when fred has written the request, which proves nothing.
            begin(async move {
                if listen { client.subscribe(names).await } else { client.unsubscribe(names).await }
            })
        });
        let confirmed = self.confirm(rest.collect()).await;
        failed.map_or(confirmed, Err)
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
    async fn confirm(&mut self, asked: Vec<BoxFuture<'static, Result<(), Error>>>) -> Outcome<()> {
        let reply = begin(self.ping());
        let (written, mut reply) = future::join(join_all(asked), reply).await;
        for written in written {
            written.map_err(|error| self.link.cause(&error, CONFIRMATION))?;
        }
        let mut refused = None;
        for turn in 1..OUT_OF_STEP {
            match reply {
                Ok(Value::Text(number)) if number == self.confirmations.to_string() => {
                    return refused.map_or(Ok(()), Err);
                }
                Ok(Value::Text(number)) if number.parse::<u64>().is_ok() => {}
                Ok(_) => break,
                // The user may not send it: what else was refused has been answered before.
                Err(Cause::Rejected(why)) if why.contains("'ping'") => {
                    return refused.map_or(Ok(()), Err);
                }
                Err(why @ Cause::Rejected(_)) => refused = refused.or(Some(why)),
                Err(cause) => return Err(cause),
            }
            // What is under way may come meanwhile.
            time::sleep(STEP * turn).await;
            reply = self.ping().await;
        }
        self.link.rejected.notify_one();
        Err(Cause::Broken("replies out of step".into()))
    }

    /// Sends the next number, and completes with what fred takes for its answer.
    fn ping(&mut self) -> impl Future<Output = Outcome<Value>> + use<> {
        self.confirmations += 1;
        let (link, number) = (Arc::clone(&self.link), self.confirmations.to_string());
        async move {
            let options = Link::options(CONFIRMATION);
            let reply = link.command(&options, "PING", vec![number.into()]).await;
            link.noted(reply, CONFIRMATION).and_then(wire::value)
        }
    }
}
