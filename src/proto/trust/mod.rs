//! Which voters may have forgotten votes, by what this client has seen of them.

mod changes;
mod clocks;
mod data;

#[cfg(test)]
mod clock_tests;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use self::clocks::{ClockCourse, Nanos, PauseStep, length, nanos, since_beginning};
pub use self::{
    changes::{Change, Gauge, Trust, Wakes},
    clocks::{Shown, Stamp},
    data::{Birth, Data},
};
use super::{Cause, Drift, Moment, Quarantine, Quarantined, Quorum, RestartGuard, Side, Verdict};

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
pub struct Shard {
    pub voter: usize,
    pub number: usize,
}

/// Which server a voter is, and whether it may have forgotten.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Another value after every restart; equal for two addresses of one server.
    pub run_id: String,
    /// Which data it has, where that is known.
    pub birth: Option<Birth>,
    /// For how long at least it has had them, and has forgotten nothing of them; where there is no
    /// fingerprint, for how long it says that it has run.
    pub age: Duration,
    /// It writes every change to disk before it answers, so a restart forgets nothing
    /// (`appendonly yes` and `appendfsync always`).
    pub durable: bool,
    /// It took over from another server, whose grants some clients may have gone on counting for so
    /// long afterwards; zero where it is not known that it did.
    pub overlap: Duration,
    /// Why it takes no new votes, though it answers.
    pub refuses: Option<Arc<str>>,
    /// How much of its memory it uses, in thousandths, where that has a limit.
    pub memory: Option<u32>,
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
    twins: Vec<(Shard, usize)>,
    /// What has moved from one shard to another, and when that was seen; not for longer than the
    /// longest lease.
    moves: Vec<(Shard, Shard, Moment)>,
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
    /// By its fingerprint, and not by what the server says of itself.
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

    /// The server that [`note_server`](Self::note_server) is about took over from another, whose
    /// grants some clients may have gone on counting for so long. To be called before.
    pub fn note_overlap(&mut self, shard: Shard, overlap: Duration) {
        self.standing_mut(shard).overlap = overlap;
    }

    /// A new connection stands, and the server on it says who it is. `durable`: it forgets nothing
    /// by a restart. Whether it came back as another.
    pub fn note_server(
        &mut self,
        shard: Shard,
        run_id: &str,
        uptime: Duration,
        durable: bool,
        now: Moment,
    ) -> bool {
        let standing = self.standing_mut(shard);
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
            self.note_forgotten(shard, at, why);
            let longest = self.suspicion.longest;
            let heirs = self
                .moves
                .iter()
                .filter(|(from, _, moved)| *from == shard && now.since(*moved) < longest);
            for heir in heirs.map(|(_, to, _)| *to).collect::<Vec<_>>() {
                self.note_forgotten(heir, at, why);
            }
        }
        self.compare_servers(now);
        returned
    }

    /// The connection to a server has ended. Until it stands again nobody knows which server has
    /// the data that this one had.
    pub fn note_disconnect(&mut self, shard: Shard) {
        if let Some(life) = &mut self.standing_mut(shard).life {
            life.is_there = false;
        }
    }

    /// What one shard of a voter had another has now; where it was `lost` on the way, the other
    /// knows nothing of it, though it is the server that it was. From a shard to itself: another
    /// server has it.
    pub fn note_move(&mut self, from: Shard, to: Shard, lost: bool, now: Moment) {
        let suspected = self.suspected(from);
        if from == to {
            // Its clock is another one, too.
            self.standing_mut(to).clock = None;
        }
        if lost {
            let at = since_beginning(now) + nanos(self.standing_mut(to).overlap);
            self.note_forgotten(to, at, Quarantine::Restarted);
            return;
        }
        if let Some((at, why)) = suspected {
            self.note_forgotten(to, at, why);
        }
        // What the first forgot before that may come to light later.
        let longest = self.suspicion.longest;
        self.moves.retain(|(_, _, at)| now.since(*at) < longest);
        self.moves.push((from, to, now));
    }

    fn note_forgotten(&mut self, shard: Shard, at: Nanos, why: Quarantine) {
        let standing = self.standing_mut(shard);
        if standing.forgot.is_none_or(|(known, _)| known < at) {
            standing.forgot = Some((at, why));
        }
    }

    /// Whether, and why, the voter's grants to requests of that moment do not count for new holds.
    /// When they are heard says nothing: a slow answer may be one that was given in quarantine, by
    /// a voter that has forgotten again since.
    pub fn kept_out(&self, shard: Shard, sent: Moment) -> Option<KeptOut> {
        if self.suspicion.guard == RestartGuard::Off {
            return None;
        }
        let (forgot, why) = self.suspected(shard)?;
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
        let kept_out = shards.filter_map(|number| self.kept_out(Shard { voter, number }, sent));
        kept_out.max_by_key(|kept_out| kept_out.quarantined.left)
    }

    fn suspected(&self, shard: Shard) -> Option<(Nanos, Quarantine)> {
        let standing = self.standing(shard)?;
        let reasons = [standing.apart(), self.young(standing), standing.forgot];
        reasons.into_iter().flatten().max_by_key(|(forgot, _)| *forgot)
    }

    fn standing(&self, shard: Shard) -> Option<&Standing> {
        self.voters[shard.voter].get(shard.number)
    }

    fn standing_mut(&mut self, Shard { voter, number }: Shard) -> &mut Standing {
        let shards = &mut self.voters[voter];
        if shards.len() <= number {
            shards.resize(number + 1, Standing::default());
        }
        &mut shards[number]
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
        // Whoever leaves its fingerprint on a majority is the first client of these, however long
        // that takes it. Those that others have marked before may have given votes since, with one
        // that came back empty.
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

/// What stays of a run id from one promotion of the server to the next.
fn server(run_id: &str) -> &str {
    run_id.split_once('/').map_or(run_id, |(server, _)| server)
}

// Voters that are one server.

impl Register {
    /// Whose server this voter has come to, if that is another's: it has no vote of its own there.
    pub fn twin(&self, shard: Shard) -> Option<usize> {
        self.twins.iter().find(|(twin, _)| *twin == shard).map(|(_, other)| *other)
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
        for (shard, _) in after.iter().filter(|twin| !before.contains(twin)).chain(left) {
            self.note_forgotten(*shard, since_beginning(now), Quarantine::Restarted);
        }
    }

    fn find_twins(&self) -> Vec<(Shard, usize)> {
        let all = self.voters.iter().enumerate().flat_map(|(voter, shards)| {
            (0..shards.len()).map(move |number| Shard { voter, number })
        });
        let life = |shard| Some((shard, self.standing(shard)?.life.as_ref()?));
        let lives: Vec<(Shard, &Life)> = all.filter_map(life).collect();
        let first = |(shard, life): &(Shard, &Life)| {
            let same = lives.iter().filter(|(other, theirs)| {
                self.clusters[other.voter] != self.clusters[shard.voter]
                    && theirs.server() == life.server()
                    && (theirs.since, *other) < (life.since, *shard)
            });
            let first = same.min_by_key(|(other, theirs)| (theirs.since, *other));
            first.map(|(other, _)| (*shard, other.voter))
        };
        lives.iter().filter_map(first).collect()
    }
}
