//! Which data a server has: its own from before, other ones, or those of another voter.

use std::{sync::Arc, time::Duration};

use super::{Register, Shard, Standing, since_beginning};
use crate::proto::{Moment, Quarantine};

/// The fingerprint of a server's data.
// It lives with the data, so it is lost with them. What a server says of its uptime and its disk
// was wrong too often (design 5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Birth {
    /// The key of the fingerprint. Under another key, the same data may have another name.
    pub fingerprint: Arc<str>,
    /// `<name>~<former name>/<what else tells the data from others>`; the last two may be missing.
    pub name: Arc<str>,
    // Data of one name get no younger. If they do, they are a copy of an earlier moment.
    /// How old the fingerprint is.
    pub age: Duration,
    /// How old it was when a client first looked in this life of the server.
    pub began: Duration,
    // Not by the course of the clock that this client has seen: it may have met the voter when its
    // clock was right again.
    /// By how much the server's clock was set back since a client looked, if the data have the same
    /// name since and the server has forgotten nothing.
    pub set_back: Duration,
}

impl Birth {
    /// The name in the fingerprint, and what else tells the data from others.
    fn parts(&self) -> (&str, &str) {
        self.name.split_at(self.name.find('/').unwrap_or(self.name.len()))
    }

    /// The name in the fingerprint, with the former name.
    pub(crate) fn data(&self) -> &str {
        self.parts().0
    }

    /// The name, and the former name.
    fn names(&self) -> (&str, Option<&str>) {
        let data = self.data();
        data.split_once('~').map_or((data, None), |(name, before)| (name, Some(before)))
    }

    /// The new name of data that are renamed. `fresh`: a name that no other data have.
    pub(crate) fn rename(&self, fresh: &str) -> String {
        let former = self.names().0;
        // It says why, as the others would look for somebody who deletes data.
        match self.set_back.as_millis() {
            0 => format!("{fresh}~{former}"),
            ms => format!("{fresh}-{ms}~{former}"),
        }
    }

    /// By how much the clock had been set back, if data of that name were renamed for that.
    fn renamed_as_set_back(&self, former: &str) -> Option<Duration> {
        let (name, before) = self.names();
        let ms = name.split_once('-').filter(|_| before == Some(former))?.1;
        ms.parse().ok().map(Duration::from_millis)
    }

    /// Whether the other data have the name of these, or had it before they were renamed.
    fn is_shared_with(&self, other: &Self) -> bool {
        // Also the former name: a client that connects after only one of two copies was renamed
        // must still find them (`who_comes_when_one_of_two_copies_was_renamed_keeps_both_out`).
        let (name, (its, before)) = (self.names().0, other.names());
        self.fingerprint == other.fingerprint
            && !name.is_empty()
            && (its == name || before == Some(name))
    }

    /// Data with this name, of unknown age.
    fn renamed(&self, data: &str) -> Self {
        let name = format!("{data}{}", self.parts().1).into();
        let [age, began, set_back] = [Duration::ZERO; 3];
        Self { fingerprint: Arc::clone(&self.fingerprint), name, age, began, set_back }
    }
}

/// What became of the data of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    Kept,
    /// They have another name.
    Gone,
    /// They are of an earlier moment. Other clients may be unable to know.
    Older,
    /// They are its own, but the clock by which they expire was ahead, and is set back. Clients
    /// that come later are unable to know.
    Overtaken,
    /// Another voter has data of the same name, or had until they were renamed: one of the two has
    /// a copy. Nobody knows which.
    Shared,
}

impl Data {
    /// Whether they must get another name, which shows the loss to all clients.
    pub fn need_a_name(self) -> bool {
        matches!(self, Self::Older | Self::Overtaken | Self::Shared)
    }
}

impl Register {
    /// A server shows its fingerprint. `returned`: for the first time in this life of the server.
    // Data with another name, a younger fingerprint or the name of another voter's are a loss,
    // whatever the server says of its disk and its age (mutant `durability_is_believed`).
    pub fn note_data(&mut self, shard: Shard, birth: &Birth, returned: bool, now: Moment) -> Data {
        let standing = self.standing_mut(shard);
        let before = standing.birth.replace(birth.clone());
        let is_same = before.as_ref().is_some_and(|before| before.name == birth.name);
        standing.is_shared &= is_same && !returned;
        let is_shared = self.find_shared(shard, now);
        let data = self.compare_data(shard, before.as_ref(), returned, now);
        let is_overtaken = self.note_set_back(shard, birth.set_back, now);
        match data {
            _ if is_shared => Data::Shared,
            Data::Kept | Data::Gone if is_overtaken => Data::Overtaken,
            data => data,
        }
    }

    /// A server's clock was set back by so much since a client looked. Whether that is a loss.
    // While it was ahead, votes ended before their time. A client that had an answer then has seen
    // the clock move (`ClockCourse`). To one that connects now it shows the right time.
    fn note_set_back(&mut self, shard: Shard, by: Duration, now: Moment) -> bool {
        // As of a clock that moves between two answers. Each look notes it anew until the data have
        // another name: a server without room takes none, and no votes either.
        let is_loss = by > self.suspicion.drift.fixed && !crate::mutant!("set_back_not_noticed");
        if is_loss {
            self.note_forgotten(shard, since_beginning(now), Quarantine::ClockSetBack(by));
        }
        is_loss
    }

    /// What became of the data that a server had before.
    fn compare_data(
        &mut self,
        shard: Shard,
        before: Option<&Birth>,
        returned: bool,
        now: Moment,
    ) -> Data {
        let standing = self.standing_mut(shard);
        if let Some(first) = &mut standing.first_start {
            // The fingerprint says how long nothing was lost, and the settings do not. After a
            // FLUSHALL the first client marked the new data, and the second believed `appendfsync
            // always` (`0e59406a`).
            first.durable &= crate::mutant!("settings_are_believed");
            first.marked = true;
        }
        let both = before.zip(standing.birth.as_ref());
        let Some((before, birth)) =
            both.filter(|(before, birth)| before.fingerprint == birth.fingerprint)
        else {
            return Data::Kept;
        };
        if before.name != birth.name {
            if crate::mutant!("restart_not_noticed") {
                return Data::Kept;
            }
            let why = standing.why_others(before);
            self.note_forgotten(shard, since_beginning(now), why);
            return Data::Gone;
        }
        // After a restart, as old as at the first look in this life: other clients may have made it
        // older since. Otherwise the older of the two: a client with other sources may have made it
        // young, and `began` says how old it was before that.
        let age = if returned { birth.began } else { birth.age.max(birth.began) };
        let older = age < before.age && !crate::mutant!("durability_is_believed");
        if older && self.note_loss(shard, now, now) { Data::Older } else { Data::Kept }
    }

    /// Looks for other voters with data of the same name. Any of them may be the copy, so all are
    /// in quarantine. Whether the data of this voter must get another name.
    fn find_shared(&mut self, shard: Shard, now: Moment) -> bool {
        let Some(standing) = self.standing(shard) else { return false };
        let Some((birth, life)) = standing.birth.as_ref().zip(standing.life.as_ref()) else {
            return false;
        };
        let (mut found, mut need_a_name) = (Vec::new(), false);
        for (voter, shards) in self.voters.iter().enumerate() {
            // Parts of one cluster may share a server, or had one before a failover.
            if self.clusters[voter] == self.clusters[shard.voter] {
                continue;
            }
            for (number, other) in shards.iter().enumerate() {
                let its = other.birth.as_ref().zip(other.life.as_ref());
                // A voter that is not connected may have moved: its server can be at this address.
                let Some((its, its_life)) = its.filter(|(_, life)| life.is_there) else { continue };
                // One server at two addresses has no second vote anyway.
                if its_life.server() == life.server() || crate::mutant!("copy_not_noticed") {
                    continue;
                }
                let is_shared = birth.is_shared_with(its);
                need_a_name |= is_shared;
                if is_shared || its.is_shared_with(birth) {
                    found.push(Shard { voter, number });
                }
            }
        }
        if !found.is_empty() {
            found.push(shard);
        }
        let at = since_beginning(now);
        for shard in found {
            let standing = self.standing_mut(shard);
            let is_new = !std::mem::replace(&mut standing.is_shared, true);
            // Also in place of another reason of the same moment: it says more than a restart.
            if is_new && standing.forgot.is_none_or(|(known, _)| known <= at) {
                standing.forgot = Some((at, Quarantine::Copied));
            }
        }
        need_a_name
    }

    /// A voter lacks a vote that it gave at this time and should have. Whether that is a new
    /// finding.
    // If it came back since, and said that it forgot nothing, this disproves it. Before that, there
    // may be another reason: an operator may have deleted the record (guarantee 4).
    pub fn note_missing_vote(&mut self, shard: Shard, given: Moment, now: Moment) -> bool {
        let since = self.standing(shard).and_then(|standing| Some(standing.life.as_ref()?.since));
        let came_back = since.filter(|since| given < *since);
        came_back.is_some_and(|since| {
            !crate::mutant!("durability_is_believed") && self.note_loss(shard, since, now)
        })
    }

    /// A voter has lost a part of its data, so they must get another name. Whether that is a new
    /// finding.
    fn note_loss(&mut self, shard: Shard, since: Moment, now: Moment) -> bool {
        let standing = self.standing_mut(shard);
        let is_known = standing.forgot.is_some_and(|(at, _)| at >= since_beginning(since));
        if !is_known {
            // No name is equal to the empty one, so the next one is another.
            standing.birth = standing.birth.take().map(|birth| birth.renamed(""));
            self.note_forgotten(shard, since_beginning(now), Quarantine::Emptied);
        }
        !is_known
    }

    /// An answer carries the name of a voter's data; empty if the fingerprint is gone. Whether that
    /// is a new finding.
    pub fn note_data_name(&mut self, shard: Shard, data: &str, now: Moment) -> bool {
        // Not just at each look, every ten seconds: in between a voter that was flushed could give
        // a lock twice (mutant `deleted_data_not_noticed`).
        let standing = self.standing_mut(shard);
        let Some(known) = standing.birth.take() else { return false };
        let is_same = known.data() == data && !data.is_empty();
        if is_same || crate::mutant!("deleted_data_not_noticed") {
            standing.birth = Some(known);
            return false;
        }
        standing.birth = Some(known.renamed(data));
        standing.is_shared = false;
        let why = standing.why_others(&known);
        self.note_forgotten(shard, since_beginning(now), why);
        // While there is no fingerprint, each answer looks like another deletion.
        !known.data().is_empty()
    }
}

impl Standing {
    /// The reason for a quarantine because of other data than `before`.
    fn why_others(&self, before: &Birth) -> Quarantine {
        let former = before.names().0;
        let birth = self.birth.as_ref();
        if let Some(by) = birth.and_then(|birth| birth.renamed_as_set_back(former)) {
            return Quarantine::ClockSetBack(by);
        }
        // A client has renamed a copy: that is no new loss.
        let renamed = birth.and_then(|birth| birth.names().1);
        match self.forgot {
            Some((_, Quarantine::Copied)) if renamed == Some(former) => Quarantine::Copied,
            _ => Quarantine::Emptied,
        }
    }
}
