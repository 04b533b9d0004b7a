//! Which voters may have forgotten votes, by what this client has observed.

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

/// The settings for quarantines.
#[derive(Clone, Copy, Debug)]
pub struct Suspicion {
    pub guard: RestartGuard,
    // The model of holds finds that one tick less than the validity is too short, and the lease of
    // another client may be as long as this.
    /// The longest lease of any client, and the length of a quarantine.
    pub longest: Duration,
    pub drift: Drift,
}

/// A voter's quarantine, and when it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardQuarantine {
    pub quarantined: Quarantined,
    // It may lie ahead: after a failover, clients that are cut off with the old server may still
    // get votes from it.
    /// From this moment on, nobody counts a vote that the voter may have forgotten.
    pub forgot: Moment,
}

impl ShardQuarantine {
    pub fn new(why: Quarantine, left: Duration, forgot: Moment) -> Self {
        Self { quarantined: Quarantined { why, left }, forgot }
    }

    /// The verdict in place of a grant.
    pub fn verdict(self) -> Verdict {
        Verdict::Unknown(Cause::Quarantined(self.quarantined))
    }
}

/// A part of a voter that forgets as a whole. A voter has one, unless it is a part of a cluster
/// with several servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shard {
    pub voter: usize,
    pub number: usize,
}

/// What a server says about itself on a new connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Another value after every restart. The same for all addresses of one server.
    pub run_id: String,
    /// Its fingerprint, if there is one.
    pub birth: Option<Birth>,
    /// How long at least its data have lost nothing. Without a fingerprint: its uptime.
    pub age: Duration,
    /// Whether it writes every change to disk before it answers, so that a restart forgets nothing.
    pub durable: bool,
    /// How long some clients may still count the grants of the server that it took over from. Zero
    /// if it took over from none.
    pub overlap: Duration,
    /// Why it takes no new votes, although it answers.
    pub refuses: Option<Arc<str>>,
    /// How much of its memory it uses, in thousandths, if there is a limit.
    pub memory: Option<u32>,
}

/// All that this client has observed of its voters.
#[derive(Debug)]
pub struct Register {
    suspicion: Suspicion,
    quorum: Quorum,
    /// The shards of each voter.
    voters: Vec<Vec<Standing>>,
    /// The cluster of each voter. Voters of one cluster may share servers.
    clusters: Vec<usize>,
    /// The shards that came to the server of another voter, and that voter.
    twins: Vec<(Shard, usize)>,
    /// The slots that moved from one shard to another within a longest lease, and when.
    moves: Vec<(Shard, Shard, Moment)>,
    /// The latest pause of this client.
    pause: Option<PauseStep>,
}

/// What this client has observed of one shard.
#[derive(Clone, Debug, Default)]
struct Standing {
    life: Option<Life>,
    birth: Option<Birth>,
    /// Whether another voter had the same data, in this life of the server.
    is_shared: bool,
    first_start: Option<Start>,
    forgot: Option<(Nanos, Quarantine)>,
    // If the step turns out to be a pause of this client, the quarantine for it is taken back, and
    // an earlier one must go on.
    /// The value of `forgot` before the clock's latest step.
    forgot_before_step: Option<(Nanos, Quarantine)>,
    /// How long its predecessor's grants may have counted after the server took over.
    overlap: Duration,
    clock: Option<ClockCourse>,
    /// Whether its latest step was a pause of this client.
    has_shown: bool,
    /// Whether it has not shown this client's latest pause yet.
    is_behind: bool,
}

/// One life of a server, between two starts.
#[derive(Clone, Debug)]
struct Life {
    run_id: String,
    durable: bool,
    /// Since when the voter is this server, as far as this client knows.
    since: Moment,
    /// Whether it is connected.
    is_there: bool,
}

/// What a voter said of its start when this client first saw it.
// Kept as it was then. A restart of another voter ended a quarantine once, and so did `CONFIG SET`
// of a voter that had forgotten: what counts is what might have been forgotten before (`44a6e7a7`).
#[derive(Clone, Copy, Debug)]
struct Start {
    /// It started at this moment or earlier.
    at: Nanos,
    /// Whether it forgets nothing by a restart, as it says.
    durable: bool,
    /// The overlap of its standing.
    overlap: Duration,
    /// How long clients had known it. Zero if this client is the first.
    age: Duration,
    /// Whether that is from its fingerprint, and not from its uptime.
    marked: bool,
}

impl Register {
    /// Servers that are started together start within this time.
    const TOGETHER: Duration = Duration::from_secs(5);

    // Shorter, as clients mark all voters at once. Within five seconds of the first client, a voter
    // could give a vote, come back empty, and count for clients that connect then (`139c347a`).
    /// Voters that are started together are marked by another client within this time.
    const MARKED_TOGETHER: Duration = Duration::from_secs(1);

    /// `clusters`: a number for each voter, the same for all voters of one cluster.
    pub fn new(clusters: Vec<usize>, quorum: Quorum, suspicion: Suspicion) -> Self {
        let voters = vec![vec![Standing::default()]; clusters.len()];
        let (twins, moves) = (Vec::new(), Vec::new());
        Self { suspicion, quorum, voters, clusters, twins, moves, pause: None }
    }

    /// Some clients may still count the grants of the server that this one took over from. To be
    /// called before [`note_server`](Self::note_server).
    pub fn note_overlap(&mut self, shard: Shard, overlap: Duration) {
        self.standing_mut(shard).overlap = overlap;
    }

    /// The server on a new connection says who it is. `durable`: it forgets nothing by a restart.
    /// Whether it came back as another.
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
        let life = Life { run_id: run_id.into(), durable, since, is_there: true };
        let before = standing.life.replace(life);
        let returned = before.as_ref().is_some_and(|before| before.run_id != run_id);
        if before.is_none() {
            let (at, age, marked) = (since_beginning(now) - nanos(uptime), uptime, false);
            standing.first_start = Some(Start { at, durable, overlap, age, marked });
        }
        if returned && crate::mutant!("clock_is_met_anew") {
            standing.clock = None;
        }
        // Before and now: settings of now say nothing about the file that the server started with.
        let is_durable = durable && before.is_some_and(|before| before.durable);
        if returned && !is_durable && !crate::mutant!("restart_not_noticed") {
            // From now, although the start was earlier: the uptime goes by a clock that may be set
            // after the start (`0f5306eb`).
            let (at, why) = (since_beginning(now) + nanos(overlap), Quarantine::Restarted);
            self.note_forgotten(shard, at, why);
            // Slots that moved away within a longest lease took along what was forgotten here.
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

    /// The connection to a server has ended. Until there is a new one, nobody knows which server
    /// has its data.
    pub fn note_disconnect(&mut self, shard: Shard) {
        if let Some(life) = &mut self.standing_mut(shard).life {
            life.is_there = false;
        }
    }

    /// Slots have moved from one shard of a voter to another; to itself if another server took
    /// over. `lost`: their data were lost on the way.
    pub fn note_move(&mut self, from: Shard, to: Shard, lost: bool, now: Moment) {
        let suspected = self.suspected(from);
        if from == to {
            // Another server has another clock: the old course would take it for one that moved.
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
        // The client may learn later that the first shard had forgotten before.
        let longest = self.suspicion.longest;
        self.moves.retain(|(_, _, at)| now.since(*at) < longest);
        self.moves.push((from, to, now));
    }

    fn note_forgotten(&mut self, shard: Shard, at: Nanos, why: Quarantine) {
        let standing = self.standing_mut(shard);
        // The later one lasts longer. An earlier one must not shorten it.
        if standing.forgot.is_none_or(|(known, _)| known < at) {
            standing.forgot = Some((at, why));
        }
    }

    /// The quarantine in which grants to requests of that moment do not count for new holds.
    pub fn quarantine(&self, shard: Shard, sent: Moment) -> Option<ShardQuarantine> {
        if self.suspicion.guard == RestartGuard::Off {
            return None;
        }
        let (forgot, why) = self.suspected(shard)?;
        let longest = match self.suspicion.longest {
            longest if crate::mutant!("quarantine_of_half_the_length") => longest / 2,
            longest => longest,
        };
        // By when the request left, and not by when the answer came: a slow answer may have been
        // given in the quarantine, by a voter that has forgotten again since (model of holds).
        let left = forgot + nanos(longest) - since_beginning(sent);
        let forgot = Moment::BEGINNING + length(forgot);
        (left > 0).then(|| ShardQuarantine::new(why, length(left), forgot))
    }

    /// The longest quarantine of any shard of a voter.
    pub fn longest_quarantine(&self, voter: usize, sent: Moment) -> Option<ShardQuarantine> {
        let shards = 0..self.voters[voter].len();
        let quarantine = shards.filter_map(|number| self.quarantine(Shard { voter, number }, sent));
        quarantine.max_by_key(|quarantine| quarantine.quarantined.left)
    }

    fn suspected(&self, shard: Shard) -> Option<(Nanos, Quarantine)> {
        let standing = self.standing(shard)?;
        // The latest reason lasts the longest.
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

    /// Whether a voter may have forgotten votes at its start, because others have run for longer.
    fn young(&self, standing: &Standing) -> Option<(Nanos, Quarantine)> {
        // That all voters started together is believed only if none has run for a whole lease, and
        // none has kept its data. Otherwise a hold may be older than this voter.
        let start = standing.first_start.filter(|start| !start.durable)?;
        let starts = self.standings().filter_map(|standing| standing.first_start);
        // The uptime of a server may be longer than the time for which clients know the others.
        let mut comparable = starts.filter(|other| other.marked || !start.marked);
        // A client that marked a majority is their first client, however long that took: there is
        // no older hold. Voters that others marked before may have given votes since then, together
        // with one that came back empty (`1aa30c6d`).
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

    /// Whether this client marked the voter.
    fn is_new(&self, voter: usize) -> bool {
        let mut starts = self.voters[voter].iter().filter_map(|standing| standing.first_start);
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
    fn server(&self) -> &str {
        server(&self.run_id)
    }
}

/// The part of a run id that a promotion of the server does not change.
fn server(run_id: &str) -> &str {
    run_id.split_once('/').map_or(run_id, |(server, _)| server)
}

// Voters that are one server.

impl Register {
    /// The other voter that had this server first, if there is one. Then this voter has no vote.
    pub fn twin(&self, shard: Shard) -> Option<usize> {
        self.twins.iter().find(|(twin, _)| *twin == shard).map(|(_, other)| *other)
    }

    /// Whether two voters are parts of one cluster in different sets. They have other keys, and so
    /// other votes, even on one server.
    pub fn are_apart(&self, one: usize, other: usize) -> bool {
        let sides = [one, other].map(|voter| self.quorum.side(voter));
        let share_a_set = matches!(sides, [Some(one), Some(other)] if one == other)
            || sides.iter().any(|side| matches!(side, None | Some(Side::Both)));
        self.clusters[one] == self.clusters[other] && !share_a_set
    }

    /// Looks for voters that are one server.
    // When a voter becomes or ceases to be a twin, it is in quarantine: the server does not know
    // the votes that this voter gave elsewhere, and has granted to the other what it would be asked
    // for.
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
            // The voter that had the server first keeps its vote, as holds may rely on it.
            let first = same.min_by_key(|(other, theirs)| (theirs.since, *other));
            first.map(|(other, _)| (*shard, other.voter))
        };
        lives.iter().filter_map(first).collect()
    }
}
