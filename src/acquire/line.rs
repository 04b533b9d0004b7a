//! The line of one client: waiters for the same lock stand here, and only the first of them asks
//! the voters. Of a lock with an order the first 512 do.

use std::{
    collections::HashMap,
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

/// How often in a row a lock of another library passes within one line. Then others may ask first.
const IN_A_ROW: u32 = 4;

/// One line per lock in which somebody stands.
#[derive(Debug)]
pub(crate) struct Lines {
    lines: Mutex<HashMap<LineKey, Arc<Line>>>,
    /// How many of a line have the turn at the same time.
    turns: usize,
}

/// A lock, and which of its lines.
type LineKey = (Arc<str>, &'static str);

#[derive(Debug)]
pub(super) struct Line {
    key: LineKey,
    /// Somebody has stood in it since then.
    since: Moment,
    /// How many stand in it: changes with the table locked.
    places: AtomicU32,
    turns: Semaphore,
    /// One task with a turn passes on to the line what voters said: the first that heard anything,
    /// until its turn is over. If every task did, all would be woken again and again.
    has_teller: AtomicBool,
    news: Signal<LineNews>,
    /// Changes when the first in line hears no quorum, or another comes first while there is none.
    silence: Signal<()>,
    /// How many of this line got the lock since others could ask first.
    in_a_row: AtomicU32,
    /// What one of this line has, and may hand on.
    pub(super) hold: Signal<LineHold>,
}

/// What the first in line knows of the hold that a task of its line has.
#[derive(Debug, Default)]
pub(super) enum LineHold {
    /// No hold is handed on. The first in line asks the voters.
    #[default]
    Closed,
    /// A task has it, and may hand it on until then.
    Held { until: Moment },
    /// It waits to be taken. Dropped before, with the line if nobody stands there any more, it is
    /// released.
    Offered(Box<Won>),
}

/// What is known in a line. It outlasts the turn in which it was heard.
#[derive(Debug)]
struct LineNews {
    stage: LineStage,
    /// In a box: in most lines nothing has been heard yet.
    known: Option<Box<LineDenial>>,
    /// How often anything was heard.
    times: u64,
}

/// What the first in line does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineStage {
    /// It waits for leave to ask: what is known is old.
    Waits,
    /// It asks, or is about to.
    Asks,
    /// What is known is what it has heard.
    Told,
}

#[derive(Debug)]
struct LineDenial {
    denial: Denial,
    /// How long the voters had for that.
    within: Duration,
}

/// A place in a line. Dropping it leaves the line.
#[derive(Debug)]
pub(crate) struct LinePlace {
    lines: Arc<Lines>,
    line: Arc<Line>,
    came: Moment,
    /// How often anything had been heard in the line by then.
    times: u64,
    /// The first in line had heard something by then.
    was_told: bool,
    voter_deadline: Duration,
}

/// The first place, or one of the first: the right to ask the voters. Dropping it lets the next one
/// come first.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    place: &'a LinePlace,
    tells: AtomicBool,
    _permit: SemaphorePermit<'a>,
}

impl LineNews {
    fn denial(&self) -> Option<&Denial> {
        self.known.as_ref().map(|known| &known.denial)
    }
}

impl Line {
    fn new(key: LineKey, turns: usize, since: Moment) -> Self {
        let news = LineNews { stage: LineStage::Asks, known: None, times: 0 };
        Self {
            key,
            since,
            places: AtomicU32::new(0),
            turns: Semaphore::new(turns),
            has_teller: AtomicBool::new(false),
            news: Signal::new(news),
            silence: Signal::new(()),
            in_a_row: AtomicU32::new(0),
            hold: Signal::new(LineHold::default()),
        }
    }

    /// Whether nobody stands in it any more.
    pub(super) fn is_empty(&self) -> bool {
        self.places.load(Relaxed) == 0
    }

    /// Whether somebody stands in it beside the task with the turn.
    pub(super) fn has_others(&self) -> bool {
        self.places.load(Relaxed) > 1
    }

    /// What is offered, and until when it may be handed on.
    pub(super) fn take_offered(&self) -> Option<(Box<Won>, Moment)> {
        // Only a change wakes who waits.
        if self.hold.read(|hold| !matches!(hold, LineHold::Offered(_))) {
            return None;
        }
        let mut taken = None;
        self.hold.change(|hold| {
            if let LineHold::Offered(won) = hold
                && let Some(until) = won.tenure_ends()
                && let LineHold::Offered(won) = std::mem::replace(hold, LineHold::Held { until })
            {
                taken = Some((won, until));
            }
        });
        taken
    }

    /// Nobody is to take a hold any more: one that is offered is released.
    pub(super) fn close_tenure(&self) {
        let mut left = LineHold::Closed;
        self.hold.change(|hold| left = std::mem::take(hold));
        drop(left);
    }

    fn change(&self, change: impl FnOnce(&mut LineNews)) {
        self.news.change(change);
        if self.news.read(|news| matches!(news.denial(), Some(Denial::NoQuorum(_)))) {
            self.silence.change(|()| ());
        }
    }
}

impl LineHold {
    pub(super) fn is_held_until(moment: Moment) -> impl Fn(&Self) -> bool {
        move |hold| matches!(hold, Self::Held { until } if *until == moment)
    }

    pub(super) fn is_of_tenure(&self, ends: Moment) -> bool {
        match self {
            Self::Closed => false,
            Self::Held { until } => *until == ends,
            Self::Offered(won) => won.tenure_ends() == Some(ends),
        }
    }
}

impl Lines {
    pub(super) fn new(turns: usize) -> Self {
        Self { lines: Mutex::default(), turns }
    }

    /// `voter_deadline`: how long the caller gives the voters to answer.
    pub(crate) fn enter(
        self: &Arc<Self>,
        of: &Arc<str>,
        which: &'static str,
        came: Moment,
        voter_deadline: Duration,
    ) -> LinePlace {
        let mut lines = lock(&self.lines);
        let key = (Arc::clone(of), which);
        let new = || Arc::new(Line::new(key.clone(), self.turns, came));
        let line = lines.entry(key.clone()).or_insert_with(new);
        line.places.fetch_add(1, Relaxed);
        let (lines, line) = (Arc::clone(self), Arc::clone(line));
        let (times, stage) = line.news.read(|news| (news.times, news.stage));
        let was_told = stage == LineStage::Told;
        LinePlace { lines, line, came, times, was_told, voter_deadline }
    }

    /// Releases what is offered in any of them.
    pub(super) fn close_tenures(&self) {
        let lines = lock(&self.lines);
        let all: Vec<Arc<Line>> = lines.values().cloned().collect();
        drop(lines);
        for line in all {
            line.close_tenure();
        }
    }

    /// Since when somebody stands in line for the lock, if anybody does.
    pub(super) fn since(&self, key: &Arc<str>) -> Option<Moment> {
        let lines = lock(&self.lines);
        let of_lock = lines.values().filter(|line| line.key.0 == *key);
        of_lock.map(|line| line.since).min()
    }
}

impl LinePlace {
    pub(crate) fn came(&self) -> Moment {
        self.came
    }

    /// Completes, in the order of coming, when nobody stands before this place who has no turn.
    pub(crate) async fn turn(&self) -> Turn<'_> {
        let permit = self.line.turns.acquire().await;
        Turn::of(self, permit.expect("a line is never closed"))
    }

    /// The turn, if there is one to be had.
    pub(crate) fn try_turn(&self) -> Option<Turn<'_>> {
        Some(Turn::of(self, self.line.turns.try_acquire().ok()?))
    }

    /// What was last heard in this line.
    pub(crate) fn known(&self) -> Option<Denial> {
        self.line.news.read(|news| news.denial().cloned())
    }

    /// The same, if it is no older than this place.
    pub(crate) fn heard(&self) -> Option<Denial> {
        let is_new = |news: &&LineNews| self.was_told || news.times > self.times;
        self.line.news.read(|news| Some(news).filter(is_new)?.denial().cloned())
    }

    /// Since when no quorum has answered, at most since this place was taken.
    fn silent_since(&self) -> Option<Moment> {
        self.line.news.read(|news| self.silent(news).map(|outage| self.came.max(outage.since)))
    }

    /// Where voters had less time than from here, that they were too slow says nothing.
    fn silent<'a>(&self, news: &'a LineNews) -> Option<&'a Outage> {
        let LineDenial { denial, within } = &**news.known.as_ref()?;
        match denial {
            Denial::NoQuorum(outage) if *within >= self.voter_deadline => Some(outage),
            _ => None,
        }
    }

    /// Completes when the first in line has heard from the voters, now or since this place was
    /// taken.
    pub(crate) async fn verdict(&self) {
        let is_heard = |news: &LineNews| news.times > self.times || news.stage == LineStage::Told;
        self.line.news.until(is_heard).await;
    }

    /// Whether the first in line waits for leave to ask, and nothing has been heard since this place
    /// was taken.
    pub(crate) fn is_held_up(&self) -> bool {
        self.line.news.read(|news| news.stage == LineStage::Waits && news.times == self.times)
    }

    /// Waits for what an attempt under way comes to, and no longer than one may take. The turn, if
    /// it came to nothing that says anything.
    pub(crate) async fn first_verdict(
        &self,
        clock: &Clock,
        voter_deadline: Duration,
    ) -> Option<Turn<'_>> {
        tokio::select! {
            biased;
            () = self.verdict() => None,
            turn = self.turn() => Some(turn),
            () = clock.sleep(2 * voter_deadline) => None,
        }
    }

    /// The silence of the voters, if it lasts too long for this place.
    fn outage(&self, is_too_long: impl Fn(Moment) -> bool) -> Option<Outage> {
        let is_too_long = |outage: &&Outage| is_too_long(self.came.max(outage.since));
        self.line.news.read(|news| self.silent(news).filter(is_too_long).cloned())
    }

    /// Completes when no quorum has answered for too long, and either the first in line has heard
    /// that once more or another comes first: an attempt under way may end the silence.
    pub(crate) fn silence(
        &self,
        is_too_long: impl Fn(Moment) -> bool,
    ) -> impl Future<Output = Outage> {
        let silence = &self.line.silence;
        async move {
            loop {
                let seen = silence.version();
                if let Some(outage) = self.outage(&is_too_long) {
                    return outage;
                }
                silence.changed_since(seen).await;
            }
        }
    }
}

impl<'a> Turn<'a> {
    fn of(place: &'a LinePlace, permit: SemaphorePermit<'a>) -> Self {
        Self { place, tells: AtomicBool::new(false), _permit: permit }
    }

    pub(super) fn line(&self) -> &Arc<Line> {
        &self.place.line
    }

    fn change(&self, change: impl FnOnce(&mut LineNews)) {
        if self.tells() {
            self.place.line.change(change);
        }
    }

    fn tells(&self) -> bool {
        let begins = || !self.place.line.has_teller.swap(true, Relaxed);
        if !self.tells.load(Relaxed) && begins() {
            self.tells.store(true, Relaxed);
        }
        self.tells.load(Relaxed)
    }

    /// What was last heard in this line, and since when no quorum has answered.
    pub(crate) fn known(&self) -> (Option<Denial>, Option<Moment>) {
        (self.place.known(), self.place.silent_since())
    }

    /// The task with the turn waits for leave to ask.
    pub(crate) fn hold_up(&self) {
        self.change(|news| news.stage = LineStage::Waits);
    }

    /// The task with the turn begins to ask.
    pub(crate) fn ask(&self) {
        self.change(|news| news.stage = LineStage::Asks);
    }

    /// The task with the turn got the lock.
    pub(crate) fn count_grant(&self) {
        self.place.line.in_a_row.fetch_add(1, Relaxed);
    }

    /// Whether programs of another library, which stand in no queue of ours, may ask first: this
    /// line hands on the lock sooner than they hear of it. From then on the count starts over.
    pub(crate) fn yields(&self) -> bool {
        let in_a_row = &self.place.line.in_a_row;
        let yields = in_a_row.load(Relaxed) >= IN_A_ROW;
        if yields {
            in_a_row.store(0, Relaxed);
        }
        yields
    }

    pub(crate) fn tell(&self, denial: Denial) {
        let within = self.place.voter_deadline;
        self.change(|news| {
            let known = Some(Box::new(LineDenial { denial, within }));
            *news = LineNews { stage: LineStage::Told, known, times: news.times + 1 };
        });
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.tells.load(Relaxed) {
            // It waits for leave no more. The next one may not have to.
            if self.place.line.news.read(|news| news.stage == LineStage::Waits) {
                self.ask();
            }
            self.place.line.has_teller.store(false, Relaxed);
        }
    }
}

impl Drop for LinePlace {
    fn drop(&mut self) {
        let mut lines = lock(&self.lines.lines);
        if self.line.places.fetch_sub(1, Relaxed) == 1 {
            lines.remove(&self.line.key);
        }
    }
}

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;
