//! The comparison of the voter configuration: which voter a client asks when, what it says, and
//! what follows from the answers.
//!
//! The first comparison only reads. A client stores its configuration once a majority of each set
//! answered lately and nobody contradicts.
// So a client that is refused leaves nothing behind: other clients are not refused because of it.
// And a client of both sets that does not reach the new voters says nothing to the old ones: it
// does not know what the clients of the new voters believe.

use std::{mem, sync::Arc, time::Duration};

use super::{
    Cause, Change, ConfigurationEntry, Gauge, Moment, Quorum, Rounded, Verdict, VoterConfiguration,
};

/// The time from one comparison with a voter to the next.
const INTERVAL: Duration = Duration::from_secs(15);
/// The same if the voter did not answer.
const AGAIN: Duration = Duration::from_millis(500);
// A majority is enough to connect, but the voter that is still silent may know clients with another
// configuration.
/// How long a client that connects waits for a connected voter that is silent.
const PATIENCE: Duration = Duration::from_secs(1);
// A client is there for up to an interval after it said so, and what it said reaches the clients of
// other voters by two more comparisons. If entries ended sooner, a client could connect to voters
// that others still use.
/// How much longer than a lease an entry counts.
const LATE: Duration = INTERVAL.saturating_mul(3);

/// The comparison with all voters.
#[derive(Debug)]
pub struct Comparison {
    quorum: Quorum,
    configuration: VoterConfiguration,
    voters: Vec<ComparedVoter>,
    progress: Progress,
    /// Whether a majority was read before this client stored anything.
    has_looked: bool,
}

/// How far a client has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// It compares with nobody, and counts all voters.
    Apart,
    /// It connects, since this moment. From here on only voters count that it has compared with.
    Joining(Moment),
    /// Its time is over, and it waits for the answers that are still to come.
    Late(Moment),
    Joined,
    Closed,
}

/// The comparison with one voter.
#[derive(Debug, Default)]
struct ComparedVoter {
    // The entries are on one server of the cluster. If that is down, the other servers would have
    // no vote, so a part of a cluster counts without a comparison.
    /// Whether it is a part of a cluster.
    is_spread: bool,
    /// When it is asked next.
    due: Moment,
    /// How many connections to it there have been.
    connections: u64,
    /// How many there had been when it was last asked.
    asked_on: u64,
    // By connection, and not by time: behind each new connection may be another server, with other
    // clients (`a_voter_counts_for_new_holds_once_it_has_compared_on_its_connection_..`).
    /// On which connection it stored this client's configuration, and nobody contradicted.
    compared_on: Option<u64>,
    is_asked: bool,
    /// Whether the last question had this client's configuration.
    is_told: bool,
    /// Its last answer.
    heard: Option<(Moment, Vec<ConfigurationEntry>)>,
    /// Why it has not answered since.
    silent: Option<Cause>,
    /// The explanation, if its clients have a configuration that clashes with this one.
    clash: Option<Arc<str>>,
}

/// A question for one voter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigurationQuestion {
    pub voter: usize,
    /// Whether the voter is to store this client's configuration, if nobody contradicts.
    pub tells: bool,
    /// The entries of other voters, if this voter may have other clients.
    pub heard: String,
}

/// What a client that connects does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JoinNext {
    /// Ask again: from now on it sends its configuration.
    Ask,
    /// Wait for an answer or a new connection, until this moment at most.
    Wait(Option<Moment>),
    /// It is connected.
    Joined,
    /// Clients of a voter have another configuration.
    Refused(Arc<str>),
    /// Too few voters were compared in time.
    Failed(Vec<Verdict>),
}

impl Comparison {
    /// `spread`: which voters are parts of a cluster.
    pub fn new(configuration: VoterConfiguration, quorum: Quorum, spread: Vec<bool>) -> Self {
        let voter = |is_spread| ComparedVoter { is_spread, ..ComparedVoter::default() };
        let voters = spread.into_iter().map(voter).collect();
        Self { quorum, configuration, voters, progress: Progress::Apart, has_looked: false }
    }

    pub fn configuration(&self) -> VoterConfiguration {
        self.configuration
    }

    /// How long others must agree with this client after it was there.
    pub fn counts(&self) -> Duration {
        self.configuration.longest_lease + LATE
    }

    /// From now on this client compares, and only voters count that it has compared with.
    pub fn begin(&mut self, now: Moment) {
        self.progress = Progress::Joining(now);
    }

    /// There is a new connection to a voter. Other clients may have come meanwhile, or it is
    /// another server.
    pub fn note_connection(&mut self, voter: usize) {
        self.voters[voter].connections += 1;
    }

    /// The questions for the voters whose turn it is, or that have a new connection.
    pub fn ask(&mut self, now: Moment) -> Vec<ConfigurationQuestion> {
        match self.progress {
            Progress::Apart | Progress::Late(_) | Progress::Closed => return Vec::new(),
            Progress::Joining(_) => {}
            Progress::Joined => self.has_looked |= self.reaches(now),
        }
        // A client that disagrees must not store what it believes: the others would be refused.
        let tells = self.has_looked && self.mismatch().is_none() && self.reaches(now);
        let mut questions = Vec::new();
        for voter in 0..self.voters.len() {
            let it = &self.voters[voter];
            let is_new = it.asked_on != it.connections;
            let is_urgent = is_new || tells && !it.is_told && it.silent.is_none();
            if it.is_asked || now < it.due && !is_urgent {
                continue;
            }
            questions.push(ConfigurationQuestion { voter, tells, heard: self.carried(voter, now) });
            let it = &mut self.voters[voter];
            (it.is_asked, it.is_told, it.asked_on) = (true, tells, it.connections);
        }
        questions
    }

    /// When the next voter is to be asked.
    pub fn due(&self) -> Option<Moment> {
        let asks = !matches!(self.progress, Progress::Late(_));
        let waiting = self.voters.iter().filter(|voter| asks && !voter.is_asked);
        waiting.map(|voter| voter.due).min()
    }

    /// A voter has answered, or failed to. What the log is to say of that. `label`: the voter's
    /// name in messages.
    pub fn note_answer(
        &mut self,
        voter: usize,
        label: &str,
        entries: Result<Vec<ConfigurationEntry>, Cause>,
        now: Moment,
    ) -> Option<Change> {
        let it = &mut self.voters[voter];
        it.is_asked = false;
        let entries = match entries {
            Ok(_) if self.progress == Progress::Closed => return None,
            Ok(entries) => entries,
            Err(cause) => {
                (it.due, it.is_told, it.silent) = (now + AGAIN, false, Some(cause));
                return None;
            }
        };
        let clash = entries.iter().find(|entry| entry.clashes);
        let why: Option<Arc<str>> = clash.map(|entry| self.explain(label, entry).into());
        let it = &mut self.voters[voter];
        it.compared_on = Some(it.asked_on).filter(|_| it.is_told && why.is_none());
        (it.due, it.heard, it.silent) = (now + INTERVAL, Some((now, entries)), None);
        let before = mem::replace(&mut it.clash, why.clone());
        (before.is_some() != why.is_some()).then_some(Change::Clash { voter, why })
    }

    /// What a client that connects does next. It has until `due`. To be called after each answer
    /// and each new connection, once all voters were [asked](Self::ask) whose turn it is.
    pub fn join(&mut self, now: Moment, due: Moment) -> JoinNext {
        let (Progress::Joining(started) | Progress::Late(started)) = self.progress else {
            return JoinNext::Joined;
        };
        if let Some(why) = self.mismatch() {
            return JoinNext::Refused(why);
        }
        let is_over = now >= due;
        let joining = Progress::Joining(started);
        self.progress = if is_over { Progress::Late(started) } else { joining };
        let is_patient = !is_over && now.since(started) < PATIENCE;
        let is_idle = self.voters.iter().all(|voter| !voter.is_asked);
        if is_idle && !(is_patient && self.is_unclear()) {
            // The first read is complete. Only now this client stores its configuration. A voter of
            // a cluster counts without that, so a majority may agree before.
            if !self.has_looked && self.reaches(now) {
                (self.has_looked, self.progress) = (true, joining);
                return JoinNext::Ask;
            }
            if self.quorum.reached(|voter| self.apart(voter).is_none()) {
                self.progress = Progress::Joined;
                return JoinNext::Joined;
            }
            if is_over {
                return JoinNext::Failed(self.verdicts());
            }
        }
        let limit = (!is_over).then_some(due);
        JoinNext::Wait(self.due().into_iter().chain(limit).min())
    }

    /// Why a voter does not count, if its clients have another configuration or were not compared.
    pub fn apart(&self, voter: usize) -> Option<Arc<str>> {
        let it = &self.voters[voter];
        let is_compared = it.is_spread || it.compared_on == Some(it.connections);
        let unknown = self.progress != Progress::Apart && !is_compared;
        let unknown = unknown.then(|| "not yet compared with its other clients".into());
        // A mismatch at one voter is one at all: the client has the wrong voters, and not only
        // there.
        self.mismatch().or(unknown)
    }

    /// The explanation of a clash with the clients of any voter.
    pub fn mismatch(&self) -> Option<Arc<str>> {
        self.voters.iter().find_map(|voter| voter.clash.clone())
    }

    /// The client is closed. What the metrics are to say of that.
    pub fn retire(&mut self) -> Vec<Change> {
        if self.progress != Progress::Apart {
            self.progress = Progress::Closed;
        }
        let (gauge, is_counted) = (Gauge::ConfigurationMismatch, false);
        let changes = self.voters.iter_mut().enumerate().filter_map(|(voter, it)| {
            it.clash.take()?;
            Some(Change::Counted { voter, gauge, is_counted })
        });
        changes.collect()
    }

    /// Whether a majority of each set has answered lately.
    fn reaches(&self, now: Moment) -> bool {
        let is_late = |(at, _): &(Moment, _)| now.since(*at) > INTERVAL * 2;
        self.quorum
            .reached(|voter| self.voters[voter].heard.as_ref().is_some_and(|it| !is_late(it)))
    }

    /// Whether a connected voter did not answer. Its clients may have another configuration.
    fn is_unclear(&self) -> bool {
        self.voters.iter().any(|voter| {
            let is_silent = matches!(voter.silent, Some(Cause::TimedOut(_) | Cause::Broken(_)));
            is_silent && voter.asked_on > 0
        })
    }

    /// The entries of other voters, for a voter that may have other clients.
    fn carried(&self, to: usize, now: Moment) -> String {
        // Only a client of both sets knows two circles of clients. Without this, clients of the old
        // voters alone and of the new voters alone would never hear of each other.
        let others = self.voters.iter().enumerate();
        let others = others.filter(|(voter, _)| *voter != to && self.quorum.is_joint());
        let heard = others.filter_map(|(_, voter)| voter.heard.as_ref());
        heard
            .flat_map(|(at, entries)| entries.iter().map(|entry| entry.told(now.since(*at))))
            .collect()
    }

    fn verdicts(&self) -> Vec<Verdict> {
        let verdict = |voter: &ComparedVoter| match &voter.silent {
            Some(cause) => Verdict::Unknown(cause.clone()),
            None => Verdict::Reached,
        };
        self.voters.iter().map(verdict).collect()
    }

    /// The configuration of both sides, and what to do.
    fn explain(&self, voter: &str, other: &ConfigurationEntry) -> String {
        let (mine, theirs) = (self.configuration, other.configuration());
        let VoterConfiguration { number, voters, replaced, .. } = theirs.unwrap_or_default();
        let advice = if theirs != Some(VoterConfiguration { number, voters, replaced, ..mine }) {
            "all clients need the same longest lease, drift and restart guard, and releases with \
             the same records"
        } else if mine.number.abs_diff(number) <= 1 && mine.voters != voters {
            "all clients must have the same voters; to change them, put clients in between that \
             replace the old voters by the new"
        } else {
            "all clients must have the voters of the same step, or of the next"
        };
        let is_ahead = theirs.is_some_and(|theirs| theirs.step() > mine.step() + 1);
        let back = if is_ahead { " and with clients in between that have both sets" } else { "" };
        let left = Rounded(self.counts().max(other.counts).saturating_sub(other.seen));
        format!(
            "configuration mismatch with other clients of voter {voter}: it has {mine}; others have \
             {other}; {advice}; this one is let in after {left} without the others{back}"
        )
    }
}

#[cfg(test)]
#[path = "comparison_tests.rs"]
mod tests;
