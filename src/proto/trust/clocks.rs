//! How far a voter's clock may be from the client's.

use std::time::Duration;

use super::{Register, Shard, Standing, Suspicion};
use crate::proto::{Drift, Moment, Quarantine, Quorum, moment::length_of};

/// Nanoseconds since the beginning of the client's clock.
// Signed: most servers started before a clock that begins with its machine or its process.
pub(super) type Nanos = i128;

pub(super) fn nanos(time: Duration) -> i128 {
    i128::try_from(time.as_nanos()).unwrap_or(i128::MAX)
}

pub(super) fn since_beginning(moment: Moment) -> Nanos {
    nanos(moment.since(Moment::BEGINNING))
}

/// Zero if it is negative.
pub(super) fn length(nanos: i128) -> Duration {
    length_of(nanos.max(0).unsigned_abs())
}

/// What a server's clock showed, since 1970, at some moment between two of the client's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub shown: Duration,
    pub asked: Moment,
    pub answered: Moment,
}

impl Stamp {
    /// How many seconds the clock was ahead of the client's wall clock, which showed `wall` when
    /// the answer came.
    pub fn ahead_secs(self, wall: Duration) -> f64 {
        let half = self.answered.since(self.asked) / 2;
        (self.shown + half).as_secs_f64() - wall.as_secs_f64()
    }
}

/// How many nanoseconds a voter's clock is ahead of the client's: at least, and at most.
// A range and no number: the server read its clock at an unknown moment of the round trip. So a
// slow answer shows less, and never a step that there was not.
#[derive(Clone, Copy, Debug)]
struct Span {
    least: i128,
    most: i128,
}

/// Where a clock can be by the measurements so far, if it drifts as allowed.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockCourse {
    /// When it was first measured.
    since: Moment,
    /// How far it was from the clocks of a majority then, if that was too far.
    apart: Option<Duration>,
    /// How far it was from any other clock then, while no majority agreed.
    doubtful: Option<Duration>,
    /// Its latest step, if that was ahead.
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

    /// The least distance; negative if they overlap.
    fn apart_from(self, other: Self) -> i128 {
        (self.least - other.most).max(other.least - self.most)
    }

    fn overlap(self, other: Self) -> Self {
        Self { least: self.least.max(other.least), most: self.most.min(other.most) }
    }
}

impl ClockCourse {
    // Over longer times than a lease a clock must keep to this. So `docs/operations.md` has
    // servers set `maxslewrate 500`, as chrony may otherwise correct a clock by 8.3 %.
    /// How fast or slow a clock may run while it is corrected, in millionths.
    const SLEW_PPM: u32 = 500;

    fn begin(stamp: Stamp) -> Self {
        let Stamp { asked, answered: at, .. } = stamp;
        let span = Span::of(stamp);
        Self { since: at, apart: None, doubtful: None, step: None, at, asked, span }
    }

    /// Where it can be by now.
    fn span_at(&self, now: Moment, drift: Drift, longest: Duration) -> Span {
        // Within a lease, as wrong as the drift allows: leases rely on no more. After that only as
        // a clock that is corrected, or a step of many seconds would be allowed after an idle hour.
        let elapsed = now.since(self.at);
        let beyond = elapsed.saturating_sub(longest);
        let run = |ppm, time| nanos(Drift { ppm, fixed: Duration::ZERO }.over(time));
        let slack = run(drift.ppm, elapsed.min(longest)) + run(Self::SLEW_PPM, beyond);
        Span { least: self.span.least - slack, most: self.span.most + slack }
    }

    /// Takes a new measurement. How far it is beyond where the clock can be, if it is.
    fn advance(&mut self, stamp: Stamp, drift: Drift, longest: Duration) -> Option<Duration> {
        let Stamp { asked, answered: now, .. } = stamp;
        let (span, expected) = (Span::of(stamp), self.span_at(now, drift, longest));
        let after = std::mem::replace(&mut self.asked, asked);
        self.at = self.at.max(now);
        let moved = span.apart_from(expected);
        if moved > nanos(drift.fixed) {
            self.span = span;
            let step = Span { least: span.least - expected.most, most: span.most - expected.least };
            let pause = PauseStep { span: step, after, until: now };
            self.step = (step.least > 0).then_some(pause);
            return Some(length(moved));
        }
        // Both are true, so the clock is where they overlap. (They may miss each other by the fixed
        // part of the drift.) So changes that are too small for one round trip to show add up, and
        // are found in the end.
        self.span = expected.overlap(span);
        None
    }
}

/// A step of a voter's clock ahead of the client's. If the client's clock stood still, the clocks
/// of all voters seem to have made the same step.
#[derive(Clone, Copy, Debug)]
pub(super) struct PauseStep {
    /// By how much.
    span: Span,
    /// When the measurement before left. The clock had not stepped yet.
    after: Moment,
    /// When the step was seen.
    until: Moment,
}

impl PauseStep {
    /// The overlap of both, if they can be one and the same pause of the client.
    fn overlap(self, other: Self) -> Option<Self> {
        let span = self.span.overlap(other.span);
        let (after, until) = (self.after.max(other.after), self.until.min(other.until));
        let is_possible = span.least <= span.most && after <= until;
        is_possible.then_some(Self { span, after, until })
    }
}

/// What a voter's clock shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// It is where it can be.
    Expected,
    /// It has moved.
    Moved,
    /// It has moved, and so have the clocks of a majority: the client stood still, for this time at
    /// most.
    StoodStill(Duration),
}

impl Register {
    /// Compares what a voter's clock showed with its course.
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
        // A clock that jumped ahead has ended leases too soon: the voter may have given a vote to
        // another hold while the former one still counts it (law 1).
        let seen = since_beginning(stamp.answered);
        if !crate::mutant!("clock_jump_not_noticed") {
            standing.forgot = Some((seen, Quarantine::ClockMoved(moved)));
        }
        step.and_then(|step| self.find_pause(shard, step)).map_or(Shown::Moved, Shown::StoodStill)
    }

    /// How long the client stood still, if a majority of the voters shows the same step.
    fn find_pause(&mut self, shard: Shard, latest: PauseStep) -> Option<Duration> {
        // One more server that shows a known pause: leases must not be shortened twice for it.
        let known = self.pause.filter(|known| known.overlap(latest).is_some());
        let standing = self.standing_mut(shard);
        if let Some(known) = known.filter(|_| standing.is_behind) {
            (standing.is_behind, standing.has_shown) = (false, true);
            self.lift_quarantines(known);
            return None;
        }
        let (mut pause, mut alike) = (latest, Vec::new());
        for (voter, shards) in self.voters.iter().enumerate() {
            let fresh = shards.iter().filter_map(|one| one.clock?.step.filter(|_| !one.has_shown));
            if let Some(both) = { fresh }.find_map(|step| step.overlap(pause)) {
                pause = both;
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
        self.lift_quarantines(pause);
        // The most that it can have been: in doubt, trust ends sooner (law 2).
        Some(length(pause.span.most))
    }

    /// Takes back the quarantines of voters whose clocks only seemed to step.
    fn lift_quarantines(&mut self, pause: PauseStep) {
        // A lease that ends too soon is safe, so one server of each voter of a majority is enough
        // for that. A quarantine that ends too soon is not: it takes all servers of a majority, and
        // no server that contradicts. Two clients held a lock before (`5f6a081b`).
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

    /// Whether these are a majority of each set, and two at least.
    fn are_majority(&self, which: impl Fn(usize) -> bool) -> bool {
        // With a single voter nobody can tell whose clock stepped.
        self.quorum.reached(&which) && (0..self.voters.len()).filter(|one| which(*one)).count() > 1
    }

    /// Finds clocks that are too far from those of a majority, after one was first measured.
    fn compare_clocks(&mut self, now: Moment) {
        // Until a majority agrees, every clock is doubtful that is far from any other. With one
        // voter down, one clock that stepped would otherwise make two holders (`c526f210`).
        let Suspicion { drift, longest, .. } = self.suspicion;
        let by_now = |course: &ClockCourse| course.span_at(now, drift, longest);
        let courses = self.standings().filter_map(|standing| standing.clock.as_ref());
        let mut spans: Vec<Span> = courses.map(by_now).collect();
        spans.sort_unstable_by_key(|span| span.middle());
        let median = spans[spans.len() / 2];
        let allowed = nanos(drift.over(longest));
        let is_near = |span: &&Span| (span.middle() - median.middle()).abs() <= allowed;
        // Any choice of so many voters is a majority. Clocks are counted by server: in a cluster
        // there are more of them than voters.
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

    /// Whether its clock made the step of this pause.
    fn shows(&self, pause: PauseStep) -> bool {
        self.clock.and_then(|course| course.step).and_then(|step| step.overlap(pause)).is_some()
    }

    /// Whether its clock went on normally during this pause.
    fn contradicts(&self, pause: PauseStep) -> bool {
        let asked_since = self.clock.is_some_and(|course| course.asked > pause.until);
        let after = since_beginning(pause.after);
        let moved = matches!(self.forgot, Some((at, Quarantine::ClockMoved(_))) if at > after);
        asked_since && !moved && !self.shows(pause)
    }
}
