//! The local queues of one client: its tasks that want the same lock wait here, and only the first
//! of them asks the voters. Of a lock with an order the first 512 do.

use std::{
    collections::HashMap,
    mem,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::sync::{Semaphore, SemaphorePermit};

use super::claim::Won;
use crate::{
    clock::{Clock, Moment},
    proto::{Denial, Outage},
    signal::Signal,
    sync::lock,
};

/// How many tasks of a client have a lock of another library in a row, before others may ask first.
// Tasks of one client ask right behind the release, and Java hears of it a message later. Without
// this bound, eight tasks had a lock 155 times while a JVM had it twice; see the test
// `tasks_that_hand_on_a_lock_in_their_client_let_another_client_have_it`.
const IN_A_ROW: u32 = 4;

/// One local queue for each lock that a task of this client waits for.
#[derive(Debug)]
pub(crate) struct LocalQueues {
    queues: Mutex<HashMap<LocalQueueKey, Arc<LocalQueue>>>,
    /// How many tasks of a queue have the turn at the same time.
    turns: usize,
}

/// A lock, and which of its local queues.
type LocalQueueKey = (Arc<str>, &'static str);

#[derive(Debug)]
pub(super) struct LocalQueue {
    key: LocalQueueKey,
    /// When the first task came. The queue has not been empty since then.
    since: Moment,
    /// How many tasks are in the queue: changes with the table locked.
    // Not the count of the `Arc`: of two tasks that leave at one moment, each would still see the
    // other, and the queue would stay in the table
    // (`two_that_leave_at_one_moment_take_the_queue_along`).
    places: AtomicU32,
    /// Given in the order of asking.
    turns: Semaphore,
    /// A task with a turn reports what voters said: the first that has something to report, until
    /// its turn ends.
    // If each of 512 tasks with a turn reported, all who wait would be woken again and again.
    has_reporter: AtomicBool,
    report: Signal<QueueReport>,
    /// Changes with each report that no quorum answered, and with each new turn after one.
    // Apart from `report`, so that a refusal wakes nobody who waits without a limit.
    outage_reported: Signal<()>,
    /// How many tasks got the lock since others could ask first.
    in_a_row: AtomicU32,
    /// A task's hold that it may hand on to the next task.
    pub(super) hold: Signal<LocalHold>,
}

/// Whether a task of a local queue hands a hold on to the next.
#[derive(Debug, Default)]
pub(super) enum LocalHold {
    /// No: the first in the queue asks the voters.
    #[default]
    Closed,
    /// A task has it, and may hand it on until then.
    Held { until: Moment },
    /// The first in the queue may take it, and hand it on until then.
    // Nobody has to release it: a `Won` that is dropped gives its votes back, also with a queue
    // that the last task has left.
    Offered { won: Box<Won>, until: Moment },
}

/// What the voters last said to a task with a turn.
// It outlasts the turn of its reporter. When each turn began without it, patience with silent
// voters began anew with each task, and the hundredth was told of an outage half a minute late
// (`patience_does_not_begin_anew_when_one_before_gives_up`).
#[derive(Debug)]
struct QueueReport {
    stage: TurnStage,
    /// In a box: in most queues there is none.
    denial: Option<Box<Denial>>,
    /// How long the voters had for that.
    within: Duration,
    /// How many reports there were.
    number: u64,
}

/// What the task with the turn does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TurnStage {
    /// It waits for leave to ask: the last report is old.
    WaitsForLeave,
    /// It asks, or is about to.
    Asks,
    /// It has reported.
    Answered,
}

/// A task in a local queue. Dropping it leaves the queue.
#[derive(Debug)]
pub(crate) struct LocalPlace {
    queues: Arc<LocalQueues>,
    queue: Arc<LocalQueue>,
    pub(super) came: Moment,
    /// How many reports there were when it came.
    reports: u64,
    /// Whether the task with the turn had reported by then.
    was_answered: bool,
    voter_deadline: Duration,
}

/// The right to ask the voters. Dropping it gives the turn to the next task.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    place: &'a LocalPlace,
    reports: AtomicBool,
    _permit: SemaphorePermit<'a>,
}

impl LocalQueue {
    fn new(key: LocalQueueKey, turns: usize, since: Moment) -> Self {
        let (stage, within) = (TurnStage::Asks, Duration::ZERO);
        Self {
            key,
            since,
            places: AtomicU32::new(0),
            turns: Semaphore::new(turns),
            has_reporter: AtomicBool::new(false),
            report: Signal::new(QueueReport { stage, denial: None, within, number: 0 }),
            outage_reported: Signal::new(()),
            in_a_row: AtomicU32::new(0),
            hold: Signal::new(LocalHold::default()),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.load(Relaxed) == 0
    }

    /// Whether there is a task beside the one with the turn.
    pub(super) fn has_others(&self) -> bool {
        self.places.load(Relaxed) > 1
    }

    /// The hold that is offered, and until when it may be handed on.
    pub(super) fn take_offered(&self) -> Option<(Box<Won>, Moment)> {
        // Each change wakes all who wait for one, so it looks first.
        if self.hold.read(|hold| !matches!(hold, LocalHold::Offered { .. })) {
            return None;
        }
        let mut taken = None;
        self.hold.change(|hold| {
            if let LocalHold::Offered { until, .. } = *hold
                && let LocalHold::Offered { won, until } =
                    mem::replace(hold, LocalHold::Held { until })
            {
                taken = Some((won, until));
            }
        });
        taken
    }

    /// Ends the handing on: a hold that is offered is released.
    pub(super) fn close_tenure(&self) {
        let mut left = LocalHold::Closed;
        self.hold.change(|hold| left = mem::take(hold));
        // Dropped with the signal unlocked, as it sends the release.
        drop(left);
    }

    fn change(&self, change: impl FnOnce(&mut QueueReport)) {
        self.report.change(change);
        if self.report.read(|report| matches!(report.denial.as_deref(), Some(Denial::NoQuorum(_))))
        {
            self.outage_reported.change(|()| ());
        }
    }
}

impl LocalHold {
    pub(super) fn is_held_until(moment: Moment) -> impl Fn(&Self) -> bool {
        move |hold| matches!(hold, Self::Held { until } if *until == moment)
    }

    pub(super) fn is_of_tenure(&self, ends: Moment) -> bool {
        matches!(self, Self::Held { until } | Self::Offered { until, .. } if *until == ends)
    }
}

impl LocalQueues {
    pub(super) fn new(turns: usize) -> Self {
        Self { queues: Mutex::default(), turns }
    }

    /// `voter_deadline`: how long the caller gives the voters to answer.
    pub(crate) fn enter(
        self: &Arc<Self>,
        of: &Arc<str>,
        which: &'static str,
        came: Moment,
        voter_deadline: Duration,
    ) -> LocalPlace {
        let mut queues = lock(&self.queues);
        let key = (Arc::clone(of), which);
        let new = || Arc::new(LocalQueue::new(key.clone(), self.turns, came));
        let queue = Arc::clone(queues.entry(key.clone()).or_insert_with(new));
        queue.places.fetch_add(1, Relaxed);
        let (reports, stage) = queue.report.read(|report| (report.number, report.stage));
        let was_answered = stage == TurnStage::Answered;
        LocalPlace { queues: Arc::clone(self), queue, came, reports, was_answered, voter_deadline }
    }

    /// Releases what is offered in any of them.
    pub(super) fn close_tenures(&self) {
        // A release takes the tables of wake-ups and of voters: no mutex of ours is held then.
        let all: Vec<Arc<LocalQueue>> = lock(&self.queues).values().cloned().collect();
        for queue in all {
            queue.close_tenure();
        }
    }

    /// Since when tasks wait for the lock, if any does.
    pub(super) fn since(&self, key: &Arc<str>) -> Option<Moment> {
        let queues = lock(&self.queues);
        let of_lock = queues.values().filter(|queue| queue.key.0 == *key);
        of_lock.map(|queue| queue.since).min()
    }
}

impl LocalPlace {
    /// Completes, in the order of coming, when no task without a turn is before this one.
    pub(crate) async fn turn(&self) -> Turn<'_> {
        let permit = self.queue.turns.acquire().await;
        Turn::of(self, permit.expect("the turns of a queue are never closed"))
    }

    /// The turn, if there is one to be had.
    pub(crate) fn try_turn(&self) -> Option<Turn<'_>> {
        Some(Turn::of(self, self.queue.turns.try_acquire().ok()?))
    }

    /// What was last reported in this queue.
    pub(crate) fn last_denial(&self) -> Option<Denial> {
        self.queue.report.read(|report| report.denial.as_deref().cloned())
    }

    /// The same, if it is no older than this place.
    // An older one is no answer to this task: the lock may be free since then
    // (`nobody_is_told_what_was_known_before_it_came`).
    pub(crate) fn new_denial(&self) -> Option<Denial> {
        let is_new = |report: &&QueueReport| self.was_answered || report.number > self.reports;
        self.queue.report.read(|report| Some(report).filter(is_new)?.denial.as_deref().cloned())
    }

    /// Since when no quorum has answered; no longer than since this place was taken.
    fn silent_since(&self) -> Option<Moment> {
        // Each task has its whole patience, also one that comes late in an outage.
        let since = |report: &QueueReport| Some(self.came.max(self.outage_in(report)?.since));
        self.queue.report.read(since)
    }

    fn outage_in<'a>(&self, report: &'a QueueReport) -> Option<&'a Outage> {
        match report.denial.as_deref()? {
            // Voters that were too slow for a shorter lease may be in time for ours
            // (`voters_that_are_too_slow_for_the_first_in_line_are_not_so_for_one_with_more_time`).
            Denial::NoQuorum(outage) if report.within >= self.voter_deadline => Some(outage),
            _ => None,
        }
    }

    /// Completes when the task with the turn has reported what the voters said, now or since this
    /// place was taken.
    pub(crate) async fn verdict(&self) {
        let is_reported = |report: &QueueReport| {
            report.number > self.reports || report.stage == TurnStage::Answered
        };
        self.queue.report.until(is_reported).await;
    }

    /// Whether the task with the turn waits for leave to ask, and nothing was reported since this
    /// place was taken.
    pub(crate) fn is_kept_from_asking(&self) -> bool {
        self.queue.report.read(|report| {
            report.stage == TurnStage::WaitsForLeave && report.number == self.reports
        })
    }

    /// Waits for the report on an attempt under way, and no longer than one may take. The turn, if
    /// the attempt ended without a report.
    pub(crate) async fn first_verdict(
        &self,
        clock: &Clock,
        voter_deadline: Duration,
    ) -> Option<Turn<'_>> {
        tokio::select! {
            biased;
            () = self.verdict() => None,
            turn = self.turn() => Some(turn),
            // An attempt listens for a voter deadline, and once more for who leads a split.
            () = clock.sleep(2 * voter_deadline) => None,
        }
    }

    /// Completes when no quorum has answered for too long. It looks after each report of that, and
    /// when another task gets the turn: an attempt under way may end the outage.
    pub(crate) fn outage(
        &self,
        is_too_long: impl Fn(Moment) -> bool,
    ) -> impl Future<Output = Outage> {
        let is_over = move |outage: &&Outage| is_too_long(self.came.max(outage.since));
        async move {
            loop {
                // The version before the look, so that no report comes between.
                let version = self.queue.outage_reported.version();
                let look = |report: &QueueReport| self.outage_in(report).filter(&is_over).cloned();
                if let Some(outage) = self.queue.report.read(look) {
                    return outage;
                }
                self.queue.outage_reported.changed_since(version).await;
            }
        }
    }
}

impl<'a> Turn<'a> {
    fn of(place: &'a LocalPlace, permit: SemaphorePermit<'a>) -> Self {
        Self { place, reports: AtomicBool::new(false), _permit: permit }
    }

    pub(super) fn queue(&self) -> &Arc<LocalQueue> {
        &self.place.queue
    }

    fn change(&self, change: impl FnOnce(&mut QueueReport)) {
        let begins = || !self.queue().has_reporter.swap(true, Relaxed);
        if !self.reports.load(Relaxed) && begins() {
            self.reports.store(true, Relaxed);
        }
        if self.reports.load(Relaxed) {
            self.queue().change(change);
        }
    }

    /// What was last reported in this queue, and since when no quorum has answered.
    pub(crate) fn last_report(&self) -> (Option<Denial>, Option<Moment>) {
        (self.place.last_denial(), self.place.silent_since())
    }

    /// This task begins to wait for leave to ask.
    pub(crate) fn wait_for_leave(&self) {
        self.change(|report| report.stage = TurnStage::WaitsForLeave);
    }

    /// This task begins to ask.
    pub(crate) fn ask(&self) {
        self.change(|report| report.stage = TurnStage::Asks);
    }

    /// This task got the lock.
    pub(crate) fn count_grant(&self) {
        self.queue().in_a_row.fetch_add(1, Relaxed);
    }

    /// Whether programs of another library, which wait in no queue of ours, may ask first. From
    /// then on the count starts over.
    pub(crate) fn yields(&self) -> bool {
        let in_a_row = &self.queue().in_a_row;
        let yields = in_a_row.load(Relaxed) >= IN_A_ROW;
        if yields {
            in_a_row.store(0, Relaxed);
        }
        yields
    }

    /// Reports to the queue what the voters said.
    pub(crate) fn report(&self, denial: Denial) {
        let (denial, within) = (Some(Box::new(denial)), self.place.voter_deadline);
        self.change(|report| {
            let (stage, number) = (TurnStage::Answered, report.number + 1);
            *report = QueueReport { stage, denial, within, number };
        });
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.reports.load(Relaxed) {
            // Nobody waits for leave any more. With the old stage, a task that arrives before the
            // next attempt would fail as overloaded.
            if self.queue().report.read(|report| report.stage == TurnStage::WaitsForLeave) {
                self.ask();
            }
            self.queue().has_reporter.store(false, Relaxed);
        }
    }
}

impl Drop for LocalPlace {
    fn drop(&mut self) {
        let mut queues = lock(&self.queues.queues);
        // With the last task its report is forgotten: an outage of long ago would end the patience
        // of the next one at once (`what_was_heard_long_ago_does_not_shorten_the_patience`).
        if self.queue.places.fetch_sub(1, Relaxed) == 1 {
            queues.remove(&self.queue.key);
        }
    }
}

#[cfg(test)]
#[path = "local_queue_tests.rs"]
mod tests;
