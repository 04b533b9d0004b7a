//! Which voters may have forgotten votes, by what this client has seen of them.

use std::time::Duration;

use super::{Drift, Quorum};
use crate::{
    clock::Moment,
    words::{Quarantine, Quarantined, RestartGuard},
};

/// What is held against a voter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Suspicion {
    pub(crate) guard: RestartGuard,
    /// The longest lease that anybody asks for: then whatever was forgotten has ended.
    pub(crate) longest: Duration,
    pub(crate) drift: Drift,
}

/// What a server's clock showed since 1970, and between which moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) shown: Duration,
    pub(crate) asked: Moment,
    pub(crate) answered: Moment,
}

impl Stamp {
    /// By how many seconds the clock was ahead of the client's wall clock, which showed that when
    /// the answer came.
    pub(crate) fn ahead_secs(self, wall: Duration) -> f64 {
        let half = self.answered.since(self.asked) / 2;
        (self.shown + half).as_secs_f64() - wall.as_secs_f64()
    }
}

/// A voter's quarantine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeptOut {
    pub(crate) quarantined: Quarantined,
    /// By when, at the latest, it had forgotten.
    pub(crate) forgot: Moment,
}

/// A part of a voter that forgets as one: there is one, unless the voter is spread over the servers
/// of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) voter: usize,
    pub(crate) shard: usize,
}

/// All voters, as this client has seen them.
#[derive(Debug)]
pub(crate) struct Register {
    suspicion: Suspicion,
    /// Each by its shards.
    voters: Vec<Vec<Standing>>,
    /// What has moved from one shard to another, and when that was seen; not for longer than the
    /// longest lease.
    moves: Vec<(Place, Place, Moment)>,
}

#[derive(Clone, Debug, Default)]
struct Standing {
    life: Option<Life>,
    first_met: Option<Start>,
    forgot: Option<(Nanos, Quarantine)>,
    clock: Option<Course>,
}

/// Nanoseconds since the beginning of the client's clock: negative for what was before it, as the
/// starts of most servers are where that clock is as young as its machine or its process.
type Nanos = i128;

/// One life of a server, between two starts.
#[derive(Clone, Debug)]
struct Life {
    run_id: String,
    durable: bool,
}

/// What a voter said of its start when this client met it. Neither a start that it has seen nor
/// another way of writing changes what may have been forgotten before.
#[derive(Clone, Copy, Debug)]
struct Start {
    /// It was not later than this.
    at: Nanos,
    durable: bool,
}

/// By how many nanoseconds a voter's clock is ahead of the client's: at least, and at most.
#[derive(Clone, Copy, Debug)]
struct Span {
    least: i128,
    most: i128,
}

/// Where a clock may be by what was measured so far, if it runs as clocks do.
#[derive(Clone, Copy, Debug)]
struct Course {
    /// When it was first measured.
    since: Moment,
    /// By how much it was apart then from those of a majority, if it was.
    apart: Option<Duration>,
    at: Moment,
    span: Span,
}

impl Register {
    /// Servers that are started together start within this time.
    const TOGETHER: Duration = Duration::from_secs(5);

    pub(crate) fn new(quorum: Quorum, suspicion: Suspicion) -> Self {
        let voters = vec![vec![Standing::default()]; quorum.voters()];
        Self { suspicion, voters, moves: Vec::new() }
    }

    /// A new connection stands, and the server on it says who it is. `durable`: it forgets nothing
    /// by a restart. Whether it came back as another.
    pub(crate) fn met(
        &mut self,
        place: Place,
        run_id: &str,
        (uptime, durable): (Duration, bool),
        now: Moment,
    ) -> bool {
        let standing = self.standing_mut(place);
        let Some(life) = &mut standing.life else {
            standing.life = Some(Life { run_id: run_id.into(), durable });
            let at = since_beginning(now) - nanos(uptime);
            standing.first_met = Some(Start { at, durable });
            return false;
        };
        if life.run_id == run_id {
            life.durable = durable;
            return false;
        }
        let forgot = !(life.durable && durable);
        *life = Life { run_id: run_id.into(), durable };
        if forgot {
            // By the uptime it was earlier; that goes by a clock which may be set after a start.
            let suspected = (since_beginning(now), Quarantine::Restarted);
            self.forgot(place, suspected);
            let longest = self.suspicion.longest;
            let heirs: Vec<Place> = self
                .moves
                .iter()
                .filter_map(|(from, to, at)| {
                    (*from == place && now.since(*at) < longest).then_some(*to)
                })
                .collect();
            for heir in heirs {
                self.forgot(heir, suspected);
            }
        }
        true
    }

    /// What one shard of a voter had another has now; where it was `lost` on the way, the other
    /// knows nothing of it, though it is the server that it was. From a shard to itself: another
    /// server has it.
    pub(crate) fn moved(&mut self, from: Place, to: Place, lost: bool, now: Moment) {
        let suspected = self.suspected(from);
        if from == to {
            // Its clock is another one, too.
            self.standing_mut(to).clock = None;
        }
        if lost {
            self.forgot(to, (since_beginning(now), Quarantine::Restarted));
            return;
        }
        if let Some(suspected) = suspected {
            self.forgot(to, suspected);
        }
        // What the first forgot before that may come to light later.
        let longest = self.suspicion.longest;
        self.moves.retain(|(_, _, at)| now.since(*at) < longest);
        self.moves.push((from, to, now));
    }

    fn forgot(&mut self, place: Place, (at, why): (Nanos, Quarantine)) {
        let standing = self.standing_mut(place);
        if standing.forgot.is_none_or(|(known, _)| known < at) {
            standing.forgot = Some((at, why));
        }
    }

    /// What a voter's clock showed; by how much it has moved, if it has.
    pub(crate) fn stamped(&mut self, place: Place, stamp: Stamp) -> Option<Duration> {
        let Suspicion { drift, longest, .. } = self.suspicion;
        let standing = self.standing_mut(place);
        let span = Span::of(stamp);
        let Some(course) = &mut standing.clock else {
            standing.clock = Some(Course::begin(span, stamp.answered));
            self.compare_clocks(stamp.answered);
            return None;
        };
        let moved = course.goes_on(span, stamp.answered, drift, longest)?;
        let seen = since_beginning(stamp.answered);
        standing.forgot = Some((seen, Quarantine::ClockMoved(moved)));
        Some(moved)
    }

    /// Whether, and why, the voter's grants to requests of that moment do not count for new holds.
    /// When they are heard says nothing: a slow answer may be one that was given in quarantine, by
    /// a voter that has forgotten again since.
    pub(crate) fn kept_out(&self, place: Place, sent: Moment) -> Option<KeptOut> {
        if self.suspicion.guard == RestartGuard::Off {
            return None;
        }
        let (forgot, why) = self.suspected(place)?;
        let left = forgot + nanos(self.suspicion.longest) - since_beginning(sent);
        let quarantined = Quarantined { why, left: length(left) };
        let forgot = Moment::BEGINNING + length(forgot);
        (left > 0).then_some(KeptOut { quarantined, forgot })
    }

    /// The same of that shard of a voter which is kept out for longest.
    pub(crate) fn kept_out_longest(&self, voter: usize, sent: Moment) -> Option<KeptOut> {
        let shards = 0..self.voters[voter].len();
        let kept_out = shards.filter_map(|shard| self.kept_out(Place { voter, shard }, sent));
        kept_out.max_by_key(|kept_out| kept_out.quarantined.left)
    }

    fn suspected(&self, place: Place) -> Option<(Nanos, Quarantine)> {
        let standing = self.standing(place)?;
        let reasons = [self.young(standing), standing.apart(), standing.forgot];
        reasons.into_iter().flatten().max_by_key(|(forgot, _)| *forgot)
    }

    fn standing(&self, place: Place) -> Option<&Standing> {
        self.voters[place.voter].get(place.shard)
    }

    fn standing_mut(&mut self, Place { voter, shard }: Place) -> &mut Standing {
        let shards = &mut self.voters[voter];
        if shards.len() <= shard {
            shards.resize(shard + 1, Standing::default());
        }
        &mut shards[shard]
    }

    fn standings(&self) -> impl Iterator<Item = &Standing> {
        self.voters.iter().flatten()
    }

    fn young(&self, standing: &Standing) -> Option<(Nanos, Quarantine)> {
        let start = standing.first_met.filter(|start| !start.durable)?;
        let mut starts = self.standings().filter_map(|standing| standing.first_met);
        let is_later = starts.any(|other| start.at > other.at + nanos(Self::TOGETHER));
        (is_later || self.suspicion.guard == RestartGuard::Strict)
            .then_some((start.at, Quarantine::Young))
    }

    /// Finds those that are apart where the clocks of a majority are together, now that one of them
    /// was measured for the first time. The others have gone on since they were.
    fn compare_clocks(&mut self, now: Moment) {
        let Suspicion { drift, longest, .. } = self.suspicion;
        let by_now = |course: &Course| course.by(now, drift, longest);
        let courses = self.standings().filter_map(|standing| standing.clock.as_ref());
        let mut spans: Vec<Span> = courses.map(by_now).collect();
        spans.sort_unstable_by_key(|span| span.middle());
        let median = spans[spans.len() / 2];
        let allowed = nanos(drift.over(longest));
        let is_near = |span: &&Span| (span.middle() - median.middle()).abs() <= allowed;
        let majority = Quorum::of(spans.len().max(self.voters.len())).needed();
        if spans.iter().filter(is_near).count() < majority {
            return;
        }
        let clocks = self.voters.iter_mut().flatten().filter_map(|other| other.clock.as_mut());
        for course in clocks {
            let by = by_now(course).apart_from(median);
            if by > allowed {
                course.apart.get_or_insert(length(by));
            }
        }
    }
}

impl Standing {
    fn apart(&self) -> Option<(Nanos, Quarantine)> {
        let Course { since, apart, .. } = self.clock?;
        Some((since_beginning(since), Quarantine::ClockApart(apart?)))
    }
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

impl Course {
    /// The most by which a clock that is being set right runs fast or slow, in millionths.
    const SLEW_PPM: u32 = 500;

    fn begin(span: Span, now: Moment) -> Self {
        Self { since: now, apart: None, at: now, span }
    }

    /// Where it may be by now. Within a lease a clock may be as wrong as the drift allows, over
    /// longer times as one that is being set right.
    fn by(&self, now: Moment, drift: Drift, longest: Duration) -> Span {
        let elapsed = now.since(self.at);
        let beyond = elapsed.saturating_sub(longest);
        let run = |ppm, time| nanos(Drift { ppm, fixed: Duration::ZERO }.over(time));
        let slack = run(drift.ppm, elapsed.min(longest)) + run(Self::SLEW_PPM, beyond);
        self.span.widened(slack)
    }

    /// Goes on with a new measurement; by how much it is beyond where it may be, if it is.
    fn goes_on(
        &mut self,
        span: Span,
        now: Moment,
        drift: Drift,
        longest: Duration,
    ) -> Option<Duration> {
        let expected = self.by(now, drift, longest);
        self.at = self.at.max(now);
        let moved = span.apart_from(expected);
        if moved > nanos(drift.fixed) {
            self.span = span;
            return Some(length(moved));
        }
        // They may cross by the fixed part of the drift, and never by more.
        self.span =
            Span { least: expected.least.max(span.least), most: expected.most.min(span.most) };
        None
    }
}

fn nanos(time: Duration) -> i128 {
    i128::try_from(time.as_nanos()).unwrap_or(i128::MAX)
}

fn since_beginning(moment: Moment) -> Nanos {
    nanos(moment.since(Moment::BEGINNING))
}

/// Nothing where it is negative.
fn length(nanos: i128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
}

#[cfg(test)]
#[path = "standing_tests.rs"]
mod tests;
