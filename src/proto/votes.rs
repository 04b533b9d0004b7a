//! Counting votes, and what a waiter is told that does not get the lock.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc, time::Duration};

use super::{Cause, HoldId, KeptOut, Moment, Quorum, Verdict};

/// Why an attempt was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Another hold has a majority: of each set of voters, or of one of them and leads.
    Held,
    /// Nobody has a majority, as far as is known.
    Split,
    /// Too few voters gave a usable answer, or they gave it too late.
    NoQuorum,
}

/// The verdicts of one round; those that have not come are open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Votes {
    quorum: Quorum,
    verdicts: Vec<Option<Verdict>>,
    /// The voters that may have granted in a round before this one.
    doubtful: Vec<usize>,
    /// The voters whose votes may count for nobody.
    suspected: Vec<usize>,
}

impl Votes {
    pub fn new(quorum: Quorum) -> Self {
        let verdicts = vec![None; quorum.voters()];
        Self { quorum, verdicts, doubtful: Vec::new(), suspected: Vec::new() }
    }

    /// Those of these voters; the others are open.
    pub(super) fn granted_by(quorum: Quorum, voters: impl Fn(usize) -> bool) -> Self {
        let granted = |voter| voters(voter).then_some(Verdict::Granted);
        Self { verdicts: (0..quorum.voters()).map(granted).collect(), ..Self::new(quorum) }
    }

    pub fn record(&mut self, voter: usize, verdict: Verdict) {
        self.verdicts[voter] = Some(verdict);
    }

    /// Whoever has this voter's vote may not count it.
    pub fn suspect(&mut self, voter: usize) {
        self.suspected.push(voter);
    }

    /// Opens the voters that did not grant, to be asked again; returns them.
    pub fn reopen_ungranted(&mut self) -> Vec<usize> {
        self.doubtful = self.may_have_granted();
        self.reopen(self.those(|voter| !self.is_granted(voter)))
    }

    /// Opens the voters that another hold has, to be asked again; returns them.
    pub fn reopen_refused(&mut self) -> Vec<usize> {
        self.reopen(self.refusing())
    }

    fn reopen(&mut self, voters: Vec<usize>) -> Vec<usize> {
        for voter in &voters {
            self.verdicts[*voter] = None;
        }
        voters
    }

    /// Counts every open voter as one that did not answer in time.
    pub fn close(&mut self, after: Duration) {
        for verdict in self.verdicts.iter_mut().filter(|verdict| verdict.is_none()) {
            *verdict = Some(Verdict::Unknown(Cause::TimedOut(after)));
        }
    }

    /// Counts this voter as one that did not answer, if it is open.
    pub fn close_one(&mut self, voter: usize, cause: &Cause) {
        self.verdicts[voter].get_or_insert_with(|| Verdict::Unknown(cause.clone()));
    }

    /// After a split: voters in quarantine have refused because of others whose attempts cannot
    /// count their votes either. Where too few are left for a majority, they gave no answer. Whether
    /// it is so.
    pub fn discount(&mut self, kept_out: impl Fn(usize) -> Option<KeptOut>) -> bool {
        let in_quarantine = |voter| {
            let kept_out = if self.is_refused(voter) { kept_out(voter) } else { None };
            kept_out.map(KeptOut::verdict).or_else(|| match &self.verdicts[voter] {
                Some(verdict @ Verdict::Unknown(Cause::Quarantined(_))) => Some(verdict.clone()),
                _ => None,
            })
        };
        let found: Vec<_> = (0..self.verdicts.len()).map(in_quarantine).collect();
        if !self.quorum.missed(|voter| found[voter].is_some()) {
            return false;
        }
        for (verdict, found) in self.verdicts.iter_mut().zip(found) {
            *verdict = found.or(verdict.take());
        }
        true
    }

    pub fn granted(&self) -> usize {
        self.verdicts.iter().filter(|verdict| **verdict == Some(Verdict::Granted)).count()
    }

    fn is_granted(&self, voter: usize) -> bool {
        self.verdicts[voter] == Some(Verdict::Granted)
    }

    fn is_unknown(&self, voter: usize) -> bool {
        matches!(self.verdicts[voter], Some(Verdict::Unknown(_)))
    }

    fn is_unheard(&self, voter: usize) -> bool {
        self.verdicts[voter].is_none()
    }

    /// Another hold has the vote, or stands before.
    fn is_refused(&self, voter: usize) -> bool {
        self.obstacle_at(voter).is_some()
    }

    fn those(&self, are: impl Fn(usize) -> bool) -> Vec<usize> {
        (0..self.verdicts.len()).filter(|voter| are(*voter)).collect()
    }

    pub fn is_won(&self) -> bool {
        self.quorum.reached(|voter| self.is_granted(voter))
            || crate::mutant!("majority_of_the_answered")
                && !self.is_open()
                && 2 * self.granted() > self.those(|voter| !self.is_unknown(voter)).len()
    }

    /// A majority gave its vote, whether it counts or not, and whether it came in time or not.
    pub fn are_given(&self) -> bool {
        self.quorum.reached(|voter| self.verdicts[voter].as_ref().is_some_and(Verdict::is_given))
    }

    /// What those said that were heard.
    pub fn heard(&self) -> impl Iterator<Item = (usize, &Verdict)> {
        let verdicts = self.verdicts.iter().enumerate();
        verdicts.filter_map(|(voter, verdict)| Some((voter, verdict.as_ref()?)))
    }

    /// The voters that have not been heard.
    pub fn unheard(&self) -> Vec<usize> {
        self.those(|voter| self.is_unheard(voter))
    }

    /// Something was sent to it.
    pub(super) fn was_reached(&self, voter: usize) -> bool {
        !matches!(self.verdicts[voter], Some(Verdict::Unknown(Cause::Unreachable(_))))
    }

    /// The voters whose vote the hold has.
    pub fn granting(&self) -> Vec<usize> {
        self.those(|voter| self.is_granted(voter))
    }

    /// Some voter has not been heard.
    pub fn is_open(&self) -> bool {
        self.verdicts.contains(&None)
    }

    /// Too few voters can give an answer that is of use.
    pub fn lacks_quorum(&self) -> bool {
        self.quorum.missed(|voter| self.is_unknown(voter))
    }

    /// More said no, or nothing, than a majority can do without.
    pub fn is_hopeless(&self) -> bool {
        self.quorum.missed(|voter| !self.is_granted(voter) && !self.is_unheard(voter))
    }

    /// The voters that may have given a vote: all but those that refused and those that nothing was
    /// sent to.
    pub fn may_have_granted(&self) -> Vec<usize> {
        if crate::mutant!("undoes_known_grants") {
            return self.granting();
        }
        // A voter that is silent may have run the request, and only its reply was lost (law 9).
        self.those(|voter| {
            self.doubtful.contains(&voter) || self.was_reached(voter) && !self.is_refused(voter)
        })
    }

    /// Few enough are silent for the others to decide the class of a hopeless round.
    pub fn may_spare_the_silent(&self) -> bool {
        !self.quorum.missed(|voter| self.is_unknown(voter) || self.is_unheard(voter))
    }

    /// The class of a hopeless round of this hold; `None` while answers that have not come could
    /// change it.
    ///
    /// A hold with a majority of one of two sets may be that of a client which has this set alone,
    /// and hold the lock, or an attempt as this one. So it counts as the holder unless this hold
    /// leads: of two attempts with a majority of a set each, one then goes on.
    pub fn loss(&self, me: &HoldId) -> Option<Loss> {
        if self.lacks_quorum() && !crate::mutant!("no_quorum_is_busy") {
            return Some(Loss::NoQuorum);
        }
        let mut holders = self.holders(|_| true).into_keys();
        let mut leads = None;
        let is_held = holders.any(|id| {
            let has = |voter: usize| self.obstacle_at(voter) == Some(id);
            self.quorum.reached(has)
                || self.quorum.reached_in_one(has) && !*leads.get_or_insert(self.leads(me))
        });
        if is_held {
            return Some(Loss::Held);
        }
        (!self.is_open()).then_some(Loss::Split)
    }

    /// Whether `me` keeps its votes in a split: it has the most, or as many and the smaller lot.
    /// Refusals name the holder, so all contenders come to the same answer.
    pub fn leads(&self, me: &HoldId) -> bool {
        let rank = |id: &HoldId, votes| (votes, Reverse((lot(id), id.clone())));
        let mine = rank(me, self.granted());
        let others = self.holders(|_| true).into_iter();
        mine.0 > 0 && others.map(|(id, votes)| rank(id, votes)).all(|other| mine > other)
    }

    /// A renewal that cannot be saved: another hold has a majority that counts, or the hold was
    /// ended by force. One voter that says so is enough: nobody writes that mark by accident, and
    /// others may have lost it.
    pub fn is_superseded(&self) -> bool {
        let is_revoked = self.verdicts.contains(&Some(Verdict::Revoked));
        let counts = |voter: usize| !self.suspected.contains(&voter);
        let mut holders = self.holders(counts).into_keys();
        let has = |voter, id| counts(voter) && self.obstacle_at(voter) == Some(id);
        is_revoked || holders.any(|id| self.quorum.reached_in_one(|voter| has(voter, id)))
    }

    /// More voters have no vote of the hold than a majority can do without.
    pub fn lacks_majority(&self) -> bool {
        self.quorum.missed(|voter| self.is_lacking(voter))
    }

    /// A majority has no vote of the hold any more: it was given back there, or had never been the
    /// hold's.
    pub fn frees_majority(&self) -> bool {
        self.quorum.reached(|voter| self.is_granted(voter) || self.is_lacking(voter))
    }

    /// Nothing that is still to come changes what a release came to: a majority gave a vote back,
    /// or had none, or can do neither any more.
    pub fn settles_release(&self) -> bool {
        self.is_won() && !crate::mutant!("release_awaits_everybody")
            || self.lacks_majority()
            || self.lacks_quorum()
            || !self.is_open()
    }

    fn is_lacking(&self, voter: usize) -> bool {
        self.is_refused(voter)
            || matches!(self.verdicts[voter], Some(Verdict::Absent | Verdict::Revoked))
    }

    fn obstacle_at(&self, voter: usize) -> Option<&HoldId> {
        Some(self.verdicts[voter].as_ref()?.obstacle()?.0)
    }

    /// The hold, or the place in a queue, that most voters named as what is in the way. A hold and
    /// the place it was got from are one: voters that have not heard of the hold name the place.
    pub fn obstacle(&self) -> Option<&HoldId> {
        let holders = self.holders(|_| true);
        let named = |id: &HoldId| {
            let same = |other: &&HoldId| other.place_or_self() == id.place_or_self();
            holders.keys().copied().filter(same).map(|other| holders[other]).sum::<usize>()
        };
        holders.keys().copied().max_by_key(|id| (named(id), !self.is_place(id), Reverse(*id)))
    }

    /// Whether a voter named it as a place in the queue, and not as a hold.
    pub fn is_place(&self, id: &HoldId) -> bool {
        let mut places = self.verdicts.iter().flatten().filter_map(|verdict| match verdict {
            Verdict::Behind { place, .. } => Some(place),
            _ => None,
        });
        places.any(|place| place == id)
    }

    /// The time until a majority could be free, if nobody renews. A voter that has not been heard
    /// may be free now. `None` where too many have no known end.
    pub fn free_in(&self) -> Option<Duration> {
        self.quorum.lowest(|voter| match &self.verdicts[voter] {
            None | Some(Verdict::Granted | Verdict::Absent) => Some(Duration::ZERO),
            Some(verdict) => verdict.obstacle()?.1,
        })
    }

    /// The voters that refused: their calls are worth waiting for.
    pub(super) fn refusing(&self) -> Vec<usize> {
        self.those(|voter| self.is_refused(voter))
    }

    /// Some voter that refused has called.
    pub fn has_called(&self, called: &[bool]) -> bool {
        self.refusing().iter().any(|voter| called.get(*voter) == Some(&true))
    }

    /// So many voters that refused have called that a majority is possible, with all that did not
    /// refuse.
    pub fn have_called(&self, called: &[bool]) -> bool {
        let may_grant = |voter| called.get(voter) == Some(&true) || !self.is_refused(voter);
        self.has_called(called) && self.quorum.reached(may_grant)
    }

    /// Every voter's verdict, in order; one that has not come is unheard.
    pub fn into_verdicts(self) -> Vec<Verdict> {
        let unheard = || Verdict::Unknown(Cause::Unheard);
        self.verdicts.into_iter().map(|verdict| verdict.unwrap_or_else(unheard)).collect()
    }

    /// How many of these voters each hold has.
    fn holders(&self, counts: impl Fn(usize) -> bool) -> BTreeMap<&HoldId, usize> {
        let mut holders = BTreeMap::new();
        for voter in 0..self.verdicts.len() {
            if let Some(by) = self.obstacle_at(voter).filter(|_| counts(voter)) {
                *holders.entry(by).or_default() += 1;
            }
        }
        holders
    }
}

/// Decides between holds with as many votes. Every contender computes the same number; it is
/// another one for each attempt, so that no client is favoured (FNV-1a, and the last step of
/// MurmurHash3, without which it would go by the first characters: the client's).
pub(super) fn lot(hold: &HoldId) -> u64 {
    let hash = hold.as_str().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

/// A lost attempt.
#[derive(Debug)]
pub struct Defeat {
    pub loss: Loss,
    pub votes: Votes,
    pub started: Moment,
}

/// Why the lock cannot be had, by the last attempt that could find out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denial {
    /// Another hold has it, or others have too many of the votes.
    Held(Refusal),
    /// Boxed: it is rare, and every waiter has room for a denial.
    NoQuorum(Box<Outage>),
}

impl Denial {
    /// `silent_since`: when the first attempt began since which too few voters have answered.
    pub fn of(defeat: Defeat, silent_since: Option<Moment>, now: Moment) -> Self {
        let Defeat { loss, votes, started } = defeat;
        if loss == Loss::NoQuorum {
            let since = silent_since.unwrap_or(started);
            return Self::NoQuorum(Box::new(Outage { since, asked: started, until: now, votes }));
        }
        Self::Held(Refusal::of(&votes, now))
    }
}

/// What the voters said about the holder when they refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// The hold, or the place in the queue, that most voters named.
    pub by: Option<HoldId>,
    /// It is a place, and nobody's hold.
    pub waits: bool,
    /// When a majority is free, if nobody asks again.
    pub ends: Option<Moment>,
    /// What each voter said; nothing where none was asked.
    pub verdicts: Arc<[Verdict]>,
}

impl Refusal {
    pub fn of(votes: &Votes, now: Moment) -> Self {
        let by = votes.obstacle().cloned();
        let waits = by.as_ref().is_some_and(|by| votes.is_place(by));
        let ends = votes.free_in().map(|time| now + time);
        Self { by, waits, ends, verdicts: votes.clone().into_verdicts().into() }
    }
}

/// Too few voters answered, attempt after attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// When the first of the attempts started.
    pub since: Moment,
    /// When the last one started.
    pub asked: Moment,
    /// When the last one ended.
    pub until: Moment,
    /// Those of the last one.
    pub votes: Votes,
}

#[cfg(test)]
#[path = "votes_tests.rs"]
mod tests;
