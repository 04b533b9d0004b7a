//! Whether the clients of the same voters agree about who these are: when a client asks which
//! voter, what it says then, and what follows from the answers.
//!
//! The first comparison only asks. A client says what it believes once a majority of each set of
//! voters was heard of late and nobody believes otherwise: so one that is refused leaves nothing
//! behind, and one of both sets that does not reach the new voters says nothing to the old ones.

use std::{mem, sync::Arc, time::Duration};

use super::{
    Cause, Change, ConfigurationEntry, Gauge, Moment, Quorum, Rounded, Verdict, VoterConfiguration,
};

/// Between two comparisons with a voter.
const INTERVAL: Duration = Duration::from_secs(15);
/// And where it did not answer.
const AGAIN: Duration = Duration::from_millis(500);
/// How long a client that connects waits for a voter beside a majority, if that one stands ready
/// and is silent.
const PATIENCE: Duration = Duration::from_secs(1);
/// How much later a client may hear that another one was there: it may be there for as long again
/// after it said so, and what it said is carried to other voters with two more comparisons.
const LATE: Duration = INTERVAL.saturating_mul(3);

/// What goes on with all voters.
#[derive(Debug)]
pub struct Comparison {
    quorum: Quorum,
    configuration: VoterConfiguration,
    voters: Vec<ComparedVoter>,
    progress: Progress,
    /// A majority was heard before anything was said: who is refused leaves nothing behind.
    has_looked: bool,
}

/// How far a client has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// It asks nobody, and counts all voters.
    Apart,
    /// It connects, since then. From here on only voters count that it has compared with.
    Joining(Moment),
    /// Its time is over: it waits for answers that are still to come.
    Late(Moment),
    Joined,
    Closed,
}

/// What goes on with one voter.
#[derive(Debug, Default)]
struct ComparedVoter {
    /// It is a part of a cluster, where what clients believe is on one of its servers: with that
    /// one down, the others would have no vote.
    is_spread: bool,
    /// When it is asked next.
    due: Moment,
    /// How many connections to it there have been, and had been when it was last asked.
    connections: u64,
    asked_on: u64,
    /// On which of them it was told what this client believes, and nobody believed otherwise.
    compared_on: Option<u64>,
    is_asked: bool,
    /// The last question said what this client believes.
    is_told: bool,
    /// What it had when it was last heard.
    heard: Option<(Moment, Vec<ConfigurationEntry>)>,
    /// Why it was not heard since.
    silent: Option<Cause>,
    /// What its clients believe that clashes with what this one does.
    clash: Option<Arc<str>>,
}

/// What a voter is to be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigurationQuestion {
    pub voter: usize,
    /// It is told what this client believes, and keeps it if that agrees with others.
    pub tells: bool,
    /// What other voters said, for one that may have other clients.
    pub heard: String,
}

/// What a client does that connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JoinNext {
    /// It asks again: from now on it says what it believes.
    Ask,
    /// It waits for an answer or a new connection, and no longer than until then.
    Wait(Option<Moment>),
    /// It is let in.
    Joined,
    /// Clients of a voter believe otherwise.
    Refused(Arc<str>),
    /// Too few voters were compared in time.
    Failed(Vec<Verdict>),
}

impl Comparison {
    /// `spread`: which voters are spread over the servers of a cluster.
    pub fn new(configuration: VoterConfiguration, quorum: Quorum, spread: Vec<bool>) -> Self {
        let voter = |is_spread| ComparedVoter { is_spread, ..ComparedVoter::default() };
        let voters = spread.into_iter().map(voter).collect();
        Self { quorum, configuration, voters, progress: Progress::Apart, has_looked: false }
    }

    pub fn configuration(&self) -> VoterConfiguration {
        self.configuration
    }

    /// For how long after this client was there others must agree with it.
    pub fn counts(&self) -> Duration {
        self.configuration.longest_lease + LATE
    }

    /// From now on this client compares, and only voters count that it has compared with.
    pub fn begin(&mut self, now: Moment) {
        self.progress = Progress::Joining(now);
    }

    /// There is a new connection to a voter: perhaps other clients have come meanwhile, or it is
    /// another server.
    pub fn note_connection(&mut self, voter: usize) {
        self.voters[voter].connections += 1;
    }

    /// The voters whose turn it is, and those with a new connection. They are told what this client
    /// believes unless its configuration differs.
    pub fn ask(&mut self, now: Moment) -> Vec<ConfigurationQuestion> {
        match self.progress {
            Progress::Apart | Progress::Late(_) | Progress::Closed => return Vec::new(),
            Progress::Joining(_) => {}
            Progress::Joined => self.has_looked |= self.reaches(now),
        }
        let tells = self.has_looked && self.mismatch().is_none() && self.reaches(now);
        let mut questions = Vec::new();
        for voter in 0..self.voters.len() {
            let it = &self.voters[voter];
            let is_new = it.asked_on != it.connections;
            let is_news = is_new || tells && !it.is_told && it.silent.is_none();
            if it.is_asked || now < it.due && !is_news {
                continue;
            }
            questions.push(ConfigurationQuestion { voter, tells, heard: self.carried(voter, now) });
            let it = &mut self.voters[voter];
            (it.is_asked, it.is_told, it.asked_on) = (true, tells, it.connections);
        }
        questions
    }

    /// When it is the next voter's turn to be asked.
    pub fn due(&self) -> Option<Moment> {
        let asks = !matches!(self.progress, Progress::Late(_));
        let waiting = self.voters.iter().filter(|voter| asks && !voter.is_asked);
        waiting.map(|voter| voter.due).min()
    }

    /// A voter, as the log calls it, has answered, or not. What is to be told of it.
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

    /// What a client does that connects, and has until `due` for that. To be asked for after each
    /// answer and each new connection, when all were [asked](Self::ask) whose turn it is.
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
            // Parts of a cluster are in step before this client says anything to them.
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

    /// Why a voter does not count, if it is because of what clients believe of the voters.
    pub fn apart(&self, voter: usize) -> Option<Arc<str>> {
        let it = &self.voters[voter];
        let is_compared = it.is_spread || it.compared_on == Some(it.connections);
        let unknown = self.progress != Progress::Apart && !is_compared;
        let unknown = unknown.then(|| "not yet compared with its other clients".into());
        self.mismatch().or(unknown)
    }

    /// What clients of any voter believe of the voters that clashes with what this one does.
    pub fn mismatch(&self) -> Option<Arc<str>> {
        self.voters.iter().find_map(|voter| voter.clash.clone())
    }

    /// The client is closed. What is to be told of that.
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

    /// Whether a majority was heard of late. A client of both sets whose new voters do not answer
    /// says nothing to the old ones: it does not know what clients of the new voters believe.
    fn reaches(&self, now: Moment) -> bool {
        let is_late = |(at, _): &(Moment, _)| now.since(*at) > INTERVAL * 2;
        self.quorum
            .reached(|voter| self.voters[voter].heard.as_ref().is_some_and(|it| !is_late(it)))
    }

    /// Whether a connected voter did not answer: perhaps its configuration clashes.
    fn is_unclear(&self) -> bool {
        self.voters.iter().any(|voter| {
            let is_silent = matches!(voter.silent, Some(Cause::TimedOut(_) | Cause::Broken(_)));
            is_silent && voter.asked_on > 0
        })
    }

    /// What other voters said, for one that may have other clients.
    fn carried(&self, to: usize, now: Moment) -> String {
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

    /// What each side believes, and what to do.
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
