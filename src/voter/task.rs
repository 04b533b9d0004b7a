//! A voter's task, which alone sends the requests to its voter.
//!
//! Callers put requests into its queue, and get the answers through a [mailbox](super::mailbox). A
//! queued request is sent even if its caller goes away. The requests of one hold keep their order.

// Why callers do not send for themselves: design 3.

use std::{pin::pin, sync::Arc, time::Duration};

use futures::{
    FutureExt,
    future::{self, BoxFuture, Fuse, Map},
    stream::{FuturesUnordered, StreamExt},
};
use tokio::{
    runtime::Handle,
    sync::{mpsc, oneshot},
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

/// The handle to a voter's task. After the handle is dropped, the task ends when all requests are
/// answered or given up. Then it closes its node.
#[derive(Debug)]
pub(crate) struct Voter {
    label: Arc<str>,
    queue: mpsc::UnboundedSender<VoterAsk>,
}

/// The standing of one voter.
#[derive(Clone, Debug)]
pub(crate) struct VoterStanding {
    pub(crate) voter: usize,
    pub(crate) standings: Arc<Standings>,
}

impl VoterStanding {
    fn series(&self) -> &VoterSeries {
        self.standings.series(self.voter)
    }
}

impl Voter {
    /// Starts the task on the current runtime. `most`: how many requests a call carries at most.
    pub(crate) fn spawn(
        label: Arc<str>,
        node: Arc<dyn Node>,
        clock: &Clock,
        most: usize,
        seen: VoterStanding,
    ) -> Self {
        let (queue, asked) = mpsc::unbounded_channel();
        let task = Task {
            node,
            clock: clock.clone(),
            seen,
            lanes: Lanes::new(most),
            debts: Debts::default(),
            under_way: FuturesUnordered::new(),
            was_alone: true,
            is_open: true,
            closing: None,
        };
        clock.spawn(&Handle::current(), task.serve(asked));
        Self { label, queue }
    }

    /// The voter's address, without credentials.
    pub(crate) fn label(&self) -> &Arc<str> {
        &self.label
    }

    /// Queues a script, from any thread and without blocking. `owed_until`: repeats it until the
    /// voter answers; once the client is dropped, until that moment. `asker`: receives the first
    /// answer. `now`: when the request begins to wait.
    pub(crate) fn queue_script(
        &self,
        call: Call,
        owed_until: Option<Moment>,
        asker: Option<ReplyTo>,
        now: Moment,
    ) {
        let request = Queued { call, owed_until, asker, shard: None, asked: now };
        // If the task has ended, this drops the request, and with it the `asker`, which answers.
        let _ = self.queue.send(VoterAsk::Run(request));
    }

    pub(crate) fn subscribe(&self, channel: Arc<str>) -> VoterReply<()> {
        self.ask(|node| node.subscribe(channel))
    }

    pub(crate) fn unsubscribe(&self, channel: Arc<str>) {
        // Nobody needs the answer: a server that cannot be reached delivers no messages either.
        drop(self.ask(|node| node.unsubscribe(channel)));
    }

    pub(crate) fn identify(&self) -> VoterReply<Identity> {
        self.ask(|node| node.identify())
    }

    /// Gives the data of a shard another name, so that all clients learn that they lack something.
    pub(crate) fn rename(&self, shard: usize) {
        // Nobody needs the answer: a server that cannot be reached does not vote, and when it is
        // back, a renewal finds the same gap.
        drop(self.ask(move |node| node.rename(shard)));
    }

    pub(crate) fn survey(&self, calls: Arc<str>) -> VoterReply<Vec<ServerReport>> {
        self.ask(|node| node.survey(calls))
    }

    pub(crate) fn search(&self, search: KeySearch) -> VoterReply<KeysFound> {
        self.ask(|node| node.search(search))
    }

    /// Ends the task once all calls under way are answered. No request is repeated any more.
    pub(crate) fn close(&self) -> VoterReply<()> {
        let (answer, answered) = oneshot::channel();
        let _ = self.queue.send(VoterAsk::Close(answer));
        answered.map(received)
    }

    /// Has the task ask its node for something other than a script of a lock.
    // Through the task, so that it stays behind requests that were queued before.
    fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&dyn Node) -> BoxFuture<'static, Outcome<T>> + Send + 'static,
    ) -> VoterReply<T> {
        let (answer, answered) = oneshot::channel();
        let errand = |node: &dyn Node| {
            let asked = question(node);
            async move {
                // The caller may have gone.
                let _ = answer.send(asked.await);
                None
            }
            .boxed()
        };
        // If the task has ended, this drops the sender, which the reply takes for an answer.
        let _ = self.queue.send(VoterAsk::Errand(Box::new(errand)));
        answered.map(received)
    }
}

/// The answer to a request. Dropping this drops the answer, never the request.
pub(crate) type VoterReply<T> = Map<
    oneshot::Receiver<Outcome<T>>,
    fn(Result<Outcome<T>, oneshot::error::RecvError>) -> Outcome<T>,
>;

fn received<T>(answer: Result<Outcome<T>, oneshot::error::RecvError>) -> Outcome<T> {
    answer.unwrap_or_else(|_| Err(Cause::Unreachable(CLOSED.into())))
}

/// A question to a node for something other than a script of a lock.
type Errand = Box<dyn FnOnce(&dyn Node) -> BoxFuture<'static, Option<AnsweredCall>> + Send>;

/// A message from a handle to the task.
enum VoterAsk {
    Run(Queued),
    Errand(Errand),
    Close(oneshot::Sender<Outcome<()>>),
}

/// A call with the answers to its requests.
struct AnsweredCall {
    lane: LaneId,
    requests: Vec<Queued>,
    answers: Answers,
    /// The shard that had the key when the answers came.
    shard: usize,
    sent: Moment,
    answered: Moment,
}

struct Task {
    node: Arc<dyn Node>,
    clock: Clock,
    seen: VoterStanding,
    lanes: Lanes,
    debts: Debts,
    under_way: FuturesUnordered<BoxFuture<'static, Option<AnsweredCall>>>,
    /// Whether the last call had one request, and no other call of its lane was under way.
    was_alone: bool,
    /// Whether further messages are taken.
    is_open: bool,
    /// Who waits for the task to end.
    closing: Option<oneshot::Sender<Outcome<()>>>,
}

impl Task {
    async fn serve(mut self, mut asked: mpsc::UnboundedReceiver<VoterAsk>) {
        let (clock, mut asks) = (self.clock.clone(), Vec::new());
        // Set again only if another moment is due: mostly none is, while calls come and go.
        let (mut alarm, mut set_for) = (pin!(Fuse::terminated()), None);
        while !self.is_done() {
            let due = self.debts.due().into_iter().chain(self.lanes.due()).min();
            if due != set_for {
                alarm.set(due.map_or_else(Fuse::terminated, |due| clock.sleep_until(due).fuse()));
                set_for = due;
            }
            tokio::select! {
                // In this order, not by chance: a simulation could not repeat itself. Answers come
                // first, as they let the next calls leave.
                biased;
                Some(ended) = self.under_way.next(), if !self.under_way.is_empty() => {
                    if let Some(call) = ended {
                        self.settle(call);
                    }
                }
                count = asked.recv_many(&mut asks, TOGETHER), if self.is_open => {
                    // A lone request leaves at once: others would gain nothing by its wait.
                    if !self.was_alone {
                        gather(&mut asked, &mut asks).await;
                    }
                    if count == 0 {
                        self.is_open = false;
                        self.debts.abandon();
                    }
                    self.take(&mut asks);
                }
                () = &mut alarm => {
                    set_for = None;
                    let now = self.clock.now();
                    for owed in self.debts.take_due(now) {
                        self.queue(Queued { asked: now, ..owed });
                    }
                }
            }
            self.send_all();
            let leaked = self.debts.take_leaked();
            if leaked > 0 {
                self.seen.series().leaked_votes.count(leaked);
            }
        }
        self.node.close().await;
        if let Some(answer) = self.closing {
            // The caller may have gone.
            let _ = answer.send(Ok(()));
        }
    }

    fn is_done(&self) -> bool {
        let Self { lanes, debts, under_way, is_open, .. } = self;
        !is_open && under_way.is_empty() && lanes.are_empty() && debts.is_empty()
    }

    fn take(&mut self, asks: &mut Vec<VoterAsk>) {
        for ask in asks.drain(..) {
            match ask {
                VoterAsk::Run(request) => self.queue(request),
                VoterAsk::Errand(errand) => self.under_way.push(errand(&*self.node)),
                VoterAsk::Close(answer) => {
                    (self.is_open, self.closing) = (false, Some(answer));
                    // Closing would otherwise wait until a voter that is down is back.
                    self.debts.forgive();
                    break;
                }
            }
        }
    }

    fn queue(&mut self, request: Queued) {
        let part = self.node.part(request.call.key());
        self.lanes.push(request, part);
    }

    /// Sends all calls that may leave now.
    fn send_all(&mut self) {
        while !self.lanes.are_empty() {
            let now = self.clock.now();
            let Some(departure) = self.lanes.take(now) else { break };
            self.was_alone = departure.alone;
            self.under_way.push(self.send(departure, now));
        }
    }

    fn send(&self, departure: Departure, sent: Moment) -> BoxFuture<'static, Option<AnsweredCall>> {
        let Departure { lane, mut requests, .. } = departure;
        let calls = requests.iter().map(|request| &request.call);
        let mut call = Call::join(calls).expect("something departs");
        let VoterStanding { voter, standings } = &self.seen;
        // It begins now, when the call leaves: time in our own queue is not the voter's fault.
        call.deadline = standings.allowed(*voter, call.deadline, call.longest);
        let (votes, first) = (call.script.votes, Arc::clone(&call.requests[0]));
        let (clock, seen) = (self.clock.clone(), self.seen.clone());
        let node = Arc::clone(&self.node);
        if let Some(oldest) = requests.first() {
            seen.series().queue_seconds.record(sent.since(oldest.asked).as_secs_f64());
        }
        let (voter, shard) = (*voter, node.shard(call.key()));
        let answers = if let Some(twin) = standings.twin(Shard { voter, number: shard }) {
            // Nothing is sent, so nothing has to be undone. A request that was sent to this voter
            // before is still owed to it.
            let new = requests.extract_if(.., |request| request.shard.is_none());
            new.for_each(|mut request| request.answer(Err(twin.clone())));
            future::ready(vec![Err(twin); requests.len()]).left_future()
        } else {
            node.send(call).right_future()
        };
        Box::pin(async move {
            let mut answers = answers.await;
            // Asked again: the slot may have moved since the call left.
            let shard = node.shard(first.key());
            let answered = clock.now();
            let clocks = answers.iter().flatten().filter_map(Answer::clock).filter(|_| votes);
            let stamp = clocks.max().map(|shown| Stamp { shown, asked: sent, answered });
            let data = answers.iter_mut().flatten().next().and_then(|first| first.data.take());
            let from = Shard { voter: seen.voter, number: shard };
            // Before anybody counts the answers: other data, or a clock that was set, put the voter
            // into quarantine (mutants `deleted_data_not_noticed`, `clock_jump_not_noticed`). And a
            // new connection may have found that this is the server of another voter.
            if let Err(twin) = seen.standings.note_answer(from, answered, stamp, data.as_deref()) {
                answers = vec![Err(twin); requests.len()];
            }
            for answer in &mut answers {
                if let Ok(answer) = answer {
                    answer.shard = from;
                }
                record(seen.series(), votes, answer, answered.since(sent));
            }
            Some(AnsweredCall { lane, requests, answers, shard, sent, answered })
        })
    }

    /// Notes how long the voter took to answer.
    fn measure(&self, AnsweredCall { answers, sent, answered, .. }: &AnsweredCall) {
        let mut trips = self.seen.standings.round_trips(self.seen.voter);
        // A refusal took a round trip too. Any other error says nothing of the distance.
        if answers.iter().any(|answer| matches!(answer, Ok(_) | Err(Cause::Rejected(_)))) {
            trips.answered(answered.since(*sent));
        } else if answers.iter().any(|answer| matches!(answer, Err(Cause::TimedOut(_)))) {
            trips.timed_out(*sent, *answered);
        }
    }

    /// Passes the answers of a call on, and keeps what must be repeated.
    fn settle(&mut self, call: AnsweredCall) {
        self.measure(&call);
        let AnsweredCall { lane, requests, answers, shard, answered, .. } = call;
        self.lanes.end_call(lane);
        for (mut request, answer) in requests.into_iter().zip(answers) {
            let is_answer = match &answer {
                // A replica that is promoted a moment later, or a server that still loads its data,
                // refuses for now. Any other refusal is an answer: asking again brings the same.
                Err(Cause::Rejected(why)) => !why.is_passing(),
                outcome => outcome.is_ok(),
            };
            let is_given_up = answer.is_err() && (is_answer || self.closing.is_some());
            request.answer(answer);
            if request.owed_until.is_none() {
                continue;
            }
            let shard = request.shard.unwrap_or(shard);
            if is_answer {
                self.debts.settle(shard);
            }
            if is_given_up {
                // The voter may keep this vote until its lease ends: an operator sees that by the
                // metric, as where a user may acquire and has no right to release.
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
            // An answer that makes no sense is no refusal: attempts do not take it for one (law 9).
            Ok(answer) => answer.verdict().refusal().map_or("unknown", |reason| {
                series.refusals.of(reason).count(1);
                "refused"
            }),
            Err(_) => "unknown",
        };
        series.verdicts.of(verdict).count(1);
    }
}

/// How many requests are taken from the queue before some of them leave.
const TOGETHER: usize = 256;

/// Lets the tasks that are ready now ask first.
// The runtime otherwise runs the voter's task right behind the first of them, and a call carries
// half as many requests: 16 tasks got 16,000 locks a second, and 19,200 with this.
async fn gather(asked: &mut mpsc::UnboundedReceiver<VoterAsk>, asks: &mut Vec<VoterAsk>) {
    yield_now().await;
    while asks.len() < TOGETHER
        && let Ok(ask) = asked.try_recv()
    {
        asks.push(ask);
    }
}
