//! Which voters may have forgotten votes, by what this client has seen of them.

#[cfg(test)]
#[path = "standing_clock_tests.rs"]
mod clock_tests;
#[cfg(test)]
#[path = "standing_tests.rs"]
mod tests;

use std::{sync::Arc, time::Duration};

use super::{
    Cause, Drift, Moment, Quarantine, Quarantined, Quorum, RestartGuard, Side, Stamp, Verdict,
    clocks::{ClockCourse, Nanos, PauseStep, Span, length, nanos, since_beginning},
};

/// By which settings a voter is suspected, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Suspicion {
    pub guard: RestartGuard,
    /// The longest lease that anybody asks for: then whatever was forgotten has ended.
    pub longest: Duration,
    pub drift: Drift,
}

/// A voter's quarantine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptOut {
    pub quarantined: Quarantined,
    /// From then on nobody counts a grant that it may have forgotten. It may be still to come,
    /// where its server took over from another, by which some clients may yet be given votes.
    pub forgot: Moment,
}

impl KeptOut {
    pub fn new(why: Quarantine, left: Duration, forgot: Moment) -> Self {
        Self { quarantined: Quarantined { why, left }, forgot }
    }

    /// What a grant counts for that does not count.
    pub fn verdict(self) -> Verdict {
        Verdict::Unknown(Cause::Quarantined(self.quarantined))
    }
}

/// A part of a voter that forgets as one: there is one, unless the voter is spread over the servers
/// of a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub voter: usize,
    pub shard: usize,
}

/// The name of a server's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Birth {
    /// Where the name stands: under another key it may be another one for the same data.
    pub mark: Arc<str>,
    /// Behind a `~` what they were called before a client renamed them, and behind a `/` what else
    /// makes them others.
    pub name: Arc<str>,
    /// How old the mark is. Data of one name grow no younger, unless they are those of an earlier
    /// moment.
    pub age: Duration,
    /// How old it was when the first client looked at it in this life of the server.
    pub began: Duration,
}

impl Birth {
    /// What the mark calls the data, and what else makes them others.
    fn parts(&self) -> (&str, &str) {
        self.name.split_at(self.name.find('/').unwrap_or(self.name.len()))
    }

    /// What the mark calls the data.
    pub(crate) fn data(&self) -> &str {
        self.parts().0
    }

    /// That without what they were called before, and what that is.
    fn names(&self) -> (&str, Option<&str>) {
        let data = self.data();
        data.split_once('~').map_or((data, None), |(name, before)| (name, Some(before)))
    }

    /// What data are called that are renamed: `fresh` is a name that no others have.
    pub(crate) fn rename(&self, fresh: &str) -> String {
        format!("{fresh}~{}", self.names().0)
    }

    /// Whether the other data have the name of these, or had it before they were renamed. So a
    /// client that connects after only one of two copies was renamed still finds them.
    fn is_shared_with(&self, other: &Self) -> bool {
        let (name, (its, before)) = (self.names().0, other.names());
        self.mark == other.mark && !name.is_empty() && (its == name || before == Some(name))
    }

    /// Data that are called so, and of which no more is known.
    fn renamed(&self, data: &str) -> Self {
        let name = format!("{data}{}", self.parts().1).into();
        Self { name, age: Duration::ZERO, began: Duration::ZERO, ..self.clone() }
    }
}

/// What a server has of the data that it had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    Kept,
    /// They have another name.
    Gone,
    /// They are those of an earlier moment, and perhaps nobody else can know.
    Older,
    /// They have the name of another voter's, or had it before those were renamed: one of the two
    /// has a copy of the other's. Which of them, nobody knows.
    Shared,
}

impl Data {
    /// Whether they are to get another name, by which all clients know.
    pub fn need_a_name(self) -> bool {
        matches!(self, Self::Older | Self::Shared)
    }
}

/// All voters, as this client has seen them.
#[derive(Debug)]
pub struct Register {
    suspicion: Suspicion,
    quorum: Quorum,
    /// Each by its shards.
    voters: Vec<Vec<Standing>>,
    /// The cluster that each voter is a part of; those of one may share servers.
    clusters: Vec<usize>,
    /// Who came to a server that another voter had already, and which one that is.
    twins: Vec<(Place, usize)>,
    /// What has moved from one shard to another, and when that was seen; not for longer than the
    /// longest lease.
    moves: Vec<(Place, Place, Moment)>,
    /// The latest time for which the client is known to have stood still.
    pause: Option<PauseStep>,
}

#[derive(Clone, Debug, Default)]
struct Standing {
    life: Option<Life>,
    birth: Option<Birth>,
    /// They, in this life of the server, were found to be another voter's, too.
    is_shared: bool,
    first_met: Option<Start>,
    forgot: Option<(Nanos, Quarantine)>,
    /// The same before its clock stepped ahead at last.
    forgot_before_step: Option<(Nanos, Quarantine)>,
    /// For so long after the server took over, its predecessor's grants may have been counted.
    overlap: Duration,
    clock: Option<ClockCourse>,
    /// Its latest step is that of a pause of the client's.
    has_shown: bool,
    /// It has not shown the client's latest pause yet.
    is_behind: bool,
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

/// One life of a server, between two starts.
#[derive(Clone, Debug)]
struct Life {
    run_id: String,
    durable: bool,
    /// Since when it is this server, as far as is known.
    since: Moment,
    /// A connection to it stands.
    is_there: bool,
}

/// What a voter said of its start when this client met it. Neither a start that it has seen nor
/// another way of writing changes what may have been forgotten before.
#[derive(Clone, Copy, Debug)]
struct Start {
    /// It was not later than this.
    at: Nanos,
    /// It forgets nothing, as far as it says itself.
    durable: bool,
    /// As that of its standing.
    overlap: Duration,
    /// For how long it had been known then. Nothing: nobody had met it before.
    age: Duration,
    /// By its mark, and not by what the server says of itself.
    marked: bool,
}

impl Register {
    /// Servers that are started together start within this time.
    const TOGETHER: Duration = Duration::from_secs(5);

    /// And are marked by their first client within this time. A hold may have been given since, by
    /// one that has come back without it.
    const MARKED_TOGETHER: Duration = Duration::from_secs(1);

    /// `clusters`: a number for each voter, the same for all that are parts of one cluster.
    pub fn new(clusters: Vec<usize>, quorum: Quorum, suspicion: Suspicion) -> Self {
        let voters = vec![vec![Standing::default()]; clusters.len()];
        let (twins, moves) = (Vec::new(), Vec::new());
        Self { suspicion, quorum, voters, clusters, twins, moves, pause: None }
    }

    /// The server that is about to be [met](Self::met) took over from another, whose grants some
    /// clients may have gone on counting for so long.
    pub fn follows(&mut self, place: Place, overlap: Duration) {
        self.standing_mut(place).overlap = overlap;
    }

    /// A new connection stands, and the server on it says who it is. `durable`: it forgets nothing
    /// by a restart. Whether it came back as another.
    pub fn met(
        &mut self,
        place: Place,
        run_id: &str,
        uptime: Duration,
        durable: bool,
        now: Moment,
    ) -> bool {
        let standing = self.standing_mut(place);
        let overlap = standing.overlap;
        let same = standing.life.as_ref().filter(|life| life.server() == server(run_id));
        let since = same.map_or(now, |life| life.since);
        let before = standing.life.replace(Life::new(run_id, durable, since));
        let returned = before.as_ref().is_some_and(|before| before.run_id != run_id);
        if before.is_none() {
            let (at, age, marked) = (since_beginning(now) - nanos(uptime), uptime, false);
            standing.first_met = Some(Start { at, durable, overlap, age, marked });
        }
        if returned && crate::mutant!("clock_is_met_anew") {
            standing.clock = None;
        }
        let is_durable = durable && before.is_some_and(|before| before.durable);
        if returned && !is_durable && !crate::mutant!("restart_not_noticed") {
            // By the uptime it was earlier; that goes by a clock which may be set after a start.
            let (at, why) = (since_beginning(now) + nanos(overlap), Quarantine::Restarted);
            self.forgot(place, at, why);
            let longest = self.suspicion.longest;
            let heirs = self
                .moves
                .iter()
                .filter(|(from, _, moved)| *from == place && now.since(*moved) < longest);
            for heir in heirs.map(|(_, to, _)| *to).collect::<Vec<_>>() {
                self.forgot(heir, at, why);
            }
        }
        self.compare_servers(now);
        returned
    }

    /// The connection to a server has ended. Until it stands again nobody knows which server has
    /// the data that this one had.
    pub fn parted(&mut self, place: Place) {
        if let Some(life) = &mut self.standing_mut(place).life {
            life.is_there = false;
        }
    }

    /// A server says which data it has; `returned`: for the first time in its life. If they are
    /// others than before, or younger than this client saw them, then what it had is gone, whatever
    /// it says of its disk and of its age. The same if another voter has data of that name.
    pub fn named(&mut self, place: Place, birth: &Birth, returned: bool, now: Moment) -> Data {
        let standing = self.standing_mut(place);
        let before = standing.birth.replace(birth.clone());
        let is_same = before.as_ref().is_some_and(|before| before.name == birth.name);
        standing.is_shared &= is_same && !returned;
        let is_shared = self.find_shared(place, now);
        let data = self.compare_data(place, before.as_ref(), returned, now);
        if is_shared { Data::Shared } else { data }
    }

    /// What became of the data that a server had before.
    fn compare_data(
        &mut self,
        place: Place,
        before: Option<&Birth>,
        returned: bool,
        now: Moment,
    ) -> Data {
        let standing = self.standing_mut(place);
        if let Some(first) = &mut standing.first_met {
            // For how long it has kept them all is said by the mark, and not by its settings.
            first.durable &= crate::mutant!("settings_are_believed");
            first.marked = true;
        }
        let both = before.zip(standing.birth.as_ref());
        let Some((before, birth)) = both.filter(|(before, birth)| before.mark == birth.mark) else {
            return Data::Kept;
        };
        if before.name != birth.name {
            if crate::mutant!("restart_not_noticed") {
                return Data::Kept;
            }
            let why = standing.why_others(before);
            self.forgot(place, since_beginning(now), why);
            return Data::Gone;
        }
        // Another client that looked before in this life has made the mark older. One that goes by
        // other sources may have made it young, and then it tells how old it was before.
        let age = if returned { birth.began } else { birth.age.max(birth.began) };
        let older = age < before.age && !crate::mutant!("durability_is_believed");
        if older && self.lost(place, now, now) { Data::Older } else { Data::Kept }
    }

    /// Looks for other voters whose data have the name of this one's. Where there are some, both
    /// may be the copy, and lack the votes that they gave. Whether these are to get another name.
    fn find_shared(&mut self, place: Place, now: Moment) -> bool {
        let Some(standing) = self.standing(place) else { return false };
        let Some((birth, life)) = standing.birth.as_ref().zip(standing.life.as_ref()) else {
            return false;
        };
        let (mut found, mut need_a_name) = (Vec::new(), false);
        for (voter, shards) in self.voters.iter().enumerate() {
            // Parts of one cluster may be on one server, before and after its failover.
            if self.clusters[voter] == self.clusters[place.voter] {
                continue;
            }
            for (shard, other) in shards.iter().enumerate() {
                let its = other.birth.as_ref().zip(other.life.as_ref());
                let Some((its, its_life)) = its.filter(|(_, life)| life.is_there) else { continue };
                // One server by two ways has no second vote anyway.
                if its_life.server() == life.server() || crate::mutant!("copy_not_noticed") {
                    continue;
                }
                let is_shared = birth.is_shared_with(its);
                need_a_name |= is_shared;
                if is_shared || its.is_shared_with(birth) {
                    found.push(Place { voter, shard });
                }
            }
        }
        if !found.is_empty() {
            found.push(place);
        }
        let at = since_beginning(now);
        for place in found {
            let standing = self.standing_mut(place);
            let is_news = !std::mem::replace(&mut standing.is_shared, true);
            // It says more than that the server has started again.
            if is_news && standing.forgot.is_none_or(|(known, _)| known <= at) {
                standing.forgot = Some((at, Quarantine::Copied));
            }
        }
        need_a_name
    }

    /// A voter has not got a vote that it gave at this time and should have. That is proof against
    /// one that came back since and said that it forgot nothing. Whether this is news.
    pub fn lacks_vote(&mut self, place: Place, given: Moment, now: Moment) -> bool {
        let since = self.standing(place).and_then(|standing| Some(standing.life.as_ref()?.since));
        let came_back = since.filter(|since| given < *since);
        came_back.is_some_and(|since| {
            !crate::mutant!("durability_is_believed") && self.lost(place, since, now)
        })
    }

    /// A voter has lost a part of its data, which are to get another name. Whether this is news: it
    /// is not known to have forgotten since then.
    fn lost(&mut self, place: Place, since: Moment, now: Moment) -> bool {
        let standing = self.standing_mut(place);
        let is_known = standing.forgot.is_some_and(|(at, _)| at >= since_beginning(since));
        if !is_known {
            // Whatever they are called next is another name.
            standing.birth = standing.birth.take().map(|birth| birth.renamed(""));
            self.forgot(place, since_beginning(now), Quarantine::Emptied);
        }
        !is_known
    }

    /// An answer says which data a voter has; nothing where the mark is gone. If they are not those
    /// that it had, what it had is gone, and what it says from now on counts as if it were new.
    /// Whether that is news: while there is no mark nobody knows whether they are deleted again.
    pub fn has_others(&mut self, place: Place, data: &str, now: Moment) -> bool {
        let standing = self.standing_mut(place);
        let Some(known) = standing.birth.take() else { return false };
        let is_same = known.data() == data && !data.is_empty();
        if is_same || crate::mutant!("deleted_data_not_noticed") {
            standing.birth = Some(known);
            return false;
        }
        standing.birth = Some(known.renamed(data));
        standing.is_shared = false;
        let why = standing.why_others(&known);
        self.forgot(place, since_beginning(now), why);
        !known.data().is_empty()
    }

    /// What one shard of a voter had another has now; where it was `lost` on the way, the other
    /// knows nothing of it, though it is the server that it was. From a shard to itself: another
    /// server has it.
    pub fn moved(&mut self, from: Place, to: Place, lost: bool, now: Moment) {
        let suspected = self.suspected(from);
        if from == to {
            // Its clock is another one, too.
            self.standing_mut(to).clock = None;
        }
        if lost {
            let at = since_beginning(now) + nanos(self.standing_mut(to).overlap);
            self.forgot(to, at, Quarantine::Restarted);
            return;
        }
        if let Some((at, why)) = suspected {
            self.forgot(to, at, why);
        }
        // What the first forgot before that may come to light later.
        let longest = self.suspicion.longest;
        self.moves.retain(|(_, _, at)| now.since(*at) < longest);
        self.moves.push((from, to, now));
    }

    fn forgot(&mut self, place: Place, at: Nanos, why: Quarantine) {
        let standing = self.standing_mut(place);
        if standing.forgot.is_none_or(|(known, _)| known < at) {
            standing.forgot = Some((at, why));
        }
    }

    /// What a voter's clock showed.
    pub fn stamped(&mut self, place: Place, stamp: Stamp) -> Shown {
        let Suspicion { drift, longest, .. } = self.suspicion;
        let standing = self.standing_mut(place);
        let Some(course) = &mut standing.clock else {
            standing.clock = Some(ClockCourse::begin(stamp));
            self.compare_clocks(stamp.answered);
            return Shown::Expected;
        };
        let Some(moved) = course.goes_on(stamp, drift, longest) else { return Shown::Expected };
        let step = course.step;
        standing.has_shown = false;
        standing.forgot_before_step = standing.forgot;
        let seen = since_beginning(stamp.answered);
        if !crate::mutant!("clock_jump_not_noticed") {
            standing.forgot = Some((seen, Quarantine::ClockMoved(moved)));
        }
        step.and_then(|step| self.find_pause(place, step)).map_or(Shown::Moved, Shown::StoodStill)
    }

    /// Where a majority of the voters shows one step, the client stood still. For how long, unless
    /// that was known: then this is one more server that shows it.
    fn find_pause(&mut self, place: Place, latest: PauseStep) -> Option<Duration> {
        let known = self.pause.filter(|known| known.meet(latest).is_some());
        let standing = self.standing_mut(place);
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

    /// Whether, and why, the voter's grants to requests of that moment do not count for new holds.
    /// When they are heard says nothing: a slow answer may be one that was given in quarantine, by
    /// a voter that has forgotten again since.
    pub fn kept_out(&self, place: Place, sent: Moment) -> Option<KeptOut> {
        if self.suspicion.guard == RestartGuard::Off {
            return None;
        }
        let (forgot, why) = self.suspected(place)?;
        let longest = match self.suspicion.longest {
            longest if crate::mutant!("quarantine_of_half_the_length") => longest / 2,
            longest => longest,
        };
        let left = forgot + nanos(longest) - since_beginning(sent);
        let forgot = Moment::BEGINNING + length(forgot);
        (left > 0).then(|| KeptOut::new(why, length(left), forgot))
    }

    /// The same of that shard of a voter which is kept out for longest.
    pub fn kept_out_longest(&self, voter: usize, sent: Moment) -> Option<KeptOut> {
        let shards = 0..self.voters[voter].len();
        let kept_out = shards.filter_map(|shard| self.kept_out(Place { voter, shard }, sent));
        kept_out.max_by_key(|kept_out| kept_out.quarantined.left)
    }

    fn suspected(&self, place: Place) -> Option<(Nanos, Quarantine)> {
        let standing = self.standing(place)?;
        let reasons = [standing.apart(), self.young(standing), standing.forgot];
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

    /// Whether a voter may have had votes before its start: others have run for longer. That all
    /// started together is believed only where none has run for as long as a lease lasts, and none
    /// has what it had before.
    fn young(&self, standing: &Standing) -> Option<(Nanos, Quarantine)> {
        let start = standing.first_met.filter(|start| !start.durable)?;
        let starts = self.standings().filter_map(|standing| standing.first_met);
        // A server may say that it is older than clients know the others to be.
        let mut comparable = starts.filter(|other| other.marked || !start.marked);
        // Whoever marks a majority is the first client of these, however long that takes it. Those
        // that others have marked before may have given votes since, with one that came back empty.
        let by_start = !start.marked || self.quorum.reached(|voter| self.is_new(voter));
        let is_later = comparable.any(|other| {
            let by_start = by_start && (!start.marked || other.is_new());
            let together = if by_start { Self::TOGETHER } else { Self::MARKED_TOGETHER };
            let long_ago = other.age >= self.suspicion.longest;
            start.at > other.at + nanos(together) || long_ago || other.durable
        });
        (is_later || self.suspicion.guard == RestartGuard::Strict)
            .then_some((start.at + nanos(start.overlap), Quarantine::Young))
    }

    /// Whether this client was the first that met the voter.
    fn is_new(&self, voter: usize) -> bool {
        let mut starts = self.voters[voter].iter().filter_map(|standing| standing.first_met);
        starts.any(Start::is_new)
    }

    /// Finds those that are apart where the clocks of a majority are together, now that one of them
    /// was measured for the first time. The others have gone on since they were. Where no majority
    /// is together yet, all are doubtful that are apart from any other.
    fn compare_clocks(&mut self, now: Moment) {
        let Suspicion { drift, longest, .. } = self.suspicion;
        let by_now = |course: &ClockCourse| course.by(now, drift, longest);
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

impl Start {
    /// Whether this client marked it.
    fn is_new(self) -> bool {
        self.marked && self.age.is_zero()
    }
}

impl Life {
    fn new(run_id: &str, durable: bool, since: Moment) -> Self {
        Self { run_id: run_id.into(), durable, since, is_there: true }
    }

    fn server(&self) -> &str {
        server(&self.run_id)
    }
}

impl Standing {
    fn apart(&self) -> Option<(Nanos, Quarantine)> {
        let ClockCourse { since, apart, doubtful, .. } = self.clock?;
        Some((since_beginning(since), Quarantine::ClockApart(apart.or(doubtful)?)))
    }

    /// Why it has forgotten where it has other data than `before`.
    fn why_others(&self, before: &Birth) -> Quarantine {
        let renamed = self.birth.as_ref().and_then(|birth| birth.names().1);
        match self.forgot {
            Some((_, Quarantine::Copied)) if renamed == Some(before.names().0) => {
                Quarantine::Copied
            }
            _ => Quarantine::Emptied,
        }
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

/// What stays of a run id from one promotion of the server to the next.
fn server(run_id: &str) -> &str {
    run_id.split_once('/').map_or(run_id, |(server, _)| server)
}

// Voters that are one server.

impl Register {
    /// Whose server this voter has come to, if that is another's: it has no vote of its own there.
    pub fn twin(&self, place: Place) -> Option<usize> {
        self.twins.iter().find(|(twin, _)| *twin == place).map(|(_, other)| *other)
    }

    /// Whether two voters are parts of one cluster in different sets: other keys, and so other
    /// votes, though they may be on one server.
    pub fn are_apart(&self, one: usize, other: usize) -> bool {
        let sides = [one, other].map(|voter| self.quorum.side(voter));
        let share_a_set = matches!(sides, [Some(one), Some(other)] if one == other)
            || sides.iter().any(|side| matches!(side, None | Some(Side::Both)));
        self.clusters[one] == self.clusters[other] && !share_a_set
    }

    /// Looks for voters that are one server. Who comes to another's or leaves it, or has it alone
    /// from then on, counts as one that has forgotten: the server does not know the votes that the
    /// voter gave before, and what it granted to the other is not to be counted a second time.
    fn compare_servers(&mut self, now: Moment) {
        let after = self.find_twins();
        let before = std::mem::replace(&mut self.twins, after.clone());
        let left = before.iter().filter(|twin| !after.contains(twin));
        for (place, _) in after.iter().filter(|twin| !before.contains(twin)).chain(left) {
            self.forgot(*place, since_beginning(now), Quarantine::Restarted);
        }
    }

    fn find_twins(&self) -> Vec<(Place, usize)> {
        let places =
            self.voters.iter().enumerate().flat_map(|(voter, shards)| {
                (0..shards.len()).map(move |shard| Place { voter, shard })
            });
        let life = |place| Some((place, self.standing(place)?.life.as_ref()?));
        let lives: Vec<(Place, &Life)> = places.filter_map(life).collect();
        let first = |(place, life): &(Place, &Life)| {
            let same = lives.iter().filter(|(other, theirs)| {
                self.clusters[other.voter] != self.clusters[place.voter]
                    && theirs.server() == life.server()
                    && (theirs.since, *other) < (life.since, *place)
            });
            let first = same.min_by_key(|(other, theirs)| (theirs.since, *other));
            first.map(|(other, _)| (*place, other.voter))
        };
        lives.iter().filter_map(first).collect()
    }
}
