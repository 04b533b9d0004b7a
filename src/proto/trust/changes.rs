//! What is to be told of the voters: each thing once, in the order in which it came about.

use std::{
    collections::{BTreeSet, VecDeque},
    mem,
    sync::Arc,
    time::Duration,
};

use super::{Data, Identity, Register, Shard, Shown, Stamp, Suspicion};
use crate::proto::{Moment, Quarantined, Quorum};

/// Something that the log or the metrics are to be told of a voter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A connection stands. `ends_trouble`: the log was told that there was none.
    Connected { shard: Shard, run_id: String, age: Duration, ends_trouble: bool },
    /// One has ended; with the reason, unless this side ended it.
    Disconnected { shard: Shard, why: Option<String> },
    /// The connected voters are a majority again, or no more; and who is missing.
    Quorum { is_there: bool, missing: Vec<usize> },
    /// Its server, or its data, are others than before.
    CameBack { voter: usize, durable: bool, data: Data },
    /// It is the server of that other voter, or of none any more.
    Twin { voter: usize, twin: Option<usize> },
    /// Why a part of it takes no new votes; nothing where it takes them again.
    Refuses { shard: Shard, why: Option<Arc<str>> },
    /// Its data moved, or were lost on the way.
    Moved { from: Shard, to: Shard, lost: bool },
    /// It showed, with others, that this client stood still for so long.
    StoodStill(Duration),
    /// It is in quarantine, for a new reason or since before the log was to hear of it.
    Quarantined { voter: usize, quarantined: Quarantined },
    /// It began, for a reason that it did not have so far.
    QuarantineBegan { voter: usize, reason: &'static str },
    /// It is over.
    QuarantineEnded { voter: usize },
    /// What its clients believe of the voters that clashes with what this one does; nothing where
    /// they agree again.
    Clash { voter: usize, why: Option<Arc<str>> },
    /// From now on this client counts it in a gauge to which all clients add, or does no more.
    Counted { voter: usize, gauge: Gauge, is_counted: bool },
}

/// In what a client counts a voter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gauge {
    Clients,
    Quarantined,
    Refusing,
    ConfigurationMismatch,
}

/// Who is to look at once, without waiting for what is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wakes {
    /// Whoever keeps holds: a voter has come back as another, and what it forgot is to be told
    /// again, or less is left of their leases than it seemed.
    pub holds: bool,
    /// Whoever looks at the quarantines when the next one ends: that is another moment now.
    pub alarm: bool,
    /// Whoever compares with new connections what clients believe.
    pub comparison: bool,
}

/// All that this client has seen of its voters, and what of it is still to be told.
#[derive(Debug)]
pub struct Trust {
    pub(crate) register: Register,
    voters: Vec<VoterTold>,
    /// Whether a majority is connected, as the log was told last; nothing until it was.
    has_quorum: Option<bool>,
    /// The log is told of quarantines. It is not at first: what else is wrong with the voters is to
    /// be told before.
    speaks: bool,
    /// The client is closed. Its share of what is counted of all clients has been taken back.
    pub(crate) is_retired: bool,
    /// When the first quarantine ends.
    pub(crate) next_end: Option<Moment>,
    /// For how long this client has stood still in all, as far as its voters have shown it.
    pub(crate) stood_still: Duration,
    wakes: Wakes,
    changes: VecDeque<Change>,
    /// Somebody tells one of them now, and the others after it.
    is_telling: bool,
}

/// What the log and the metrics were told of a voter.
#[derive(Debug, Default)]
struct VoterTold {
    /// How many connections stand.
    connected: usize,
    was_connected: bool,
    /// The shards that lost their connection and have no new one yet.
    lost: BTreeSet<usize>,
    /// Those that take no new votes, by what was last heard of them.
    refusing: BTreeSet<usize>,
    /// Until when its quarantine goes on, and for which reasons so far: each is told once.
    quarantined: Option<Moment>,
    reasons: BTreeSet<&'static str>,
}

impl Trust {
    /// `clusters`: a number for each voter, the same for all that are parts of one cluster.
    pub fn new(clusters: Vec<usize>, quorum: Quorum, suspicion: Suspicion) -> Self {
        let voters = clusters.iter().map(|_| VoterTold::default()).collect();
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
            is_telling: false,
        }
    }

    /// Who is to look at once, by what has changed since this was last asked.
    pub fn take_wakes(&mut self) -> Wakes {
        mem::take(&mut self.wakes)
    }

    /// What is to be told next, unless somebody tells something now, and [goes
    /// on](Self::tell_more). So whoever waits for a recorder holds up nobody else, and the order
    /// stays.
    pub fn tell(&mut self) -> Option<Change> {
        if self.is_telling { None } else { self.tell_more() }
    }

    /// What is to be told after a change that was.
    pub fn tell_more(&mut self) -> Option<Change> {
        let change = self.changes.pop_front();
        self.is_telling = change.is_some();
        change
    }

    /// A new connection stands. Who is on it is [noted](Self::note_identity) next.
    pub fn note_connection(&mut self, shard: Shard, identity: &Identity) {
        let voter = &mut self.voters[shard.voter];
        // The end of what was a warning is one too: `connect` has warned of voters that it did not
        // reach before it let the log speak.
        let is_late = self.speaks && !voter.was_connected;
        let ends_trouble = voter.lost.remove(&shard.number) || is_late;
        voter.was_connected = true;
        voter.connected += 1;
        let (run_id, age) = (identity.run_id.clone(), identity.age);
        self.changes.push_back(Change::Connected { shard, run_id, age, ends_trouble });
        if self.is_connected() && self.has_quorum.replace(true) == Some(false) {
            self.tell_quorum(true);
        }
        self.wakes.comparison = true;
    }

    /// A server says who it is, on a new connection or again. Whether its data are to get another
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
        if returned || data != Data::Kept {
            self.wakes.holds = true;
            self.changes.push_back(Change::CameBack { voter, durable: *durable, data });
        }
        if twin != before {
            self.changes.push_back(Change::Twin { voter, twin });
        }
        data.need_a_name()
    }

    /// A connection that was noted has ended; with the reason, unless this side ended it.
    pub fn note_disconnect(&mut self, shard: Shard, why: Option<&str>) {
        self.register.note_disconnect(shard);
        // It is asked again before it is a voter again.
        self.note_refusal(shard, None, true);
        let voter = &mut self.voters[shard.voter];
        voter.connected = voter.connected.saturating_sub(1);
        if why.is_some() {
            voter.lost.insert(shard.number);
        }
        self.changes.push_back(Change::Disconnected { shard, why: why.map(str::to_owned) });
        // Where this side ends the connections, nothing is missing.
        if why.is_some() && self.has_quorum == Some(true) && !self.is_connected() {
            self.has_quorum = Some(false);
            self.tell_quorum(false);
        }
    }

    /// A voter's data moved from one of its shards to another, or was lost on the way.
    pub fn note_move(&mut self, from: Shard, to: Shard, lost: bool, now: Moment) {
        self.register.note_move(from, to, lost, now);
        self.look(now);
        self.wakes.holds |= lost;
        self.changes.push_back(Change::Moved { from, to, lost });
    }

    /// A server answered now, and mostly showed its clock, and which data it has. Fails if it is
    /// that of another voter, with its number.
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
        // Who had its vote is to have it again.
        self.wakes.holds |= emptied;
        Ok(())
    }

    /// A voter has not got a vote that it gave at this time and should have. Whether it is to tell
    /// all clients.
    pub fn note_missing_vote(&mut self, shard: Shard, given: Moment, now: Moment) -> bool {
        let is_news = self.register.note_missing_vote(shard, given, now);
        self.look(now);
        is_news
    }

    /// Compares a voter's clock with this client's; whether that changes who is in quarantine.
    fn note_clock(&mut self, shard: Shard, stamp: Stamp) -> bool {
        let shown = self.register.note_clock(shard, stamp);
        if let Shown::StoodStill(by) = shown {
            self.stood_still = self.stood_still.saturating_add(by);
            // Every deadline has come nearer: holders renew, or learn that theirs has passed.
            self.wakes.holds = true;
            self.changes.push_back(Change::StoodStill(by));
        }
        shown != Shown::Expected
    }

    /// Whether a part of a voter takes no new votes, as it says itself; it does not matter where
    /// its connection `has_ended`.
    fn note_refusal(&mut self, shard: Shard, why: Option<&Arc<str>>, has_ended: bool) {
        if self.is_retired {
            return;
        }
        let (voter, refusing) = (shard.voter, &mut self.voters[shard.voter].refusing);
        let before = !refusing.is_empty();
        let is_news = match why {
            Some(_) => refusing.insert(shard.number),
            None => refusing.remove(&shard.number),
        };
        let after = !refusing.is_empty();
        if is_news && !has_ended {
            self.changes.push_back(Change::Refuses { shard, why: why.cloned() });
        }
        self.count(voter, Gauge::Refusing, before, after);
    }

    /// Looks which quarantines have begun or ended.
    pub fn look(&mut self, now: Moment) {
        if self.is_retired {
            return;
        }
        for voter in 0..self.voters.len() {
            let kept_out = self.register.kept_out_longest(voter, now).map(|it| it.quarantined);
            let until = kept_out.map(|kept_out| now + kept_out.left);
            let VoterTold { quarantined, reasons, .. } = &mut self.voters[voter];
            if until == *quarantined {
                continue;
            }
            let before = mem::replace(quarantined, until);
            if let Some(quarantined) = kept_out {
                let reason = quarantined.why.reason();
                // Once each, also where a pause of the client hid it for a moment.
                if reasons.insert(reason) {
                    self.changes.push_back(Change::QuarantineBegan { voter, reason });
                    self.tell_quarantine(Change::Quarantined { voter, quarantined });
                }
            } else {
                reasons.clear();
                self.tell_quarantine(Change::QuarantineEnded { voter });
            }
            self.count(voter, Gauge::Quarantined, before.is_some(), until.is_some());
        }
        let next_end = self.voters.iter().filter_map(|voter| voter.quarantined).min();
        self.wakes.alarm |= next_end != mem::replace(&mut self.next_end, next_end);
    }

    /// Lets the log hear of quarantines: of those that have begun, and from now on of each. It does
    /// not before, because a client that is given one server twice has another trouble.
    pub fn speak(&mut self, now: Moment) {
        self.speaks = true;
        for voter in 0..self.voters.len() {
            if let Some(kept_out) = self.register.kept_out_longest(voter, now) {
                let quarantined = kept_out.quarantined;
                self.changes.push_back(Change::Quarantined { voter, quarantined });
            }
        }
    }

    /// The client is closed.
    pub fn retire(&mut self) {
        if mem::replace(&mut self.is_retired, true) {
            return;
        }
        self.wakes.alarm = true;
        for voter in 0..self.voters.len() {
            let VoterTold { quarantined, refusing, .. } = &mut self.voters[voter];
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

    fn tell_quarantine(&mut self, change: Change) {
        if self.speaks {
            self.changes.push_back(change);
        }
    }

    fn tell_quorum(&mut self, is_there: bool) {
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
