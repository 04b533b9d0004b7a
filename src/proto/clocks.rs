//! Where a voter's clock may be beside the client's.

use std::time::Duration;

use super::{Drift, Moment, moment::length_of};

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
pub(super) struct Span {
    least: i128,
    most: i128,
}

/// Where a clock may be by what was measured so far, if it runs as clocks do.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockCourse {
    /// When it was first measured.
    pub(super) since: Moment,
    /// By how much it was apart then from those of a majority, if it was.
    pub(super) apart: Option<Duration>,
    /// By how much it was apart then from another, where no majority was together.
    pub(super) doubtful: Option<Duration>,
    /// By how much it stepped ahead when it last moved, if it did not step back.
    pub(super) step: Option<PauseStep>,
    at: Moment,
    /// When the latest measurement was asked for.
    pub(super) asked: Moment,
    span: Span,
}

impl Span {
    /// A server shows whole milliseconds.
    const RESOLUTION: Duration = Duration::from_millis(1);

    pub(super) fn of(Stamp { shown, asked, answered }: Stamp) -> Self {
        Self {
            least: nanos(shown) - since_beginning(answered),
            most: nanos(shown + Self::RESOLUTION) - since_beginning(asked),
        }
    }

    pub(super) fn middle(self) -> i128 {
        i128::midpoint(self.least, self.most)
    }

    /// By how much at least; negative where they may be the same.
    pub(super) fn apart_from(self, other: Self) -> i128 {
        (self.least - other.most).max(other.least - self.most)
    }

    fn widened(self, slack: i128) -> Self {
        Self { least: self.least - slack, most: self.most + slack }
    }
}

impl ClockCourse {
    /// The most by which a clock that is being set right runs fast or slow, in millionths.
    const SLEW_PPM: u32 = 500;

    pub(super) fn begin(stamp: Stamp) -> Self {
        let Stamp { asked, answered: at, .. } = stamp;
        let span = Span::of(stamp);
        Self { since: at, apart: None, doubtful: None, step: None, at, asked, span }
    }

    /// Where it may be by now. Within a lease a clock may be as wrong as the drift allows, over
    /// longer times as one that is being set right.
    pub(super) fn by(&self, now: Moment, drift: Drift, longest: Duration) -> Span {
        let elapsed = now.since(self.at);
        let beyond = elapsed.saturating_sub(longest);
        let run = |ppm, time| nanos(Drift { ppm, fixed: Duration::ZERO }.over(time));
        let slack = run(drift.ppm, elapsed.min(longest)) + run(Self::SLEW_PPM, beyond);
        self.span.widened(slack)
    }

    /// Goes on with a new measurement; by how much it is beyond where it may be, if it is.
    pub(super) fn goes_on(
        &mut self,
        stamp: Stamp,
        drift: Drift,
        longest: Duration,
    ) -> Option<Duration> {
        let Stamp { asked, answered: now, .. } = stamp;
        let (span, expected) = (Span::of(stamp), self.by(now, drift, longest));
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
    pub(super) least: Nanos,
    pub(super) most: Nanos,
    /// When what it was measured by before had been asked for: it had not stepped yet.
    pub(super) after: Moment,
    /// When it was seen.
    pub(super) until: Moment,
}

impl PauseStep {
    /// What both can be, if they can be one step of the client's clock.
    pub(super) fn meet(self, other: Self) -> Option<Self> {
        let met = Self {
            least: self.least.max(other.least),
            most: self.most.min(other.most),
            after: self.after.max(other.after),
            until: self.until.min(other.until),
        };
        (met.least <= met.most && met.after <= met.until).then_some(met)
    }
}
