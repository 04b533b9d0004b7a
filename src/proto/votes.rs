//! Counting votes, and the answer to a caller that does not get the lock.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc, time::Duration};

use super::{Cause, HoldId, Moment, Quorum, ShardQuarantine, Verdict};

/// Why an attempt was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Another hold has a majority of each set of voters; or of one set, and this hold does not
    /// lead the split.
    Held,
    /// No hold is known to have a majority.
    Split,
    /// Too few voters gave a usable answer, or a majority granted too late.
    NoQuorum,
}

/// The verdicts of one round. A voter without a verdict is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Votes {
    quorum: Quorum,
    verdicts: Vec<Option<Verdict>>,
    // The leader of a split drops the verdicts of the voters that it asks again. A voter that was
    // silent in an earlier round may have granted then, and must get an undo.
    /// The voters that may have granted in an earlier round.
    doubtful: Vec<usize>,
    /// The voters whose votes may count for nobody.
    suspected: Vec<usize>,
}

impl Votes {
    pub fn new(quorum: Quorum) -> Self {
        let verdicts = vec![None; quorum.voters()];
        Self { quorum, verdicts, doubtful: Vec::new(), suspected: Vec::new() }
    }

    /// Grants of these voters. The others are open.
    pub(super) fn granted_by(quorum: Quorum, voters: impl Fn(usize) -> bool) -> Self {
        let granted = |voter| voters(voter).then_some(Verdict::Granted);
        Self { verdicts: (0..quorum.voters()).map(granted).collect(), ..Self::new(quorum) }
    }

    pub fn record(&mut self, voter: usize, verdict: Verdict) {
        self.verdicts[voter] = Some(verdict);
    }

    /// The hold that has this voter's vote may be unable to count it.
    pub fn suspect(&mut self, voter: usize) {
        self.suspected.push(voter);
    }

    /// Opens the voters that did not grant, to be asked again, and returns them.
    pub fn reopen_ungranted(&mut self) -> Vec<usize> {
        self.doubtful = self.may_have_granted();
        self.reopen(self.select(|voter| !self.is_granted(voter)))
    }

    /// Opens the voters whose vote another hold has, to be asked again, and returns them.
    pub fn reopen_refused(&mut self) -> Vec<usize> {
        self.reopen(self.refusing())
    }

    fn reopen(&mut self, voters: Vec<usize>) -> Vec<usize> {
        for voter in &voters {
            self.verdicts[*voter] = None;
        }
        voters
    }

    /// Records every open voter as one that did not answer in time.
    pub fn close(&mut self, after: Duration) {
        for verdict in self.verdicts.iter_mut().filter(|verdict| verdict.is_none()) {
            *verdict = Some(Verdict::Unknown(Cause::TimedOut(after)));
        }
    }

    /// Records this voter as one that did not answer, if it is open.
    pub fn close_one(&mut self, voter: usize, cause: &Cause) {
        self.verdicts[voter].get_or_insert_with(|| Verdict::Unknown(cause.clone()));
    }

    /// After a split: whether too few voters outside of quarantine are left for a majority. Then
    /// the refusals of voters in quarantine become unknown.
    pub fn discount(&mut self, quarantine: impl Fn(usize) -> Option<ShardQuarantine>) -> bool {
        // The attempts that have these votes cannot count them either: nobody gets the lock, and
        // "taken" would be false (law 9). After two of three servers had restarted, a nightly job
        // ended at once on every machine (`a_nightly_job_runs_once_..`, `tests/cli/quarantine.rs`).
        let in_quarantine = |voter| {
            let quarantine = if self.is_refused(voter) { quarantine(voter) } else { None };
            quarantine.map(ShardQuarantine::verdict).or_else(|| match &self.verdicts[voter] {
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

    /// Another hold has the vote, or a place comes first.
    fn is_refused(&self, voter: usize) -> bool {
        self.obstacle_at(voter).is_some()
    }

    fn select(&self, which: impl Fn(usize) -> bool) -> Vec<usize> {
        (0..self.verdicts.len()).filter(|voter| which(*voter)).collect()
    }

    pub fn is_won(&self) -> bool {
        // A majority of all voters. While two of three are silent, the third alone would grant the
        // lock to Ada, and when they come back, they grant it to Ben (law 1).
        self.quorum.reached(|voter| self.is_granted(voter))
            || crate::mutant!("majority_of_the_answered")
                && !self.is_open()
                && 2 * self.granted() > self.select(|voter| !self.is_unknown(voter)).len()
    }

    /// Whether a majority gave its votes, even if they do not count or came too late.
    pub fn are_given(&self) -> bool {
        self.quorum.reached(|voter| self.verdicts[voter].as_ref().is_some_and(Verdict::is_given))
    }

    /// The verdicts that have come.
    pub fn heard(&self) -> impl Iterator<Item = (usize, &Verdict)> {
        let verdicts = self.verdicts.iter().enumerate();
        verdicts.filter_map(|(voter, verdict)| Some((voter, verdict.as_ref()?)))
    }

    /// The open voters.
    pub fn unheard(&self) -> Vec<usize> {
        self.select(|voter| self.is_unheard(voter))
    }

    /// Whether a request may have reached the voter.
    pub(super) fn was_reached(&self, voter: usize) -> bool {
        !matches!(self.verdicts[voter], Some(Verdict::Unknown(Cause::Unreachable(_))))
    }

    /// The voters that granted.
    pub fn granting(&self) -> Vec<usize> {
        self.select(|voter| self.is_granted(voter))
    }

    /// Whether some voter is open.
    pub fn is_open(&self) -> bool {
        self.verdicts.contains(&None)
    }

    /// Whether too few voters are left that can give a usable answer.
    pub fn lacks_quorum(&self) -> bool {
        self.quorum.missed(|voter| self.is_unknown(voter))
    }

    /// Whether no majority can grant any more.
    pub fn is_hopeless(&self) -> bool {
        self.quorum.missed(|voter| !self.is_granted(voter) && !self.is_unheard(voter))
    }

    /// Whether no majority can grant, however often the others are asked: they have no vote to pass
    /// on, or the hold was ended by force there.
    pub fn is_lost_for_good(&self) -> bool {
        self.quorum.missed(|voter| self.has_none(voter))
    }

    /// The voters that may have given a vote.
    pub fn may_have_granted(&self) -> Vec<usize> {
        // A silent voter may have run the request, and only its reply was lost (law 9). If it gets
        // no undo, it keeps the lock from everybody until the lease ends (law 6).
        if crate::mutant!("undoes_known_grants") {
            return self.granting();
        }
        self.select(|voter| {
            self.doubtful.contains(&voter) || self.was_reached(voter) && !self.is_refused(voter)
        })
    }

    /// Whether enough voters have answered to decide the reason of a hopeless round.
    pub fn may_spare_the_silent(&self) -> bool {
        !self.quorum.missed(|voter| self.is_unknown(voter) || self.is_unheard(voter))
    }

    /// Why a hopeless round of this hold was lost. `None` while open voters can change that.
    pub fn loss(&self, me: &HoldId) -> Option<Loss> {
        // Before any holder is looked at: without a majority of usable answers nobody knows whether
        // the lock is taken (law 9).
        if self.lacks_quorum() && !crate::mutant!("no_quorum_is_busy") {
            return Some(Loss::NoQuorum);
        }
        let mut holders = self.holders(|_| true).into_keys();
        let mut leads = None;
        // A hold with a majority of one of two sets may be of a client with this set alone: then it
        // holds the lock. Or it is an attempt like this one. So it is the holder unless this hold
        // leads: of two attempts with one set each, exactly one goes on.
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
    pub fn leads(&self, me: &HoldId) -> bool {
        // Refusals name the holder, so all contenders see the same votes and come to the same
        // answer. Without a leader, all would give back and meet again.
        let rank = |id: &HoldId, votes| (votes, Reverse((lot(id), id.clone())));
        let mine = rank(me, self.granted());
        let others = self.holders(|_| true).into_iter();
        mine.0 > 0 && others.map(|(id, votes)| rank(id, votes)).all(|other| mine > other)
    }

    /// Whether no later renewal can succeed: another hold has a majority that counts, or this one
    /// was ended by force.
    pub fn is_superseded(&self) -> bool {
        // One voter that says so is enough: nobody stores a forced end by accident, and others may
        // have lost it.
        let is_revoked = self.verdicts.contains(&Some(Verdict::Revoked));
        // A voter in quarantine may have voted for an attempt that cannot count its vote. That is
        // no reason to give up a hold that its other voters still know (law 7).
        let counts = |voter: usize| !self.suspected.contains(&voter);
        let mut holders = self.holders(counts).into_keys();
        let has = |voter, id| counts(voter) && self.obstacle_at(voter) == Some(id);
        // A majority of one set is enough: without it this hold never has a majority of each.
        is_revoked || holders.any(|id| self.quorum.reached_in_one(|voter| has(voter, id)))
    }

    /// Whether so many voters have no vote of the hold that it has no majority.
    pub fn lacks_majority(&self) -> bool {
        self.quorum.missed(|voter| self.is_lacking(voter))
    }

    /// Whether a majority has no vote of the hold: each gave it back, or had none.
    pub fn frees_majority(&self) -> bool {
        self.quorum.reached(|voter| self.is_granted(voter) || self.is_lacking(voter))
    }

    /// Whether no open voter can change the outcome of a release.
    pub fn settles_release(&self) -> bool {
        // A release, too, takes a round trip to the fastest majority and no longer (law 8).
        self.is_won() && !crate::mutant!("release_awaits_everybody")
            || self.lacks_majority()
            || self.lacks_quorum()
            || !self.is_open()
    }

    fn is_lacking(&self, voter: usize) -> bool {
        self.is_refused(voter) || self.has_none(voter)
    }

    /// Nobody has its vote, or the hold was ended by force.
    fn has_none(&self, voter: usize) -> bool {
        matches!(self.verdicts[voter], Some(Verdict::Absent | Verdict::Revoked))
    }

    fn obstacle_at(&self, voter: usize) -> Option<&HoldId> {
        Some(self.verdicts[voter].as_ref()?.obstacle()?.0)
    }

    /// The hold, or the place in the queue, that most voters named as what is in the way.
    pub fn obstacle(&self) -> Option<&HoldId> {
        let holders = self.holders(|_| true);
        // A hold and its place count as one: right after a grant some voters only know the place.
        // If there is a hold, it is named: the error for a place says that the lock may be free.
        let named = |id: &HoldId| {
            let same = |other: &&HoldId| other.place_or_self() == id.place_or_self();
            holders.keys().copied().filter(same).map(|other| holders[other]).sum::<usize>()
        };
        holders.keys().copied().max_by_key(|id| (named(id), !self.is_place(id), Reverse(*id)))
    }

    /// Whether a voter named this id as a place in the queue.
    pub fn is_place(&self, id: &HoldId) -> bool {
        let mut places = self.verdicts.iter().flatten().filter_map(|verdict| match verdict {
            Verdict::Behind { place, .. } => Some(place),
            _ => None,
        });
        places.any(|place| place == id)
    }

    /// The time until a majority can be free, if nobody renews. `None` if too many voters show no
    /// end.
    pub fn free_in(&self) -> Option<Duration> {
        self.quorum.lowest(|voter| match &self.verdicts[voter] {
            // An open voter may be free now. To come too early costs a request, too late the time.
            None | Some(Verdict::Granted | Verdict::Absent) => Some(Duration::ZERO),
            Some(verdict) => verdict.obstacle()?.1,
        })
    }

    pub(super) fn refusing(&self) -> Vec<usize> {
        self.select(|voter| self.is_refused(voter))
    }

    /// Whether some voter that refused has sent a wake-up since.
    pub fn has_wake_up(&self, called: &[bool]) -> bool {
        self.refusing().iter().any(|voter| called.get(*voter) == Some(&true))
    }

    /// Whether enough voters that refused have sent a wake-up for a majority.
    pub fn has_enough_wake_ups(&self, called: &[bool]) -> bool {
        // A voter that did not refuse may grant without one.
        let may_grant = |voter| called.get(voter) == Some(&true) || !self.is_refused(voter);
        self.has_wake_up(called) && self.quorum.reached(may_grant)
    }

    /// Every voter's verdict, in order. An open voter's is `Unheard`.
    pub fn into_verdicts(self) -> Vec<Verdict> {
        let unheard = || Verdict::Unknown(Cause::Unheard);
        self.verdicts.into_iter().map(|verdict| verdict.unwrap_or_else(unheard)).collect()
    }

    /// In how many of these voters each hold or place is in the way.
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

/// Decides between holds with as many votes: every contender computes the same number.
pub(super) fn lot(hold: &HoldId) -> u64 {
    // FNV-1a, and the last step of MurmurHash3. Without that step the order would follow the first
    // characters of the id, which are the client's: one client would win every tie.
    let hash = hold.as_str().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

/// A lost attempt: why, and the votes that decided it.
#[derive(Debug)]
pub struct Defeat {
    pub loss: Loss,
    pub votes: Votes,
    pub started: Moment,
}

/// Why the caller does not get the lock, by the last attempt that could find out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denial {
    /// Another hold has it, or others have too many of the votes.
    Held(Refusal),
    // In a box, as an outage is rare, and every waiter has room for a denial.
    NoQuorum(Box<Outage>),
}

impl Denial {
    /// `silent_since`: the start of the first attempt since which too few voters have answered.
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
    /// Whether that is a place in the queue.
    pub waits: bool,
    /// When a majority is free, if nobody asks again.
    pub ends: Option<Moment>,
    /// What each voter said. Empty if none was asked.
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
    /// When the first of these attempts started.
    pub since: Moment,
    /// When the last attempt started.
    pub asked: Moment,
    /// When the last attempt ended.
    pub until: Moment,
    /// The votes of the last attempt.
    pub votes: Votes,
}

#[cfg(test)]
#[path = "votes_tests.rs"]
mod tests;
