//! Channels: one task keeps the server's list equal to ours.

use std::{collections::HashSet, sync::Arc, time::Duration};

use fred::{
    interfaces::{ClientLike, EventInterface, PubsubInterface},
    types::{ClusterHash, CustomCommand, Value as Argument, config::Options},
};
use futures::future::join_all;
use tokio::{
    sync::{
        Notify,
        broadcast::error::RecvError::{Closed, Lagged},
        mpsc, oneshot,
    },
    time,
};

use super::{link::Link, replies};
use crate::{
    node::{Ear, Outcome},
    scripts::Value,
    words::Cause,
};

/// How long the server may take to confirm.
const CONFIRMATION: Duration = Duration::from_secs(1);
/// Until what failed on a connection that still stands is tried again.
const PAUSE: Duration = Duration::from_millis(200);
/// The most wishes that are settled by one confirmation.
const BATCH: usize = 1024;

/// What a caller wants, and where to tell what came of it.
pub(super) struct Wish {
    pub(super) channel: Arc<str>,
    pub(super) listen: bool,
    pub(super) answer: oneshot::Sender<Outcome<()>>,
}

/// Hands messages on, those from now on, until the client is gone.
pub(super) fn hear(link: Arc<Link>, ear: Arc<dyn Ear>) -> impl Future<Output = ()> {
    let mut messages = link.client().message_rx();
    async move {
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
}

/// Fulfils wishes. After each `connected` it listens to everything again and tells the ear.
pub(super) async fn listen(
    link: Arc<Link>,
    ear: Arc<dyn Ear>,
    mut wishes: mpsc::UnboundedReceiver<Wish>,
    connected: Arc<Notify>,
) {
    let mut listener = Listener { link, wanted: HashSet::new(), confirmations: 0 };
    let mut stale = false;
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            biased;
            () = connected.notified() => stale = listener.restore(&*ear).await.is_err(),
            () = time::sleep(PAUSE), if stale && listener.link.client().is_connected() => {
                stale = listener.restore(&*ear).await.is_err();
            }
            count = wishes.recv_many(&mut batch, BATCH) => {
                if count == 0 {
                    return;
                }
                listener.fulfil(batch.drain(..)).await;
                // Many wishes must not keep the pause above from ever ending.
                stale = stale && listener.restore(&*ear).await.is_err();
            }
        }
    }
}

struct Listener {
    link: Arc<Link>,
    wanted: HashSet<Arc<str>>,
    confirmations: u64,
}

impl Listener {
    async fn fulfil(&mut self, wishes: impl Iterator<Item = Wish>) {
        let mut answers = Vec::new();
        let mut requests = Vec::new();
        for wish in wishes {
            if wish.listen {
                self.wanted.insert(Arc::clone(&wish.channel));
            } else {
                self.wanted.remove(&wish.channel);
            }
            answers.push(wish.answer);
            let options = Link::options(CONFIRMATION);
            requests.push(self.request(&options, &[wish.channel], wish.listen));
        }
        // Polled in this order, so they leave in it.
        let sent = join_all(requests).await.into_iter().collect::<Outcome<()>>();
        let outcome = match sent {
            Ok(()) => self.confirm().await,
            Err(cause) => Err(cause),
        };
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
        let wanted: Vec<_> = self.wanted.iter().map(Arc::clone).collect();
        self.request(&options, &wanted, true).await?;
        self.confirm().await?;
        ear.missed();
        Ok(())
    }

    /// Completes when fred has written the request, which proves nothing. It is flushed with the
    /// confirmation, that always follows.
    fn request(
        &self,
        options: &Options,
        channels: &[Arc<str>],
        listen: bool,
    ) -> impl Future<Output = Outcome<()>> + use<> {
        let link = Arc::clone(&self.link);
        let client = link.client().with_options(options);
        let channels: Vec<String> = channels.iter().map(|channel| (**channel).to_owned()).collect();
        async move {
            let written = if listen {
                client.subscribe(channels).await
            } else {
                client.unsubscribe(channels).await
            };
            written.map_err(|error| replies::cause(&error, CONFIRMATION, || link.trouble()))
        }
    }

    /// A PING behind the requests on the same connection: when its answer is here, they are in
    /// force.
    ///
    /// A refused request (a user may lack the right to a channel) answers with an error, which fred
    /// does not expect and takes for the next command's. So each PING carries a number of its own,
    /// and what answers with another is asked again, by when the surplus reply is gone.
    async fn confirm(&mut self) -> Outcome<()> {
        for _ in 0..3 {
            self.confirmations += 1;
            let number = self.confirmations.to_string();
            let client = self.link.client().with_options(&Link::options(CONFIRMATION));
            let ping = CustomCommand::new_static("PING", ClusterHash::Custom(0), false);
            let reply = client.custom_raw(ping, vec![Argument::from(number.clone())]).await;
            let reply = self.link.noted(reply, CONFIRMATION).and_then(replies::value)?;
            if reply == Value::Text(number) {
                return Ok(());
            }
        }
        self.link.reject();
        Err(Cause::Broken("replies out of step".into()))
    }
}
