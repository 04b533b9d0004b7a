//! A voter's task: it alone owns the requests to its voter.
//!
//! Callers put requests into its queue and get an answer through a channel. A caller that goes away
//! takes nothing back: what was queued is sent. The requests of one hold keep their order, so an
//! undo put in behind an acquire arrives behind it.

use std::{
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures::{
    FutureExt,
    future::{self, BoxFuture, Fuse},
    stream::{FuturesUnordered, StreamExt},
};
use tokio::{
    runtime::Handle,
    sync::{mpsc, oneshot},
    task::yield_now,
};

use super::{
    Answers, Call, Identity, KeySearch, KeysFound, Node, Outcome, ReplyTo, Stamp, Standings,
    contract::is_passing,
    debts::{Debt, Debts},
    lanes::{Departure, LaneId, Lanes, Queued},
};
use crate::{
    clock::{Clock, Moment},
    proto::{CLOSED, Cause, Place, ServerReport},
    scripts::Answer,
    series::VoterSeries,
};

/// The handle to a voter's task. The task ends, and closes its node, when the handle is dropped and
/// everything that was queued or owed is settled.
#[derive(Debug)]
pub(crate) struct Voter {
    label: Arc<str>,
    queue: mpsc::UnboundedSender<VoterAsk>,
    clock: Clock,
}

/// Where it is noted what a voter shows of itself.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) voter: usize,
    pub(crate) standings: Arc<Standings>,
}

impl Seen {
    fn series(&self) -> &VoterSeries {
        self.standings.series(self.voter)
    }

    fn place(&self, shard: usize) -> Place {
        Place { voter: self.voter, shard }
    }
}

impl Voter {
    /// Starts the task. It runs on the current runtime. `most`: how many requests leave together.
    pub(crate) fn spawn(
        label: Arc<str>,
        node: Arc<dyn Node>,
        clock: &Clock,
        most: usize,
        seen: Seen,
    ) -> Self {
        let (queue, asked) = mpsc::unbounded_channel();
        let (lanes, debts) = (Lanes::new(most), Debts::default());
        let task = Task { node, clock: clock.clone(), seen, lanes, debts };
        clock.spawn(&Handle::current(), task.serve(asked));
        Self { label, queue, clock: clock.clone() }
    }

    /// The voter's address, without credentials.
    pub(crate) fn label(&self) -> &Arc<str> {
        &self.label
    }

    /// Queues a script. Never blocks, works on any thread. `owed_until`: it is sent again until the
    /// voter answers it; where the client is dropped, no longer than until then. `asker`: who waits
    /// for the answer to the first time.
    pub(crate) fn queue_script(
        &self,
        call: Call,
        owed_until: Option<Moment>,
        asker: Option<ReplyTo>,
    ) {
        let (others, asked) = (Vec::new(), self.clock.now());
        let request = Queued { call, owed_until, asker, others, shard: None, asked };
        // Where the task has ended the sender is dropped with the request, which the reply tells.
        let _ = self.queue.send(VoterAsk::Run(request));
    }

    pub(crate) fn subscribe(&self, channel: Arc<str>) -> VoterReply<()> {
        self.ask(|answer| VoterAsk::Subscribe(channel, answer))
    }

    pub(crate) fn unsubscribe(&self, channel: Arc<str>) {
        // A task that has ended listens to nothing.
        let _ = self.queue.send(VoterAsk::Unsubscribe(channel));
    }

    pub(crate) fn identify(&self) -> VoterReply<Identity> {
        self.ask(VoterAsk::Identify)
    }

    /// Lets all clients know that the data of a shard lack something.
    pub(crate) fn rename(&self, shard: usize) {
        // As above.
        let _ = self.queue.send(VoterAsk::Rename(shard));
    }

    pub(crate) fn survey(&self, calls: Arc<str>) -> VoterReply<Vec<ServerReport>> {
        self.ask(|answer| VoterAsk::Survey(calls, answer))
    }

    pub(crate) fn search(&self, search: KeySearch) -> VoterReply<KeysFound> {
        self.ask(|answer| VoterAsk::Search(search, answer))
    }

    /// Ends the task once what is under way is answered; nothing owed is sent again.
    pub(crate) fn close(&self) -> VoterReply<()> {
        self.ask(VoterAsk::Close)
    }

    fn ask<T>(&self, make: impl FnOnce(oneshot::Sender<Outcome<T>>) -> VoterAsk) -> VoterReply<T> {
        let (sender, receiver) = oneshot::channel();
        let _ = self.queue.send(make(sender));
        VoterReply::of(receiver)
    }
}

/// What has been sent, or what came of it.
enum Ended {
    Call(CallHeard),
    Answered,
}

/// What came of the requests of a call.
struct CallHeard {
    lane: LaneId,
    requests: Vec<Queued>,
    answers: Answers,
    /// By which part of the voter, as far as was known by then.
    shard: usize,
    sent: Moment,
    answered: Moment,
}

/// What was sent and is not answered.
type UnderWay = FuturesUnordered<BoxFuture<'static, Ended>>;

struct Task {
    node: Arc<dyn Node>,
    clock: Clock,
    seen: Seen,
    lanes: Lanes,
    debts: Debts,
}

impl Task {
    async fn serve(mut self, mut asked: mpsc::UnboundedReceiver<VoterAsk>) {
        let mut under_way = UnderWay::new();
        let mut asks = Vec::new();
        let (clock, mut closing, mut open) = (self.clock.clone(), None, true);
        // The last call was of one request, with no other of its lane under way.
        let mut alone = true;
        // Set again only where another moment is due: mostly that is none of what comes and goes.
        let (mut alarm, mut set_for) = (pin!(Fuse::terminated()), None);
        while open || !under_way.is_empty() || !self.lanes.are_empty() || !self.debts.is_empty() {
            let due = [self.debts.due(), self.lanes.due()];
            let due = due.into_iter().flatten().min();
            if due != set_for {
                alarm.set(due.map_or_else(Fuse::terminated, |due| clock.sleep_until(due).fuse()));
                set_for = due;
            }
            tokio::select! {
                biased;
                Some(ended) = under_way.next(), if !under_way.is_empty() => {
                    if let Ended::Call(heard) = ended {
                        self.hear(heard, closing.is_some());
                    }
                }
                count = asked.recv_many(&mut asks, TOGETHER), if open => {
                    if !alone {
                        gather(&mut asked, &mut asks).await;
                    }
                    if count == 0 {
                        open = false;
                        self.debts.abandon();
                    }
                    for ask in asks.drain(..) {
                        match ask {
                            VoterAsk::Run(request) => self.take(request),
                            VoterAsk::Close(answer) => {
                                (open, closing) = (false, Some(answer));
                                self.debts.forgive();
                                break;
                            }
                            other => under_way.push(self.begin(other)),
                        }
                    }
                }
                () = &mut alarm => {
                    set_for = None;
                    for debt in self.debts.take_due(self.clock.now()) {
                        self.pay(debt);
                    }
                }
            }
            while !self.lanes.are_empty() {
                let now = self.clock.now();
                let Some(departure) = self.lanes.take(now) else { break };
                alone = departure.alone;
                under_way.push(self.send(departure, now));
            }
            let leaked = self.debts.take_leaked();
            if leaked > 0 {
                self.seen.series().leaked_votes.count(leaked);
            }
        }
        self.node.close().await;
        if let Some(answer) = closing {
            // Whoever closes may have gone.
            let _ = answer.send(Ok(()));
        }
    }

    fn part(&self, call: &Call) -> u16 {
        self.node.part(call.key())
    }

    fn take(&mut self, request: Queued) {
        let part = self.part(&request.call);
        self.lanes.push(request, part);
    }

    fn pay(&mut self, debt: Debt) {
        let Debt { call, until, shard } = debt;
        let part = self.part(&call);
        let request = Queued {
            call,
            owed_until: Some(until),
            asker: None,
            others: Vec::new(),
            shard: Some(shard),
            asked: self.clock.now(),
        };
        self.lanes.push(request, part);
    }

    /// Asks for what is no script.
    fn begin(&self, ask: VoterAsk) -> BoxFuture<'static, Ended> {
        match ask {
            VoterAsk::Subscribe(channel, answer) => pass(self.node.subscribe(channel), answer),
            VoterAsk::Identify(answer) => pass(self.node.identify(), answer),
            VoterAsk::Survey(calls, answer) => pass(self.node.survey(calls), answer),
            VoterAsk::Search(search, answer) => pass(self.node.search(search), answer),
            // A server that cannot be reached listens for nobody.
            VoterAsk::Unsubscribe(channel) => unheard(self.node.unsubscribe(channel)),
            // Nor does it vote, and when it is back a renewal finds the same.
            VoterAsk::Rename(shard) => unheard(self.node.rename(shard)),
            VoterAsk::Run(_) | VoterAsk::Close(_) => Box::pin(async { Ended::Answered }),
        }
    }

    /// Why the voter has no vote now, if it is the same server as another.
    fn twin(&self, call: &Call) -> Option<Cause> {
        self.seen.standings.twin(self.seen.place(self.node.shard(call.key())))
    }

    fn send(&self, departure: Departure, sent: Moment) -> BoxFuture<'static, Ended> {
        let Departure { lane, mut requests, .. } = departure;
        let calls = requests.iter().map(|request| &request.call);
        let mut call = Call::join(calls).expect("something departs");
        let Seen { voter, standings } = &self.seen;
        call.deadline = standings.allowed(*voter, call.deadline, call.longest);
        let (votes, first) = (call.script.votes, Arc::clone(&call.requests[0]));
        let (clock, seen) = (self.clock.clone(), self.seen.clone());
        let node = Arc::clone(&self.node);
        if let Some(oldest) = requests.first() {
            seen.series().queue_seconds.record(sent.since(oldest.asked).as_secs_f64());
        }
        let answers = if let Some(twin) = self.twin(&call) {
            // Where nothing was sent there is nothing to give back. What is owed stays owed.
            let new = requests.extract_if(.., |request| request.shard.is_none());
            new.for_each(|request| request.answer(Err(twin.clone())));
            future::ready(vec![Err(twin); requests.len()]).left_future()
        } else {
            self.node.send(call).right_future()
        };
        Box::pin(async move {
            let mut answers = answers.await;
            let shard = node.shard(first.key());
            let answered = clock.now();
            let clocks = answers.iter().flatten().filter_map(Answer::clock).filter(|_| votes);
            let stamp = clocks.max().map(|shown| Stamp { shown, asked: sent, answered });
            // Before anybody counts the answers. The connection may be another one than when it was
            // queued, and lead elsewhere.
            let data = answers.iter_mut().flatten().next().and_then(|first| first.data.take());
            let (place, standings) = (seen.place(shard), &seen.standings);
            if let Err(twin) = standings.answered(place, answered, stamp, data.as_deref()) {
                answers = vec![Err(twin); requests.len()];
            }
            for answer in &mut answers {
                if let Ok(answer) = answer {
                    answer.shard = shard;
                }
                record(seen.series(), votes, answer, answered.since(sent));
            }
            Ended::Call(CallHeard { lane, requests, answers, shard, sent, answered })
        })
    }

    /// Takes note of how long the voter took.
    fn measure(&self, CallHeard { answers, sent, answered, .. }: &CallHeard) {
        let mut trips = self.seen.standings.round_trips(self.seen.voter);
        if answers.iter().any(|answer| matches!(answer, Ok(_) | Err(Cause::Rejected(_)))) {
            trips.answered(answered.since(*sent));
        } else if answers.iter().any(|answer| matches!(answer, Err(Cause::TimedOut(_)))) {
            trips.timed_out(*sent, *answered);
        }
    }

    /// Hands on what came of a call.
    fn hear(&mut self, heard: CallHeard, closing: bool) {
        self.measure(&heard);
        let CallHeard { lane, requests, answers, shard, answered, .. } = heard;
        self.lanes.ended(lane);
        for (request, answer) in requests.into_iter().zip(answers) {
            if let Some(until) = request.owed_until {
                let shard = request.shard.unwrap_or(shard);
                match &answer {
                    Ok(_) => self.debts.settled(shard),
                    // Any other error is an answer too: asking again brings the same.
                    Err(Cause::Rejected(why)) if !is_passing(why) => {
                        self.debts.settled(shard);
                        self.debts.leak();
                    }
                    Err(_) if closing => self.debts.leak(),
                    Err(_) => {
                        let call = request.call.clone();
                        self.debts.owe(Debt { call, until, shard }, answered);
                    }
                }
            }
            request.answer(answer);
        }
    }
}

fn unheard(outcome: BoxFuture<'static, Outcome<()>>) -> BoxFuture<'static, Ended> {
    Box::pin(outcome.map(|_| Ended::Answered))
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

fn record(series: &VoterSeries, votes: bool, outcome: &Outcome<Answer>, took: Duration) {
    if outcome.is_ok() {
        series.voter_seconds.record(took.as_secs_f64());
    }
    if let Err(Cause::Unacknowledged { .. }) = outcome {
        series.unacknowledged.count(1);
    }
    if votes {
        let verdict = match outcome {
            Ok(answer) if answer.is_done() => "granted",
            Ok(_) => "refused",
            Err(_) => "unknown",
        };
        series.verdicts.of(verdict).count(1);
    }
}

// What a voter's task is asked for.

/// So many requests are taken from the queue before some of them leave.
pub(super) const TOGETHER: usize = 256;

pub(super) enum VoterAsk {
    Run(Queued),
    Subscribe(Arc<str>, oneshot::Sender<Outcome<()>>),
    Unsubscribe(Arc<str>),
    Identify(oneshot::Sender<Outcome<Identity>>),
    Survey(Arc<str>, oneshot::Sender<Outcome<Vec<ServerReport>>>),
    Rename(usize),
    Search(KeySearch, oneshot::Sender<Outcome<KeysFound>>),
    Close(oneshot::Sender<Outcome<()>>),
}

/// Lets the tasks that are ready now ask first. Without this the runtime runs the voter's task
/// right behind the first of them, and a call carries half as many requests.
pub(super) async fn gather(
    asked: &mut mpsc::UnboundedReceiver<VoterAsk>,
    asks: &mut Vec<VoterAsk>,
) {
    yield_now().await;
    while asks.len() < TOGETHER
        && let Ok(ask) = asked.try_recv()
    {
        asks.push(ask);
    }
}

// The answer to a request that a voter's task has.

/// A request's outcome. Dropping it drops the answer, never the request.
#[derive(Debug)]
pub(crate) struct VoterReply<T>(oneshot::Receiver<Outcome<T>>);

impl<T> VoterReply<T> {
    pub(super) fn of(answer: oneshot::Receiver<Outcome<T>>) -> Self {
        Self(answer)
    }
}

impl<T> Future for VoterReply<T> {
    type Output = Outcome<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let received = ready!(Pin::new(&mut self.0).poll(context));
        let closed = || Err(Cause::Unreachable(CLOSED.into()));
        Poll::Ready(received.unwrap_or_else(|_| closed()))
    }
}
