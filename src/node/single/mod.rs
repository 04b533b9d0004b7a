//! One Redis server, by the `fred` client. No type of fred's is seen outside this folder.
//!
//! Two connections: one for scripts, one that listens. Each has a task that keeps it up, watches
//! whether the server still answers, and replaces a connection on which it does not. That of the
//! scripts asks the server on each new connection who it is, before any script leaves on it.

mod acks;
mod address;
mod gate;
mod identity;
mod link;
mod listen;
mod order;
mod replies;
mod run;
mod standing;
#[cfg(feature = "tls")]
mod tls;

#[cfg(test)]
mod tests;

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use tokio::{
    sync::{Notify, mpsc, oneshot},
    task::JoinSet,
};

pub(crate) use self::address::Address;
use self::{acks::Acks, gate::Gate, link::Link, listen::Wish, order::Order, run::Runner};
use super::{Call, Ear, Identity, Node, Outcome};
use crate::{scripts::Value, settings::ReplicaAcks, words::Cause};

/// How many messages wait for the task that hands them on, before whoever waits must look again.
/// fred makes room for as many at once in each of its eight kinds of news: 0.8 KB for each.
const BACKLOG: usize = 1024;
/// The same for the connection that hears nothing but of itself.
const FEW: usize = 32;
/// How long a server may take to say who it is.
const IDENTIFICATION: Duration = Duration::from_secs(1);

/// A single server. Its tasks end with [`Node::close`] or when it is dropped.
pub(crate) struct SingleNode {
    label: Arc<str>,
    runner: Arc<Runner>,
    wishes: mpsc::UnboundedSender<Wish>,
    listening: Arc<Link>,
    tasks: Mutex<JoinSet<()>>,
}

impl SingleNode {
    /// Starts to connect, and never stops to: a server that is down now may come up later. Must be
    /// called on a runtime. `acks` is what its grants need in order to count.
    pub(crate) fn start(address: &Address, ear: Arc<dyn Ear>, acks: ReplicaAcks) -> Arc<dyn Node> {
        let listening = Arc::new(Link::lasting(address, BACKLOG));
        let runner =
            Arc::new(Runner { gate: Gate::new(), order: Order::new(), acks: Acks::new(acks) });
        let (wishes, asked) = mpsc::unbounded_channel();
        let connected = Arc::new(Notify::new());

        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&runner).keep(address.clone(), Arc::clone(&ear)));
        tasks.spawn(listen::hear(Arc::clone(&listening), Arc::clone(&ear)));
        let link = Arc::clone(&listening);
        tasks.spawn(listen::listen(link, ear, asked, Arc::clone(&connected)));
        tasks.spawn(Arc::clone(&listening).keep(move || connected.notify_one()));

        let label = Arc::clone(address.label());
        Arc::new(Self { label, runner, wishes, listening, tasks: Mutex::new(tasks) })
    }

    fn wish(&self, channel: Arc<str>, listen: bool) -> BoxFuture<'static, Outcome<()>> {
        let (wishes, link) = (self.wishes.clone(), Arc::clone(&self.listening));
        async move {
            let (answer, answered) = oneshot::channel();
            // After `close` nobody takes it, and the answer is dropped with it.
            let _ = wishes.send(Wish { channel, listen, answer });
            answered.await.unwrap_or_else(|_| Err(Cause::Unreachable(link.trouble())))
        }
        .boxed()
    }
}

impl Node for SingleNode {
    fn run(&self, call: Call) -> BoxFuture<'static, Outcome<Value>> {
        Arc::clone(&self.runner).run(call).boxed()
    }

    fn subscribe(&self, channel: Arc<str>) -> BoxFuture<'static, Outcome<()>> {
        self.wish(channel, true)
    }

    fn unsubscribe(&self, channel: Arc<str>) -> BoxFuture<'static, Outcome<()>> {
        self.wish(channel, false)
    }

    fn identify(&self) -> BoxFuture<'static, Outcome<Identity>> {
        identify(Arc::clone(&self.runner), Arc::clone(&self.listening)).boxed()
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

async fn identify(runner: Arc<Runner>, listening: Arc<Link>) -> Outcome<Identity> {
    // Who asks right after the start wants to know about the server, not that this is the start.
    let tried = async { tokio::join!(runner.gate.tried(), listening.tried()) };
    // What is known by then is the answer, whether that was enough time or not.
    let _ = tokio::time::timeout(IDENTIFICATION, tried).await;
    runner.identity().await
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
