//! A voter's task: it alone owns the requests to its voter.
//!
//! Callers put requests into its queue and get an answer through a channel. A caller that goes away
//! takes nothing back: what was queued is sent. The requests of one hold keep their order, so an
//! undo put in behind an acquire arrives behind it.

use std::{pin::pin, sync::Arc, time::Duration};

use futures::{
    FutureExt,
    future::{self, BoxFuture, Fuse, Map},
    stream::{FuturesUnordered, StreamExt},
};
use tokio::{
    runtime::Handle,
    sync::{
        mpsc,
        oneshot::{self, error::RecvError},
    },
    task::yield_now,
};

use super::{
    Answers, Call, Identity, KeySearch, KeysFound, Node, Outcome, ReplyTo, Stamp, Standings,
    debts::Debts,
    lanes::{Departure, LaneId, Lanes, Queued},
};
use crate::{
    clock::{Clock, Moment},
    proto::{CLOSED, Cause, ServerReport, Shard},
    scripts::Answer,
    series::VoterSeries,
};

/// The handle to a voter's task. The task ends, and closes its node, when the handle is dropped and
/// everything that was queued or owed is settled.
#[derive(Debug)]
pub(crate) struct Voter {
    label: Arc<str>,
    queue: mpsc::UnboundedSender<VoterAsk>,
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
        Self { label, queue }
    }

    /// The voter's address, without credentials.
    pub(crate) fn label(&self) -> &Arc<str> {
        &self.label
    }

    /// Queues a script. Never blocks, works on any thread. `owed_until`: it is sent again until the
    /// voter answers it; where the client is dropped, no longer than until then. `asker`: who waits
    /// for the answer to the first time. `now`: from when on it waits to leave.
    pub(crate) fn queue_script(
        &self,
        call: Call,
        owed_until: Option<Moment>,
        asker: Option<ReplyTo>,
        now: Moment,
    ) {
        let request = Queued { call, owed_until, asker, shard: None, asked: now };
        // Where the task has ended the sender is dropped with the request, which the reply tells.
        let _ = self.queue.send(VoterAsk::Run(request));
    }

    pub(crate) fn subscribe(&self, channel: Arc<str>) -> VoterReply<()> {
        self.ask(|node| node.subscribe(channel))
    }

    /// A server that cannot be reached listens for nobody.
    pub(crate) fn unsubscribe(&self, channel: Arc<str>) {
        drop(self.ask(|node| node.unsubscribe(channel)));
    }

    pub(crate) fn identify(&self) -> VoterReply<Identity> {
        self.ask(|node| node.identify())
    }

    /// Lets all clients know that the data of a shard lack something. A server that cannot be
    /// reached does not vote, and when it is back a renewal finds the same.
    pub(crate) fn rename(&self, shard: usize) {
        drop(self.ask(move |node| node.rename(shard)));
    }

    pub(crate) fn survey(&self, calls: Arc<str>) -> VoterReply<Vec<ServerReport>> {
        self.ask(|node| node.survey(calls))
    }

    pub(crate) fn search(&self, search: KeySearch) -> VoterReply<KeysFound> {
        self.ask(|node| node.search(search))
    }

    /// Ends the task once what is under way is answered; nothing owed is sent again.
    pub(crate) fn close(&self) -> VoterReply<()> {
        let (answer, answered) = oneshot::channel();
        let _ = self.queue.send(VoterAsk::Close(answer));
        answered.map(received)
    }

    /// Has the task ask its node for what is no script of a lock.
    fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&dyn Node) -> BoxFuture<'static, Outcome<T>> + Send + 'static,
    ) -> VoterReply<T> {
        let (answer, answered) = oneshot::channel();
        let errand = |node: &dyn Node| {
            let asked = question(node);
            async move {
                // Whoever asked may have gone: then nobody misses the answer.
                let _ = answer.send(asked.await);
                None
            }
            .boxed()
        };
        // Where the task has ended the errand is dropped, which the reply tells.
        let _ = self.queue.send(VoterAsk::Errand(Box::new(errand)));
        answered.map(received)
    }
}

/// A request's outcome. Dropping it drops the answer, never the request.
pub(crate) type VoterReply<T> =
    Map<oneshot::Receiver<Outcome<T>>, fn(Result<Outcome<T>, RecvError>) -> Outcome<T>>;

fn received<T>(answer: Result<Outcome<T>, RecvError>) -> Outcome<T> {
    answer.unwrap_or_else(|_| Err(Cause::Unreachable(CLOSED.into())))
}

/// What the task asks its node for that is no script of a lock.
type Errand = Box<dyn FnOnce(&dyn Node) -> BoxFuture<'static, Option<CallHeard>> + Send>;

/// What its handles want of the task.
enum VoterAsk {
    Run(Queued),
    Errand(Errand),
    Close(oneshot::Sender<Outcome<()>>),
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

struct Task {
    node: Arc<dyn Node>,
    clock: Clock,
    seen: Seen,
    lanes: Lanes,
    debts: Debts,
}

impl Task {
    async fn serve(mut self, mut asked: mpsc::UnboundedReceiver<VoterAsk>) {
        let mut under_way = FuturesUnordered::new();
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
                    if let Some(heard) = ended {
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
                            VoterAsk::Run(request) => self.queue(request),
                            VoterAsk::Errand(errand) => under_way.push(errand(&*self.node)),
                            VoterAsk::Close(answer) => {
                                (open, closing) = (false, Some(answer));
                                self.debts.forgive();
                                break;
                            }
                        }
                    }
                }
                () = &mut alarm => {
                    set_for = None;
                    let now = self.clock.now();
                    for owed in self.debts.take_due(now) {
                        self.queue(Queued { asked: now, ..owed });
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

    fn queue(&mut self, request: Queued) {
        let part = self.node.part(request.call.key());
        self.lanes.push(request, part);
    }

    fn send(&self, departure: Departure, sent: Moment) -> BoxFuture<'static, Option<CallHeard>> {
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
        // The same server as another voter's has no vote to give.
        let (voter, shard) = (*voter, node.shard(call.key()));
        let answers = if let Some(twin) = standings.twin(Shard { voter, number: shard }) {
            // Where nothing was sent there is nothing to give back. What is owed stays owed.
            let new = requests.extract_if(.., |request| request.shard.is_none());
            new.for_each(|mut request| request.answer(Err(twin.clone())));
            future::ready(vec![Err(twin); requests.len()]).left_future()
        } else {
            node.send(call).right_future()
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
            let from = Shard { voter: seen.voter, number: shard };
            if let Err(twin) = seen.standings.note_answer(from, answered, stamp, data.as_deref()) {
                answers = vec![Err(twin); requests.len()];
            }
            for answer in &mut answers {
                if let Ok(answer) = answer {
                    answer.shard = from;
                }
                record(seen.series(), votes, answer, answered.since(sent));
            }
            Some(CallHeard { lane, requests, answers, shard, sent, answered })
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
        for (mut request, answer) in requests.into_iter().zip(answers) {
            let is_answer = match &answer {
                // Any other refusal is an answer too: asking again brings the same.
                Err(Cause::Rejected(why)) => !why.is_passing(),
                outcome => outcome.is_ok(),
            };
            let is_given_up = answer.is_err() && (is_answer || closing);
            request.answer(answer);
            if request.owed_until.is_none() {
                continue;
            }
            let shard = request.shard.unwrap_or(shard);
            if is_answer {
                self.debts.settled(shard);
            }
            if is_given_up {
                self.debts.leak();
            } else if !is_answer {
                self.debts.owe(shard, request, answered);
            }
        }
    }
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

/// So many requests are taken from the queue before some of them leave.
const TOGETHER: usize = 256;

/// Lets the tasks that are ready now ask first. Without this the runtime runs the voter's task
/// right behind the first of them, and a call carries half as many requests.
async fn gather(asked: &mut mpsc::UnboundedReceiver<VoterAsk>, asks: &mut Vec<VoterAsk>) {
    yield_now().await;
    while asks.len() < TOGETHER
        && let Ok(ask) = asked.try_recv()
    {
        asks.push(ask);
    }
}
