//! A voter's task: it alone owns the requests to its voter.
//!
//! Callers put requests into its queue and get an answer through a channel. A caller that goes away
//! takes nothing back: what was queued is sent, in the order of the queue, so an undo put in behind
//! an acquire arrives behind it.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures::{
    future::BoxFuture,
    stream::{FuturesUnordered, StreamExt},
};
use tokio::sync::{mpsc, oneshot};

use super::{Call, Identity, Node, Outcome};
use crate::{
    clock::Clock,
    scripts::Answer,
    words::{Cause, metric},
};

/// The handle to a voter's task. The task ends, and closes its node, when the handle is dropped and
/// everything that was queued is answered.
#[derive(Debug)]
pub(crate) struct Voter {
    label: Arc<str>,
    queue: mpsc::UnboundedSender<Request>,
}

enum Request {
    Run(Call, oneshot::Sender<Outcome<Answer>>),
    Subscribe(Arc<str>, oneshot::Sender<Outcome<()>>),
    Unsubscribe(Arc<str>),
    Identify(oneshot::Sender<Outcome<Identity>>),
}

impl Voter {
    /// Starts the task. It runs on the current runtime.
    pub(crate) fn spawn(label: Arc<str>, node: Arc<dyn Node>, clock: Clock) -> Self {
        let (queue, requests) = mpsc::unbounded_channel();
        tokio::spawn(serve(Arc::clone(&label), node, clock, requests));
        Self { label, queue }
    }

    /// The voter's address, without credentials.
    pub(crate) fn label(&self) -> &Arc<str> {
        &self.label
    }

    /// Queues a script. Never blocks, works on any thread.
    pub(crate) fn run(&self, call: Call) -> Reply<Answer> {
        self.request(|answer| Request::Run(call, answer))
    }

    pub(crate) fn subscribe(&self, channel: Arc<str>) -> Reply<()> {
        self.request(|answer| Request::Subscribe(channel, answer))
    }

    pub(crate) fn unsubscribe(&self, channel: Arc<str>) {
        // A task that has ended listens to nothing.
        let _ = self.queue.send(Request::Unsubscribe(channel));
    }

    pub(crate) fn identify(&self) -> Reply<Identity> {
        self.request(Request::Identify)
    }

    fn request<T>(&self, make: impl FnOnce(oneshot::Sender<Outcome<T>>) -> Request) -> Reply<T> {
        let (sender, receiver) = oneshot::channel();
        // Where the task has ended the sender is dropped with the request, which the reply tells.
        let _ = self.queue.send(make(sender));
        Reply(receiver)
    }
}

/// A request's outcome. Dropping it drops the answer, never the request.
#[derive(Debug)]
pub(crate) struct Reply<T>(oneshot::Receiver<Outcome<T>>);

impl<T> Future for Reply<T> {
    type Output = Outcome<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let received = ready!(Pin::new(&mut self.0).poll(context));
        Poll::Ready(
            received.unwrap_or_else(|_| Err(Cause::Unreachable("the client is closed".into()))),
        )
    }
}

async fn serve(
    label: Arc<str>,
    node: Arc<dyn Node>,
    clock: Clock,
    mut requests: mpsc::UnboundedReceiver<Request>,
) {
    let mut under_way: FuturesUnordered<BoxFuture<'static, ()>> = FuturesUnordered::new();
    let mut open = true;
    while open || !under_way.is_empty() {
        tokio::select! {
            biased;
            request = requests.recv(), if open => match request {
                // New futures are polled in the order of pushing, so requests leave in that order.
                Some(request) => under_way.push(start(&label, &*node, &clock, request)),
                None => open = false,
            },
            Some(()) = under_way.next(), if !under_way.is_empty() => {}
        }
    }
    node.close().await;
}

fn start(
    label: &Arc<str>,
    node: &dyn Node,
    clock: &Clock,
    request: Request,
) -> BoxFuture<'static, ()> {
    // Whoever asked may have gone: then nobody misses the answer.
    match request {
        Request::Run(call, answer) => {
            let (label, clock) = (Arc::clone(label), clock.clone());
            let votes = call.script.votes;
            let sent = clock.now();
            let outcome = node.run(call);
            Box::pin(async move {
                let outcome = outcome.await.and_then(Answer::only);
                record(&label, votes, &outcome, clock.now().since(sent));
                let _ = answer.send(outcome);
            })
        }
        Request::Subscribe(channel, answer) => pass(node.subscribe(channel), answer),
        Request::Identify(answer) => pass(node.identify(), answer),
        Request::Unsubscribe(channel) => {
            let outcome = node.unsubscribe(channel);
            Box::pin(async move { drop(outcome.await) })
        }
    }
}

fn pass<T: Send + 'static>(
    outcome: BoxFuture<'static, Outcome<T>>,
    answer: oneshot::Sender<Outcome<T>>,
) -> BoxFuture<'static, ()> {
    Box::pin(async move { drop(answer.send(outcome.await)) })
}

fn record(label: &Arc<str>, votes: bool, outcome: &Outcome<Answer>, took: Duration) {
    if outcome.is_ok() {
        metrics::histogram!(metric::VOTER_SECONDS, "voter" => Arc::clone(label)).record(took);
    }
    if votes {
        let verdict = match outcome {
            Ok(answer) if answer.code == 1 => "granted",
            Ok(_) => "refused",
            Err(_) => "unknown",
        };
        metrics::counter!(metric::VERDICTS, "voter" => Arc::clone(label), "verdict" => verdict)
            .increment(1);
    }
}
