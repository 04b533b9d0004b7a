//! Where a voter's clock may be beside the client's.

use std::time::Duration;

use super::{Register, Shard, Standing, Suspicion};
use crate::proto::{Drift, Moment, Quarantine, Quorum, moment::length_of};

/// Nanoseconds since the beginning of the client's clock: negative for what was before it, as the
/// starts of most servers are where that clock is as young as its machine or its process.
pub(super) type Nanos = i128;

pub(super) fn nanos(time: Duration) -> i128 {
    i128::try_from(time.as_nanos()).unwrap_or(i128::MAX)
}

pub(super) fn since_beginning(moment: Moment) -> Nanos {
    nanos(moment.since(Moment::BEGINNING))
}

/// Nothing where it is negative.
pub(super) fn length(nanos: i128) -> Duration {
    length_of(nanos.max(0).unsigned_abs())
}

/// What a server's clock showed since 1970, and between which moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub shown: Duration,
    pub asked: Moment,
    pub answered: Moment,
}

impl Stamp {
    /// By how many seconds the clock was ahead of the client's wall clock, which showed that when
    /// the answer came.
    pub fn ahead_secs(self, wall: Duration) -> f64 {
        let half = self.answered.since(self.asked) / 2;
        (self.shown + half).as_secs_f64() - wall.as_secs_f64()
    }
}

/// By how many nanoseconds a voter's clock is ahead of the client's: at least, and at most.
#[derive(Clone, Copy, Debug)]
struct Span {
    least: i128,
    most: i128,
}

/// Where a clock may be by what was measured so far, if it runs as clocks do.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockCourse {
    /// When it was first measured.
    since: Moment,
    /// By how much it was apart then from those of a majority, if it was.
    apart: Option<Duration>,
    /// By how much it was apart then from another, where no majority was together.
    doubtful: Option<Duration>,
    /// By how much it stepped ahead when it last moved, if it did not step back.
    step: Option<PauseStep>,
    at: Moment,
    /// When the latest measurement was asked for.
    asked: Moment,
    span: Span,
}

impl Span {
    /// A server shows whole milliseconds.
    const RESOLUTION: Duration = Duration::from_millis(1);

    fn of(Stamp { shown, asked, answered }: Stamp) -> Self {
        Self {
            least: nanos(shown) - since_beginning(answered),
            most: nanos(shown + Self::RESOLUTION) - since_beginning(asked),
        }
    }

    fn middle(self) -> i128 {
        i128::midpoint(self.least, self.most)
    }

    /// By how much at least; negative where they may be the same.
    fn apart_from(self, other: Self) -> i128 {
        (self.least - other.most).max(other.least - self.most)
    }

    fn widened(self, slack: i128) -> Self {
        Self { least: self.least - slack, most: self.most + slack }
    }
}

impl ClockCourse {
    /// The most by which a clock that is being set right runs fast or slow, in millionths.
    const SLEW_PPM: u32 = 500;

    fn begin(stamp: Stamp) -> Self {
        let Stamp { asked, answered: at, .. } = stamp;
        let span = Span::of(stamp);
        Self { since: at, apart: None, doubtful: None, step: None, at, asked, span }
    }

    /// Where it may be by now. Within a lease a clock may be as wrong as the drift allows, over
    /// longer times as one that is being set right.
    fn span_at(&self, now: Moment, drift: Drift, longest: Duration) -> Span {
        let elapsed = now.since(self.at);
        let beyond = elapsed.saturating_sub(longest);
        let run = |ppm, time| nanos(Drift { ppm, fixed: Duration::ZERO }.over(time));
        let slack = run(drift.ppm, elapsed.min(longest)) + run(Self::SLEW_PPM, beyond);
        self.span.widened(slack)
    }

    /// Goes on with a new measurement; by how much it is beyond where it may be, if it is.
    fn advance(&mut self, stamp: Stamp, drift: Drift, longest: Duration) -> Option<Duration> {
        let Stamp { asked, answered: now, .. } = stamp;
        let (span, expected) = (Span::of(stamp), self.span_at(now, drift, longest));
        let after = std::mem::replace(&mut self.asked, asked);
        self.at = self.at.max(now);
        let moved = span.apart_from(expected);
        if moved > nanos(drift.fixed) {
            self.span = span;
            let (least, most) = (span.least - expected.most, span.most - expected.least);
            self.step = (least > 0).then_some(PauseStep { least, most, after, until: now });
            return Some(length(moved));
        }
        // They may cross by the fixed part of the drift, and never by more.
        self.span =
            Span { least: expected.least.max(span.least), most: expected.most.min(span.most) };
        None
    }
}

/// By how much a voter's clock stepped ahead of the client's, and when. Where it was the client's
/// that stood still, all voters' clocks seem to have stepped ahead alike.
#[derive(Clone, Copy, Debug)]
pub(super) struct PauseStep {
    least: Nanos,
    most: Nanos,
    /// When what it was measured by before had been asked for: it had not stepped yet.
    after: Moment,
    /// When it was seen.
    until: Moment,
}

impl PauseStep {
    /// What both can be, if they can be one step of the client's clock.
    fn meet(self, other: Self) -> Option<Self> {
        let met = Self {
            least: self.least.max(other.least),
            most: self.most.min(other.most),
            after: self.after.max(other.after),
            until: self.until.min(other.until),
        };
        (met.least <= met.most && met.after <= met.until).then_some(met)
    }
}

/// What a voter's clock shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// It is where it may be.
    Expected,
    /// It has moved.
    Moved,
    /// It has moved, and so have those of a majority, by as much: the client stood still, for no
    /// longer than this.
    StoodStill(Duration),
}

impl Register {
    /// What a voter's clock showed.
    pub fn note_clock(&mut self, shard: Shard, stamp: Stamp) -> Shown {
        let Suspicion { drift, longest, .. } = self.suspicion;
        let standing = self.standing_mut(shard);
        let Some(course) = &mut standing.clock else {
            standing.clock = Some(ClockCourse::begin(stamp));
            self.compare_clocks(stamp.answered);
            return Shown::Expected;
        };
        let Some(moved) = course.advance(stamp, drift, longest) else { return Shown::Expected };
        let step = course.step;
        standing.has_shown = false;
        standing.forgot_before_step = standing.forgot;
        let seen = since_beginning(stamp.answered);
        if !crate::mutant!("clock_jump_not_noticed") {
            standing.forgot = Some((seen, Quarantine::ClockMoved(moved)));
        }
        step.and_then(|step| self.find_pause(shard, step)).map_or(Shown::Moved, Shown::StoodStill)
    }

    /// Where a majority of the voters shows one step, the client stood still. For how long, unless
    /// that was known: then this is one more server that shows it.
    fn find_pause(&mut self, shard: Shard, latest: PauseStep) -> Option<Duration> {
        let known = self.pause.filter(|known| known.meet(latest).is_some());
        let standing = self.standing_mut(shard);
        if let Some(known) = known.filter(|_| standing.is_behind) {
            (standing.is_behind, standing.has_shown) = (false, true);
            self.acquit(known);
            return None;
        }
        let (mut pause, mut alike) = (latest, Vec::new());
        for (voter, shards) in self.voters.iter().enumerate() {
            let fresh = shards.iter().filter_map(|one| one.clock?.step.filter(|_| !one.has_shown));
            if let Some(met) = { fresh }.find_map(|step| step.meet(pause)) {
                pause = met;
                alike.push(voter);
            }
        }
        if !self.are_majority(|voter| alike.contains(&voter)) {
            return None;
        }
        self.pause = Some(pause);
        for one in self.voters.iter_mut().flatten() {
            one.is_behind = one.has_shown || !one.shows(pause);
            one.has_shown |= !one.is_behind;
        }
        self.acquit(pause);
        // No less than it stood still.
        Some(length(pause.most))
    }

    /// Takes back the quarantine of whom the client's pause made seem to have moved.
    ///
    /// For leases to end sooner, one server of each voter of a majority is enough (law 2). This
    /// takes all of their servers, so that no lock is on a minority that truly stepped, and no
    /// other server that says otherwise (law 1).
    fn acquit(&mut self, pause: PauseStep) {
        let by_all = |voter: usize| {
            let mut measured = self.voters[voter].iter().filter(|one| one.clock.is_some());
            measured.all(|one| one.shows(pause)) && !self.voters[voter].is_empty()
        };
        if !self.are_majority(by_all) || self.standings().any(|one| one.contradicts(pause)) {
            return;
        }
        for one in self.voters.iter_mut().flatten().filter(|one| one.shows(pause)) {
            if matches!(one.forgot, Some((_, Quarantine::ClockMoved(_)))) {
                one.forgot = one.forgot_before_step;
            }
        }
    }

    /// Whether these are a majority of each set. A voter that is alone may be the one that is
    /// wrong.
    fn are_majority(&self, which: impl Fn(usize) -> bool) -> bool {
        self.quorum.reached(&which) && (0..self.voters.len()).filter(|one| which(*one)).count() > 1
    }

    /// Finds those that are apart where the clocks of a majority are together, now that one of them
    /// was measured for the first time. The others have gone on since they were. Where no majority
    /// is together yet, all are doubtful that are apart from any other.
    fn compare_clocks(&mut self, now: Moment) {
        let Suspicion { drift, longest, .. } = self.suspicion;
        let by_now = |course: &ClockCourse| course.span_at(now, drift, longest);
        let courses = self.standings().filter_map(|standing| standing.clock.as_ref());
        let mut spans: Vec<Span> = courses.map(by_now).collect();
        spans.sort_unstable_by_key(|span| span.middle());
        let median = spans[spans.len() / 2];
        let allowed = nanos(drift.over(longest));
        let is_near = |span: &&Span| (span.middle() - median.middle()).abs() <= allowed;
        let majority = Quorum::of(spans.len()).enough().max(self.quorum.enough());
        let are_together = spans.iter().filter(is_near).count() >= majority;
        let clocks = self.voters.iter_mut().flatten().filter_map(|other| other.clock.as_mut());
        for course in clocks {
            let span = by_now(course);
            let beyond = |by: Nanos| (by > allowed).then(|| length(by));
            if are_together {
                course.doubtful = None;
                course.apart = course.apart.or(beyond(span.apart_from(median)));
            } else {
                let most = spans.iter().map(|other| span.apart_from(*other)).max();
                course.doubtful = most.and_then(beyond);
            }
        }
    }
}

impl Standing {
    pub(super) fn apart(&self) -> Option<(Nanos, Quarantine)> {
        let ClockCourse { since, apart, doubtful, .. } = self.clock?;
        Some((since_beginning(since), Quarantine::ClockApart(apart.or(doubtful)?)))
    }

    /// Its clock stepped ahead as it does where the client stood still.
    fn shows(&self, pause: PauseStep) -> bool {
        self.clock.and_then(|course| course.step).and_then(|step| step.meet(pause)).is_some()
    }

    /// Its clock went right while the client is said to have stood still.
    fn contradicts(&self, pause: PauseStep) -> bool {
        let asked_since = self.clock.is_some_and(|course| course.asked > pause.until);
        let after = since_beginning(pause.after);
        let moved = matches!(self.forgot, Some((at, Quarantine::ClockMoved(_))) if at > after);
        asked_since && !moved && !self.shows(pause)
    }
}
