//! What the log and the metrics are to say of the voters: each change once, and in order.

use std::{
    collections::{BTreeSet, VecDeque},
    mem,
    sync::Arc,
    time::Duration,
};

use super::{Data, Identity, Register, Shard, Shown, Stamp, Suspicion};
use crate::proto::{Moment, Quarantined, Quorum};

/// A change for the log or the metrics.
// Values in a queue, and no calls of the log: whoever notes a change has a mutex, and a log that
// blocks under it would stop all answers (`no_answer_waits_for_the_log`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A new connection. `ends_trouble`: the log has said that there was none.
    Connected { shard: Shard, run_id: String, age: Duration, ends_trouble: bool },
    /// A connection has ended. With the reason, unless this client ended it.
    Disconnected { shard: Shard, why: Option<String> },
    /// The connected voters became a majority, or ceased to be one.
    Quorum { is_there: bool, missing: Vec<usize> },
    /// A voter came back with another server or other data.
    CameBack { voter: usize, durable: bool, data: Data },
    /// A voter became the same server as another, or ceased to be.
    Twin { voter: usize, twin: Option<usize> },
    /// Why a shard takes no new votes; `None` if it takes them again.
    Refuses { shard: Shard, why: Option<Arc<str>> },
    /// Slots of a voter moved. `lost`: their data were lost on the way.
    Moved { from: Shard, to: Shard, lost: bool },
    /// The clocks of a majority showed that this client stood still for so long.
    StoodStill(Duration),
    /// For the log: a voter is in quarantine, for a new reason or since before the log began.
    Quarantined { voter: usize, quarantined: Quarantined },
    /// For the metrics: a quarantine began, for a reason that it did not have before.
    QuarantineBegan { voter: usize, reason: &'static str },
    /// A quarantine ended.
    QuarantineEnded { voter: usize },
    /// The clients of a voter have a configuration that clashes; `None` if they agree again.
    Clash { voter: usize, why: Option<Arc<str>> },
    /// This client begins or ceases to count a voter in a gauge.
    Counted { voter: usize, gauge: Gauge, is_counted: bool },
}

/// A gauge in which each client counts voters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gauge {
    Clients,
    Quarantined,
    Refusing,
    ConfigurationMismatch,
}

/// The tasks to wake at once, without waiting for the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wakes {
    /// The keeper of holds: a voter must get back the votes that it forgot, or leases end sooner
    /// than it seemed.
    pub holds: bool,
    /// The task that waits for the next end of a quarantine: that is another moment now.
    pub alarm: bool,
    /// The task that compares configurations: there is a new connection.
    pub comparison: bool,
}

/// All that this client has observed of its voters, and the changes that are not reported yet.
#[derive(Debug)]
pub struct Trust {
    pub(crate) register: Register,
    voters: Vec<ReportedVoter>,
    /// Whether a majority is connected, by the last report; `None` before the first.
    has_quorum: Option<bool>,
    // Not at first: a client that was given one server twice has another trouble, and the log must
    // not begin with its quarantine.
    /// Whether quarantines are reported to the log.
    speaks: bool,
    /// Whether the client is closed, and no longer counts in the gauges.
    pub(crate) is_retired: bool,
    /// When the next quarantine ends.
    pub(crate) next_end: Option<Moment>,
    /// How long this client has stood still in all, as far as its voters have shown it.
    pub(crate) stood_still: Duration,
    wakes: Wakes,
    changes: VecDeque<Change>,
    /// Whether some task reports a change now, and will report the others.
    is_reporting: bool,
}

/// The state of a voter by the last reports.
#[derive(Debug, Default)]
struct ReportedVoter {
    /// How many connections it has.
    connected: usize,
    was_connected: bool,
    /// The shards that lost their connection and have no new one yet.
    lost: BTreeSet<usize>,
    /// The shards that take no new votes.
    refusing: BTreeSet<usize>,
    /// Until when its quarantine goes on.
    quarantined: Option<Moment>,
    /// The reasons of this quarantine that are reported.
    reasons: BTreeSet<&'static str>,
}

impl Trust {
    /// `clusters`: a number for each voter, the same for all voters of one cluster.
    pub fn new(clusters: Vec<usize>, quorum: Quorum, suspicion: Suspicion) -> Self {
        let voters = clusters.iter().map(|_| ReportedVoter::default()).collect();
        Self {
            register: Register::new(clusters, quorum, suspicion),
            voters,
            has_quorum: None,
            speaks: false,
            is_retired: false,
            next_end: None,
            stood_still: Duration::ZERO,
            wakes: Wakes::default(),
            changes: VecDeque::new(),
            is_reporting: false,
        }
    }

    /// The tasks to wake for the changes since the last call.
    pub fn take_wakes(&mut self) -> Wakes {
        mem::take(&mut self.wakes)
    }

    /// The next change to report, unless another task is reporting.
    pub fn next_change(&mut self) -> Option<Change> {
        // That task goes on with what is left. So a slow recorder holds up one task only, and the
        // order stays.
        if self.is_reporting { None } else { self.next_of_reporter() }
    }

    /// The next change, for the task that is reporting.
    pub fn next_of_reporter(&mut self) -> Option<Change> {
        let change = self.changes.pop_front();
        self.is_reporting = change.is_some();
        change
    }

    /// There is a new connection. The server on it is [noted](Self::note_identity) next.
    pub fn note_connection(&mut self, shard: Shard, identity: &Identity) {
        let voter = &mut self.voters[shard.voter];
        // `connect` has warned of voters that it did not reach before the log began to speak. That
        // trouble ends here too.
        let is_late = self.speaks && !voter.was_connected;
        let ends_trouble = voter.lost.remove(&shard.number) || is_late;
        voter.was_connected = true;
        voter.connected += 1;
        let (run_id, age) = (identity.run_id.clone(), identity.age);
        self.changes.push_back(Change::Connected { shard, run_id, age, ends_trouble });
        if self.is_connected() && self.has_quorum.replace(true) == Some(false) {
            self.report_quorum(true);
        }
        self.wakes.comparison = true;
    }

    /// A server says who it is, on a new connection or again. Whether its data must get another
    /// name.
    pub fn note_identity(
        &mut self,
        shard: Shard,
        identity: &Identity,
        stamp: Option<Stamp>,
        now: Moment,
    ) -> bool {
        let (register, voter) = (&mut self.register, shard.voter);
        let Identity { run_id, birth, age, durable, overlap, refuses, .. } = identity;
        let before = register.twin(shard);
        register.note_overlap(shard, *overlap);
        let returned = register.note_server(shard, run_id, *age, *durable, now);
        let data = birth
            .as_ref()
            .map_or(Data::Kept, |birth| register.note_data(shard, birth, returned, now));
        let twin = register.twin(shard);
        if let Some(stamp) = stamp {
            self.note_clock(shard, stamp);
        }
        self.note_refusal(shard, refuses.as_ref(), false);
        self.look(now);
        self.wakes.holds |= returned || data != Data::Kept;
        if returned || !matches!(data, Data::Kept | Data::Overtaken) {
            self.changes.push_back(Change::CameBack { voter, durable: *durable, data });
        }
        if twin != before {
            self.changes.push_back(Change::Twin { voter, twin });
        }
        data.need_a_name()
    }

    /// A noted connection has ended. With the reason, unless this client ended it.
    pub fn note_disconnect(&mut self, shard: Shard, why: Option<&str>) {
        self.register.note_disconnect(shard);
        // Whether it takes new votes is asked anew on the next connection.
        self.note_refusal(shard, None, true);
        let voter = &mut self.voters[shard.voter];
        voter.connected = voter.connected.saturating_sub(1);
        if why.is_some() {
            voter.lost.insert(shard.number);
        }
        self.changes.push_back(Change::Disconnected { shard, why: why.map(str::to_owned) });
        // A client that closes its connections misses no quorum.
        if why.is_some() && self.has_quorum == Some(true) && !self.is_connected() {
            self.has_quorum = Some(false);
            self.report_quorum(false);
        }
    }

    /// Slots moved from one shard of a voter to another. `lost`: without their data.
    pub fn note_move(&mut self, from: Shard, to: Shard, lost: bool, now: Moment) {
        self.register.note_move(from, to, lost, now);
        self.look(now);
        self.wakes.holds |= lost;
        self.changes.push_back(Change::Moved { from, to, lost });
    }

    /// A server answered, usually with its clock and the name of its data. Fails with the number of
    /// the other voter, if that has the same server.
    pub fn note_answer(
        &mut self,
        shard: Shard,
        stamp: Option<Stamp>,
        data: Option<&str>,
        now: Moment,
    ) -> Result<(), usize> {
        if let Some(twin) = self.register.twin(shard) {
            return Err(twin);
        }
        let emptied = data.is_some_and(|data| self.register.note_data_name(shard, data, now));
        let moved = stamp.is_some_and(|stamp| self.note_clock(shard, stamp));
        if emptied || moved {
            self.look(now);
        }
        // Holds that had its vote renew, so that it has their votes again.
        self.wakes.holds |= emptied;
        Ok(())
    }

    /// A voter lacks a vote that it gave at this time and should have. Whether its data must get
    /// another name, which shows that to all clients.
    pub fn note_missing_vote(&mut self, shard: Shard, given: Moment, now: Moment) -> bool {
        let is_new = self.register.note_missing_vote(shard, given, now);
        self.look(now);
        is_new
    }

    /// Compares a voter's clock with this client's. Whether that changes a quarantine.
    fn note_clock(&mut self, shard: Shard, stamp: Stamp) -> bool {
        let shown = self.register.note_clock(shard, stamp);
        if let Shown::StoodStill(by) = shown {
            self.stood_still = self.stood_still.saturating_add(by);
            // All deadlines have come nearer: holds renew, or end.
            self.wakes.holds = true;
            self.changes.push_back(Change::StoodStill(by));
        }
        shown != Shown::Expected
    }

    /// A shard says why it takes no new votes, or takes them. `has_ended`: its connection has, so
    /// the log says nothing.
    fn note_refusal(&mut self, shard: Shard, why: Option<&Arc<str>>, has_ended: bool) {
        if self.is_retired {
            return;
        }
        let (voter, refusing) = (shard.voter, &mut self.voters[shard.voter].refusing);
        let before = !refusing.is_empty();
        let is_new = match why {
            Some(_) => refusing.insert(shard.number),
            None => refusing.remove(&shard.number),
        };
        let after = !refusing.is_empty();
        if is_new && !has_ended {
            self.changes.push_back(Change::Refuses { shard, why: why.cloned() });
        }
        self.count(voter, Gauge::Refusing, before, after);
    }

    /// Finds the quarantines that have begun or ended.
    pub fn look(&mut self, now: Moment) {
        if self.is_retired {
            return;
        }
        for voter in 0..self.voters.len() {
            let quarantine = self.register.longest_quarantine(voter, now).map(|it| it.quarantined);
            let until = quarantine.map(|quarantine| now + quarantine.left);
            let ReportedVoter { quarantined, reasons, .. } = &mut self.voters[voter];
            if until == *quarantined {
                continue;
            }
            let before = mem::replace(quarantined, until);
            if let Some(quarantined) = quarantine {
                let reason = quarantined.why.reason();
                // Each reason once, even if a pause of the client hid it for a moment.
                if reasons.insert(reason) {
                    self.changes.push_back(Change::QuarantineBegan { voter, reason });
                    self.report_quarantine(Change::Quarantined { voter, quarantined });
                }
            } else {
                reasons.clear();
                self.report_quarantine(Change::QuarantineEnded { voter });
            }
            self.count(voter, Gauge::Quarantined, before.is_some(), until.is_some());
        }
        let next_end = self.voters.iter().filter_map(|voter| voter.quarantined).min();
        self.wakes.alarm |= next_end != mem::replace(&mut self.next_end, next_end);
    }

    /// Reports the current quarantines to the log, and from now on each new one.
    pub fn log_quarantines(&mut self, now: Moment) {
        self.speaks = true;
        for voter in 0..self.voters.len() {
            if let Some(quarantine) = self.register.longest_quarantine(voter, now) {
                let quarantined = quarantine.quarantined;
                self.changes.push_back(Change::Quarantined { voter, quarantined });
            }
        }
    }

    /// The client is closed, and leaves the gauges.
    pub fn retire(&mut self) {
        if mem::replace(&mut self.is_retired, true) {
            return;
        }
        self.wakes.alarm = true;
        for voter in 0..self.voters.len() {
            let ReportedVoter { quarantined, refusing, .. } = &mut self.voters[voter];
            let (quarantined, refusing) = (quarantined.take(), mem::take(refusing));
            self.count(voter, Gauge::Clients, true, false);
            self.count(voter, Gauge::Quarantined, quarantined.is_some(), false);
            self.count(voter, Gauge::Refusing, !refusing.is_empty(), false);
        }
    }

    fn count(&mut self, voter: usize, gauge: Gauge, before: bool, is_counted: bool) {
        if before != is_counted {
            self.changes.push_back(Change::Counted { voter, gauge, is_counted });
        }
    }

    fn report_quarantine(&mut self, change: Change) {
        if self.speaks {
            self.changes.push_back(change);
        }
    }

    fn report_quorum(&mut self, is_there: bool) {
        let missing = (0..self.voters.len()).filter(|voter| self.voters[*voter].connected == 0);
        let missing = missing.collect();
        self.changes.push_back(Change::Quorum { is_there, missing });
    }

    /// Whether the connected voters are a majority.
    fn is_connected(&self) -> bool {
        self.register.quorum.reached(|voter| self.voters[voter].connected > 0)
    }
}

#[cfg(test)]
#[path = "change_tests.rs"]
mod tests;
