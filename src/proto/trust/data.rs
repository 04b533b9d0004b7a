//! Which data a server has: what it had before, or those of another voter.

use std::{sync::Arc, time::Duration};

use super::{Register, Shard, Standing, since_beginning};
use crate::proto::{Moment, Quarantine};

/// The name of a server's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Birth {
    /// Where the name stands: under another key it may be another one for the same data.
    pub fingerprint: Arc<str>,
    /// Behind a `~` what they were called before a client renamed them, and behind a `/` what else
    /// makes them others.
    pub name: Arc<str>,
    /// How old the fingerprint is. Data of one name grow no younger, unless they are those of an
    /// earlier moment.
    pub age: Duration,
    /// How old it was when the first client looked at it in this life of the server.
    pub began: Duration,
}

impl Birth {
    /// What the fingerprint calls the data, and what else makes them others.
    fn parts(&self) -> (&str, &str) {
        self.name.split_at(self.name.find('/').unwrap_or(self.name.len()))
    }

    /// What the fingerprint calls the data.
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
        self.fingerprint == other.fingerprint
            && !name.is_empty()
            && (its == name || before == Some(name))
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

impl Register {
    /// A server says which data it has; `returned`: for the first time in its life. If they are
    /// others than before, or younger than this client saw them, then what it had is gone, whatever
    /// it says of its disk and of its age. The same if another voter has data of that name.
    pub fn note_data(&mut self, shard: Shard, birth: &Birth, returned: bool, now: Moment) -> Data {
        let standing = self.standing_mut(shard);
        let before = standing.birth.replace(birth.clone());
        let is_same = before.as_ref().is_some_and(|before| before.name == birth.name);
        standing.is_shared &= is_same && !returned;
        let is_shared = self.find_shared(shard, now);
        let data = self.compare_data(shard, before.as_ref(), returned, now);
        if is_shared { Data::Shared } else { data }
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
        if let Some(first) = &mut standing.first_met {
            // For how long it has kept them all is said by the fingerprint, and not by its
            // settings.
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
        // Another client that looked before in this life has made the fingerprint older. One that
        // goes by other sources may have made it young, and then it tells how old it was before.
        let age = if returned { birth.began } else { birth.age.max(birth.began) };
        let older = age < before.age && !crate::mutant!("durability_is_believed");
        if older && self.note_loss(shard, now, now) { Data::Older } else { Data::Kept }
    }

    /// Looks for other voters whose data have the name of this one's. Where there are some, both
    /// may be the copy, and lack the votes that they gave. Whether these are to get another name.
    fn find_shared(&mut self, shard: Shard, now: Moment) -> bool {
        let Some(standing) = self.standing(shard) else { return false };
        let Some((birth, life)) = standing.birth.as_ref().zip(standing.life.as_ref()) else {
            return false;
        };
        let (mut found, mut need_a_name) = (Vec::new(), false);
        for (voter, shards) in self.voters.iter().enumerate() {
            // Parts of one cluster may be on one server, before and after its failover.
            if self.clusters[voter] == self.clusters[shard.voter] {
                continue;
            }
            for (number, other) in shards.iter().enumerate() {
                let its = other.birth.as_ref().zip(other.life.as_ref());
                let Some((its, its_life)) = its.filter(|(_, life)| life.is_there) else { continue };
                // One server by two ways has no second vote anyway.
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
    pub fn note_missing_vote(&mut self, shard: Shard, given: Moment, now: Moment) -> bool {
        let since = self.standing(shard).and_then(|standing| Some(standing.life.as_ref()?.since));
        let came_back = since.filter(|since| given < *since);
        came_back.is_some_and(|since| {
            !crate::mutant!("durability_is_believed") && self.note_loss(shard, since, now)
        })
    }

    /// A voter has lost a part of its data, which are to get another name. Whether this is news: it
    /// is not known to have forgotten since then.
    fn note_loss(&mut self, shard: Shard, since: Moment, now: Moment) -> bool {
        let standing = self.standing_mut(shard);
        let is_known = standing.forgot.is_some_and(|(at, _)| at >= since_beginning(since));
        if !is_known {
            // Whatever they are called next is another name.
            standing.birth = standing.birth.take().map(|birth| birth.renamed(""));
            self.note_forgotten(shard, since_beginning(now), Quarantine::Emptied);
        }
        !is_known
    }

    /// An answer says which data a voter has; nothing where the fingerprint is gone. If they are
    /// not those that it had, what it had is gone, and what it says from now on counts as if it
    /// were new. Whether that is news: while there is no fingerprint nobody knows whether they are
    /// deleted again.
    pub fn note_data_name(&mut self, shard: Shard, data: &str, now: Moment) -> bool {
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
        !known.data().is_empty()
    }
}

impl Standing {
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
}
