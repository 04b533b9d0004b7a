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
use tokio::{
    runtime::Handle,
    sync::{mpsc, oneshot},
};

use super::{
    Call, Identity, Node, Outcome, Stamp, Standings,
    contract::is_passing,
    debts::{Debt, Debts},
};
use crate::{
    clock::{Clock, Moment},
    engine::Place,
    scripts::Answer,
    words::{Cause, metric},
};

/// The handle to a voter's task. The task ends, and closes its node, when the handle is dropped and
/// everything that was queued or owed is settled.
#[derive(Debug)]
pub(crate) struct Voter {
    label: Arc<str>,
    queue: mpsc::UnboundedSender<Request>,
}

/// Where it is noted what a voter shows of itself.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) voter: usize,
    pub(crate) standings: Arc<Standings>,
}

impl Seen {
    fn place(&self, shard: usize) -> Place {
        Place { voter: self.voter, shard }
    }
}

enum Request {
    Run { call: Call, owed_until: Option<Moment>, answer: oneshot::Sender<Outcome<Answer>> },
    Subscribe(Arc<str>, oneshot::Sender<Outcome<()>>),
    Unsubscribe(Arc<str>),
    Identify(oneshot::Sender<Outcome<Identity>>),
    Close(oneshot::Sender<Outcome<()>>),
}

impl Voter {
    /// Starts the task. It runs on the current runtime.
    pub(crate) fn spawn(label: Arc<str>, node: Arc<dyn Node>, clock: &Clock, seen: Seen) -> Self {
        let (queue, requests) = mpsc::unbounded_channel();
        let task = Task { label: Arc::clone(&label), node, clock: clock.clone(), seen };
        clock.spawn(&Handle::current(), task.serve(requests));
        Self { label, queue }
    }

    /// The voter's address, without credentials.
    pub(crate) fn label(&self) -> &Arc<str> {
        &self.label
    }

    /// Queues a script. Never blocks, works on any thread.
    pub(crate) fn run(&self, call: Call) -> Reply<Answer> {
        self.request(|answer| Request::Run { call, owed_until: None, answer })
    }

    /// Queues a script that is sent again until the voter answers it; where the client is dropped,
    /// no longer than until then. The reply is that of the first time.
    pub(crate) fn insist(&self, call: Call, until: Moment) -> Reply<Answer> {
        self.request(|answer| Request::Run { call, owed_until: Some(until), answer })
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

    /// Ends the task once what is under way is answered; nothing owed is sent again.
    pub(crate) fn close(&self) -> Reply<()> {
        self.request(Request::Close)
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
        let closed =
            || Err(Cause::Unreachable("the client is closed, or its runtime has ended".into()));
        Poll::Ready(received.unwrap_or_else(|_| closed()))
    }
}

/// What a request under way comes to.
enum Ended {
    Answered,
    /// By this part of the voter.
    Settled(usize),
    /// Likewise, and whatever it was to end may stand.
    Refused(usize),
    Owed(Debt),
}

struct Task {
    label: Arc<str>,
    node: Arc<dyn Node>,
    clock: Clock,
    seen: Seen,
}

impl Task {
    async fn serve(self, mut requests: mpsc::UnboundedReceiver<Request>) {
        let mut under_way: FuturesUnordered<BoxFuture<'static, Ended>> = FuturesUnordered::new();
        let mut debts = Debts::default();
        let mut closing = None;
        let mut open = true;
        while open || !under_way.is_empty() || !debts.is_empty() {
            tokio::select! {
                biased;
                request = requests.recv(), if open => match request {
                    Some(Request::Close(answer)) => {
                        (open, closing) = (false, Some(answer));
                        debts.forgive();
                    }
                    // Futures are first polled in the order of pushing: requests leave in order.
                    Some(request) => under_way.push(self.start(request)),
                    None => {
                        open = false;
                        debts.abandon();
                    }
                },
                Some(ended) = under_way.next(), if !under_way.is_empty() => match ended {
                    Ended::Settled(shard) => debts.settled(shard),
                    Ended::Refused(shard) => {
                        debts.settled(shard);
                        debts.leak();
                    }
                    Ended::Owed(debt) if closing.is_none() => debts.owe(debt, self.clock.now()),
                    Ended::Owed(_) => debts.leak(),
                    Ended::Answered => {}
                },
                () = self.sleep_until(debts.due()) => {
                    for debt in debts.take_due(self.clock.now()) {
                        under_way.push(self.pay(debt));
                    }
                }
            }
            let leaked = debts.take_leaked();
            if leaked > 0 {
                let label = Arc::clone(&self.label);
                metrics::counter!(metric::LEAKED_VOTES, "voter" => label).increment(leaked);
            }
        }
        self.node.close().await;
        if let Some(answer) = closing {
            // Whoever closes may have gone.
            let _ = answer.send(Ok(()));
        }
    }

    async fn sleep_until(&self, moment: Option<Moment>) {
        match moment {
            Some(moment) => self.clock.sleep_until(moment).await,
            None => std::future::pending().await,
        }
    }

    fn start(&self, request: Request) -> BoxFuture<'static, Ended> {
        match request {
            Request::Run { call, owed_until, answer } => {
                // A voter to which nothing is sent has nothing to give back.
                let Some(until) = owed_until.filter(|_| self.twin(&call).is_none()) else {
                    return pass(self.run(call), answer);
                };
                let outcome = self.run(call.clone());
                let node = Arc::clone(&self.node);
                Box::pin(async move {
                    let outcome = outcome.await;
                    let shard = node.shard(&call.keys);
                    let ended = ended(&outcome, Debt { call, until, shard });
                    // Whoever asked may have gone: then nobody misses the answer.
                    let _ = answer.send(outcome);
                    ended
                })
            }
            Request::Subscribe(channel, answer) => pass(self.node.subscribe(channel), answer),
            Request::Identify(answer) => pass(self.node.identify(), answer),
            Request::Close(answer) => pass(Box::pin(async { Ok(()) }), answer),
            Request::Unsubscribe(channel) => {
                let outcome = self.node.unsubscribe(channel);
                Box::pin(async move {
                    // A server that cannot be reached listens for nobody.
                    let _ = outcome.await;
                    Ended::Answered
                })
            }
        }
    }

    /// Why the voter has no vote now, if it is the same server as another.
    fn twin(&self, call: &Call) -> Option<Cause> {
        self.seen.standings.twin(self.seen.place(self.node.shard(&call.keys)))
    }

    fn pay(&self, debt: Debt) -> BoxFuture<'static, Ended> {
        let outcome = self.run(debt.call.clone());
        Box::pin(async move { ended(&outcome.await, debt) })
    }

    fn run(&self, call: Call) -> impl Future<Output = Outcome<Answer>> + Send + 'static {
        let votes = call.script.votes;
        let (label, clock, seen) = (Arc::clone(&self.label), self.clock.clone(), self.seen.clone());
        let (node, keys) = (Arc::clone(&self.node), Arc::clone(&call.keys));
        let asked = clock.now();
        let outcome = self.twin(&call).map_or_else(|| Ok(self.node.run(call)), Err);
        async move {
            let outcome = match outcome {
                Ok(outcome) => outcome.await.and_then(Answer::only),
                Err(twin) => Err(twin),
            };
            let outcome = outcome.map(|answer| answer.of_shard(node.shard(&keys)));
            // The connection may be another one than when it was queued, and lead elsewhere.
            let outcome = outcome.and_then(|answer| {
                seen.standings.twin(seen.place(answer.shard)).map_or(Ok(answer), Err)
            });
            let answered = clock.now();
            record(&label, votes, &outcome, answered.since(asked));
            // Before anybody counts the answer.
            if let Ok(answer) = &outcome
                && votes
                && let Some(shown) = answer.clock()
            {
                seen.standings.stamped(seen.place(answer.shard), Stamp { shown, asked, answered });
            }
            outcome
        }
    }
}

fn ended(outcome: &Outcome<Answer>, debt: Debt) -> Ended {
    match outcome {
        Ok(_) => Ended::Settled(debt.shard),
        // Any other error is an answer too: asking again brings the same.
        Err(Cause::Rejected(why)) if !is_passing(why) => Ended::Refused(debt.shard),
        Err(_) => Ended::Owed(debt),
    }
}

fn pass<T: Send + 'static>(
    outcome: impl Future<Output = Outcome<T>> + Send + 'static,
    answer: oneshot::Sender<Outcome<T>>,
) -> BoxFuture<'static, Ended> {
    Box::pin(async move {
        // Whoever asked may have gone: then nobody misses the answer.
        let _ = answer.send(outcome.await);
        Ended::Answered
    })
}

fn record(label: &Arc<str>, votes: bool, outcome: &Outcome<Answer>, took: Duration) {
    if outcome.is_ok() {
        metrics::histogram!(metric::VOTER_SECONDS, "voter" => Arc::clone(label)).record(took);
    }
    if let Err(Cause::Unacknowledged { .. }) = outcome {
        metrics::counter!(metric::UNACKNOWLEDGED, "voter" => Arc::clone(label)).increment(1);
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
