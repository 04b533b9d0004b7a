//! One Redis server, by the `fred` client. No type of fred's is seen outside this folder.
//!
//! Two connections: one for scripts, one that listens. Each has a task that keeps it up, watches
//! whether the server still answers, and replaces a connection on which it does not. That of the
//! scripts asks the server on each new connection who it is, before any script leaves on it.

mod acks;
mod address;
mod arguments;
mod credentials;
mod dial;
mod gate;
mod identity;
mod info;
mod link;
mod listen;
mod mark;
mod order;
mod question;
mod replies;
mod run;
mod sentinel;
mod standing;
mod survey;
#[cfg(feature = "tls")]
mod tls;

#[cfg(test)]
mod tests;

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinSet,
};

pub use self::credentials::Credentials;
#[cfg(feature = "tls")]
pub use self::tls::Tls;
pub(crate) use self::{address::Address, credentials::Provider};
use self::{
    listen::{Channel, ListenWish},
    run::Runner,
};
pub(super) use self::{order::Order, question::Inquirer};
use super::{
    Answers, Call, Ear, Identity, KeySearch, KeysFound, Node, Outcome, contract::begin, lock,
};
use crate::{proto::ServerReport, settings::ReplicaAcks};

/// How long a server may take to say who it is.
const IDENTIFICATION: Duration = Duration::from_secs(3);
/// Between a connection that stood for a while and the next attempt; then twice as long each time.
const PAUSE: Duration = Duration::from_millis(10);
/// The longest pause between two attempts.
const LONGEST: Duration = Duration::from_millis(500);

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
    /// The key of its mark; none where it can have none.
    pub(crate) mark: Option<Arc<str>>,
    /// It may delete keys where its memory is full.
    pub(crate) may_evict: bool,
    /// It belongs to a cluster: what is published on the channel of a lock is for those who listen
    /// at the server that has its slot. `PUBLISH` is passed on to all servers of a cluster.
    pub(crate) is_sharded: bool,
}

/// A single server. Its tasks end with [`Node::close`] or when it is dropped.
pub(crate) struct SingleNode {
    label: Arc<str>,
    pub(super) runner: Arc<Runner>,
    wishes: mpsc::UnboundedSender<ListenWish>,
    /// What last went wrong with listening, once it was tried.
    listening: watch::Receiver<Option<Arc<str>>>,
    tasks: Mutex<JoinSet<()>>,
}

impl SingleNode {
    /// Starts to connect, and never stops to: a server that is down now may come up later. Must be
    /// called on a runtime.
    pub(crate) fn start(address: &Address, ear: Arc<dyn Ear>, looks: Looks) -> Arc<Self> {
        let runner = Arc::new(Runner { looks, ..Runner::default() });
        let (wishes, asked) = mpsc::unbounded_channel();
        let (tried, listening) = watch::channel(None);

        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&runner).keep(address.clone(), Arc::clone(&ear)));
        let runs = Arc::clone(&runner);
        tasks.spawn(listen::keep(address.clone(), ear, asked, runs, tried));
        #[cfg(feature = "tls")]
        if let Some(tls) = &address.secured.tls {
            tasks.spawn(Arc::clone(tls).tell_of_certificate());
        }

        let label = Arc::clone(address.label());
        Arc::new(Self { label, runner, wishes, listening, tasks: Mutex::new(tasks) })
    }

    /// Listens to a channel, or leaves it. `sharded`: it has a hash slot, and this server has that.
    pub(super) fn wish(
        &self,
        channel: &Arc<str>,
        sharded: bool,
        listen: bool,
    ) -> BoxFuture<'static, Outcome<()>> {
        let channel = Channel { name: Arc::clone(channel), sharded };
        let (answer, answered) = oneshot::channel();
        // After `close` nobody takes it, and the answer is dropped with it.
        let _ = self.wishes.send(ListenWish { channel, listen, answer });
        let listening = self.listening.clone();
        async move {
            answered.await.unwrap_or_else(|_| Err(listen::unreachable(listening.borrow().as_ref())))
        }
        .boxed()
    }
}

impl Node for SingleNode {
    fn send(&self, call: Call) -> BoxFuture<'static, Answers> {
        begin(Arc::clone(&self.runner).run(call, false))
    }

    fn subscribe(&self, channel: Arc<str>) -> BoxFuture<'static, Outcome<()>> {
        self.wish(&channel, false, true)
    }

    fn unsubscribe(&self, channel: Arc<str>) -> BoxFuture<'static, Outcome<()>> {
        self.wish(&channel, false, false)
    }

    fn identify(&self) -> BoxFuture<'static, Outcome<Identity>> {
        begin(identify(Arc::clone(&self.runner), self.listening.clone()))
    }

    fn rename(&self, _: usize) -> BoxFuture<'static, Outcome<()>> {
        Arc::clone(&self.runner).rename().boxed()
    }

    fn survey(&self, calls: Arc<str>) -> BoxFuture<'static, Outcome<Vec<ServerReport>>> {
        let (server, runner) = (self.label.to_string(), Arc::clone(&self.runner));
        async move { Ok(vec![ServerReport { server, info: runner.survey(calls).await }]) }.boxed()
    }

    fn search(&self, search: KeySearch) -> BoxFuture<'static, Outcome<KeysFound>> {
        let KeySearch { keys, names, limit } = search;
        let pattern = keys.pattern(&names, "");
        Arc::clone(&self.runner).search(pattern, limit, move |key| keys.found(key)).boxed()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        let mut tasks = std::mem::take(&mut *lock(&self.tasks));
        async move { tasks.shutdown().await }.boxed()
    }
}

impl fmt::Debug for SingleNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SingleNode({})", self.label)
    }
}

async fn identify(
    runner: Arc<Runner>,
    mut listening: watch::Receiver<Option<Arc<str>>>,
) -> Outcome<Identity> {
    // Who asks right after the start wants to know about the server, not that this is the start.
    let heard_of = async { drop(listening.wait_for(Option::is_some).await) };
    let tried = async { tokio::join!(runner.tried(), heard_of) };
    // What is known by then is the answer, whether that was enough time or not.
    let _ = tokio::time::timeout(IDENTIFICATION, tried).await;
    runner.identity().await
}
