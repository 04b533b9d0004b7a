//! Channels: one task keeps a connection up, and the server's list equal to ours.

use std::{
    collections::HashSet,
    slice,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use fred::{
    clients::{Client, WithOptions},
    error::Error,
    interfaces::{ClientLike, EventInterface, PubsubInterface},
    types::{
        ClusterHash, CustomCommand, Message, Resp3Frame as Frame, Value as Argument,
        config::Options,
    },
};
use futures::future::{self, join_all};
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

use super::{Address, BACKLOG, dial::Dialer, gate::UNTRIED, link::Link, replies, run::Runner};
use crate::{
    proto::Cause,
    scripts::Value,
    voter::{Ear, Outcome, contract::begin, pauses::Pauses},
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
    let mut dialer = Dialer::new(address);
    let mut wanted = HashSet::new();
    let mut pauses = Pauses::new(super::PAUSE, super::LONGEST);
    loop {
        let attempt = async {
            let dialed = dialer.dial().await?;
            dialer.connect(dialed.config, BACKLOG).await
        };
        let refusing = refuse(&mut wishes, &mut wanted, &tried);
        let connected = tokio::select! {
            connected = attempt => connected,
            () = refusing => return,
        };
        let why = match connected {
            Ok((link, mut router)) => {
                pauses.reset();
                let messages = link.client().message_rx();
                tried.send_replace(Some(link.trouble()));
                let listener = Listener::new(Arc::clone(&link), &mut wanted);
                tokio::select! {
                    () = link.watch(&mut router, || ear.is_waited_for()) => {}
                    () = runner.gate.elsewhere(link.place()) => {}
                    () = hear(&link, messages, &*ear) => {}
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
async fn hear(link: &Link, mut messages: broadcast::Receiver<Message>, ear: &dyn Ear) {
    loop {
        match messages.recv().await {
            Ok(message) => {
                link.heard();
                let text = message.value.as_str().unwrap_or_default();
                ear.called(&message.channel, &text);
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

/// Listens to a channel with a slot, and says whether the server and the user's rights allow for
/// that. Other than to `SUBSCRIBE` the server answers in order, as it may have to say `MOVED`.
async fn shard(link: &Link, client: &WithOptions<Client>, channel: &str) -> Outcome<bool> {
    let command = CustomCommand::new_static("SSUBSCRIBE", ClusterHash::Custom(0), false);
    let reply = client.custom_raw(command, vec![Argument::from(channel)]).await;
    match link.noted(reply, CONFIRMATION)? {
        Frame::SimpleError { data, .. } if is_missing(&data) => Ok(false),
        Frame::Push { .. } => Ok(true),
        other => replies::value(other).map(|_| true),
    }
}

fn is_missing(error: &str) -> bool {
    error.starts_with("ERR unknown command") || error.starts_with("NOPERM")
}

/// Channels without slots, or to be treated as such.
struct Rest {
    channels: Vec<String>,
    listen: bool,
}

impl Rest {
    /// Completes when fred has written the request, which proves nothing.
    async fn ask(self, client: WithOptions<Client>) -> Result<(), Error> {
        if self.listen {
            client.subscribe(self.channels).await
        } else {
            client.unsubscribe(self.channels).await
        }
    }
}

/// What listens on one connection.
struct Listener<'a> {
    link: Arc<Link>,
    wanted: &'a mut HashSet<Channel>,
    /// The server knows no channels with slots, or the user may not use them.
    plain: Arc<AtomicBool>,
    confirmations: u64,
}

impl<'a> Listener<'a> {
    fn new(link: Arc<Link>, wanted: &'a mut HashSet<Channel>) -> Self {
        Self { link, wanted, plain: Arc::default(), confirmations: 0 }
    }

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
        let options = Link::options(CONFIRMATION);
        let mut answers = Vec::new();
        let mut requests = Vec::new();
        for wish in wishes {
            requests.push(self.request(&options, slice::from_ref(&wish.channel), wish.listen));
            answers.push(wish.note(self.wanted));
        }
        // Polled in this order, so they leave in it.
        let (mut rest, mut failed) = (Vec::new(), None);
        for asked in join_all(requests).await {
            match asked {
                Ok(others) => rest.push(others),
                Err(cause) => failed = failed.or(Some(cause)),
            }
        }
        // The others are asked for all the same.
        let confirmed = self.confirm(&options, rest).await;
        let outcome = failed.map_or(confirmed, Err);
        for answer in answers {
            // Whoever asked may have gone, and then takes the wish back himself.
            let _ = answer.send(outcome.clone());
        }
    }

    async fn restore(&mut self, ear: &dyn Ear) -> Outcome<()> {
        if self.wanted.is_empty() {
            // With no channel named, SUBSCRIBE is an error, which would shift all later replies.
            return Ok(());
        }
        // The news of a connection comes a little before fred counts it as one.
        let options = Options { fail_fast: false, ..Link::options(CONFIRMATION) };
        let wanted: Vec<_> = self.wanted.iter().cloned().collect();
        let rest = self.request(&options, &wanted, true).await?;
        self.confirm(&options, vec![rest]).await?;
        ear.missed();
        Ok(())
    }

    /// Asks for the channels with slots. Completes with what is to be asked for otherwise.
    fn request(
        &self,
        options: &Options,
        channels: &[Channel],
        listen: bool,
    ) -> impl Future<Output = Outcome<Rest>> + use<> {
        let (link, plain) = (Arc::clone(&self.link), Arc::clone(&self.plain));
        let client = link.client().with_options(options);
        let (sharded, mut others): (Vec<_>, Vec<_>) =
            channels.iter().cloned().partition(|channel| channel.sharded);
        async move {
            if plain.load(Ordering::Relaxed) {
                others.extend(sharded);
            } else if listen {
                let asked = sharded.iter().map(|channel| shard(&link, &client, &channel.name));
                for (channel, listens) in sharded.iter().zip(join_all(asked).await) {
                    if !listens? {
                        plain.store(true, Ordering::Relaxed);
                        others.push(channel.clone());
                    }
                }
            } else if !sharded.is_empty() {
                let names: Vec<_> =
                    sharded.iter().map(|channel| channel.name.to_string()).collect();
                let left = client.sunsubscribe(names).await;
                left.map_err(|error| link.cause(&error, CONFIRMATION))?;
            }
            let channels = others.iter().map(|channel| channel.name.to_string()).collect();
            Ok(Rest { channels, listen })
        }
    }

    /// Asks for the rest, and sends a PING behind that on the same connection: when its answer is
    /// here, all is in force.
    ///
    /// A refused request (a user may lack the right to a channel) is answered with an error. fred
    /// does not expect it, and gives it to the next command. Where no command waits, fred drops it,
    /// and the request would seem to be in force. So the PING is in fred's queue before the first
    /// request can be answered.
    ///
    /// After such an error each command gets the reply to the one before it. That ends when a reply
    /// comes while no command waits. Each PING has a number, which the server repeats. PINGs are
    /// sent until one gets its own number back.
    async fn confirm(&mut self, options: &Options, rest: Vec<Rest>) -> Outcome<()> {
        let link = Arc::clone(&self.link);
        let rest: Vec<_> = rest.into_iter().filter(|rest| !rest.channels.is_empty()).collect();
        // Begun in this order, so they leave in it.
        let asked =
            rest.into_iter().map(|rest| begin(rest.ask(link.client().with_options(options))));
        let asked: Vec<_> = asked.collect();
        let reply = begin(self.ping());
        let (written, mut reply) = future::join(join_all(asked), reply).await;
        for written in written {
            written.map_err(|error| link.cause(&error, CONFIRMATION))?;
        }
        let mut refused = None;
        for turn in 1..OUT_OF_STEP {
            match reply {
                Ok(Value::Text(number)) if number == self.confirmations.to_string() => {
                    return refused.map_or(Ok(()), Err);
                }
                Ok(Value::Text(number)) if number.parse::<u64>().is_ok() => {}
                Ok(_) => break,
                Err(why @ Cause::Rejected(_)) => refused = refused.or(Some(why)),
                Err(cause) => return Err(cause),
            }
            // What is under way may come meanwhile.
            time::sleep(STEP * turn).await;
            reply = self.ping().await;
        }
        self.link.reject();
        Err(Cause::Broken("replies out of step".into()))
    }

    /// Sends the next number, and completes with what fred takes for its answer.
    fn ping(&mut self) -> impl Future<Output = Outcome<Value>> + use<> {
        self.confirmations += 1;
        let (link, number) = (Arc::clone(&self.link), self.confirmations.to_string());
        async move {
            let client = link.client().with_options(&Link::options(CONFIRMATION));
            let ping = CustomCommand::new_static("PING", ClusterHash::Custom(0), false);
            let reply = client.custom_raw(ping, vec![Argument::from(number)]).await;
            link.noted(reply, CONFIRMATION).and_then(replies::value)
        }
    }
}
