//! Who leads, by what the voters say.

use std::{collections::BTreeSet, time::Duration};

use super::Quorum;
use crate::proto::{Cause, HoldId, Incumbent, Leader, Proclaimed, Token, Verdict};

/// What one voter says of who leads: who has its vote, if anybody has.
pub type Sight = Result<Option<Incumbent>, Cause>;

/// What the voters say, as far as they have been heard.
#[derive(Clone, Debug)]
pub struct Census {
    quorum: Quorum,
    sights: Vec<Option<Sight>>,
}

/// What they say together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhoLeads {
    /// A majority names this hold, which has said so much.
    Led { leader: Leader, version: u64 },
    /// No hold can have a majority.
    Vacant,
    /// Too few voters say something that can be relied on.
    Unclear,
}

impl Census {
    pub fn new(quorum: Quorum) -> Self {
        Self { quorum, sights: vec![None; quorum.voters()] }
    }

    pub fn hear(&mut self, voter: usize, sight: Sight) {
        self.sights[voter] = Some(sight);
    }

    /// Counts every voter that has not been heard as one that did not answer in time.
    pub fn close(&mut self, after: Duration) {
        for sight in self.sights.iter_mut().filter(|sight| sight.is_none()) {
            *sight = Some(Err(Cause::TimedOut(after)));
        }
    }

    /// What they say, once nothing that is still to come changes it.
    pub fn decide(&self) -> Option<WhoLeads> {
        let holds: BTreeSet<&HoldId> = self.incumbents().map(|(_, one)| &one.hold).collect();
        let names = |hold, voter| self.hold_at(voter) == Some(hold);
        if let Some(hold) = holds.iter().find(|it| self.quorum.reached(|at| names(**it, at))) {
            return self.led_by(hold);
        }
        // And one that no voter has named so far.
        let all = holds.into_iter().map(Some).chain([None]);
        let may_lead = |hold: &_| self.quorum.reached_in_one(|voter| self.may_name(voter, *hold));
        let candidates: Vec<_> = all.filter(may_lead).collect();
        if candidates.is_empty() {
            return Some(WhoLeads::Vacant);
        }
        (!self.is_open()).then(|| self.led_by_the_latest(&candidates))
    }

    /// Where there are two sets of voters, a leader may be a client that has one of them alone. Its
    /// token tells it from a candidate that has a majority of one set and still asks for the other:
    /// nobody knows its token before it leads. The other set may still name one that has resigned
    /// or lost there: that has the lower token.
    fn led_by_the_latest(&self, candidates: &[Option<&HoldId>]) -> WhoLeads {
        let token = |hold: &HoldId| {
            let names = |voter: usize| self.hold_at(voter) == Some(hold);
            self.latest_of(hold)?.token.filter(|_| self.quorum.reached_in_one(names))
        };
        let told = candidates.iter().map(|hold| Some((token((*hold)?)?, (*hold)?)));
        let latest = told.collect::<Option<Vec<_>>>().and_then(|told| told.into_iter().max());
        latest.and_then(|(_, hold)| self.led_by(hold)).unwrap_or(WhoLeads::Unclear)
    }

    /// A majority names this hold.
    fn led_by(&self, hold: &HoldId) -> Option<WhoLeads> {
        let latest = self.latest_of(hold)?;
        let Some(token) = latest.token.or_else(|| self.number_of(hold)) else {
            return (!self.is_open()).then_some(WhoLeads::Unclear);
        };
        let leader = Leader::new(hold.clone(), token, latest.value.clone());
        Some(WhoLeads::Led { leader, version: latest.version })
    }

    /// The latest that a hold has said, of what the voters know.
    fn latest_of(&self, hold: &HoldId) -> Option<&Proclaimed> {
        let said = self.incumbents().filter(|(_, one)| one.hold == *hold);
        said.map(|(_, one)| &one.said).max_by_key(|said| said.version)
    }

    /// A majority names a hold, and its token is not known: its leader has not written it down yet,
    /// which it does at once, or has not been told that it leads.
    pub fn lacks_token(&self) -> bool {
        let mut holds = self.incumbents().map(|(_, one)| &one.hold);
        holds.any(|hold| {
            self.quorum.reached(|voter| self.hold_at(voter) == Some(hold))
                && self.latest_of(hold).is_some_and(|said| said.token.is_none())
                && self.number_of(hold).is_none()
        })
    }

    /// The token of a hold that has not written it down yet: the highest number that a majority
    /// gave it. That is known where a majority has one and the same, and nobody else can have given
    /// it a higher one.
    fn number_of(&self, hold: &HoldId) -> Option<Token> {
        let given = |voter: usize| {
            self.incumbent(voter).filter(|one| one.hold == *hold).and_then(|one| one.number)
        };
        let number = (0..self.sights.len()).filter_map(given).max()?;
        let is_known = |sight: &Option<Sight>| matches!(sight, Some(Ok(_)));
        let is_it = self.sights.iter().all(is_known)
            && self.quorum.reached(|voter| given(voter) == Some(number));
        is_it.then_some(number)
    }

    /// Some voter has not been heard.
    pub fn is_open(&self) -> bool {
        self.sights.iter().any(Option::is_none)
    }

    fn incumbents(&self) -> impl Iterator<Item = (usize, &Incumbent)> {
        (0..self.sights.len()).filter_map(|voter| Some((voter, self.incumbent(voter)?)))
    }

    fn incumbent(&self, voter: usize) -> Option<&Incumbent> {
        self.sights[voter].as_ref()?.as_ref().ok()?.as_ref()
    }

    fn hold_at(&self, voter: usize) -> Option<&HoldId> {
        self.incumbent(voter).map(|one| &one.hold)
    }

    /// Whether a voter may have given this hold its vote, or `None`: one that no voter has named.
    fn may_name(&self, voter: usize, hold: Option<&HoldId>) -> bool {
        match &self.sights[voter] {
            None | Some(Err(_)) => true,
            Some(Ok(one)) => one.as_ref().is_some_and(|one| Some(&one.hold) == hold),
        }
    }

    /// What each voter said; one that was not heard is unheard.
    pub fn verdicts(&self) -> Vec<Verdict> {
        let unheard = Err(Cause::Unheard);
        self.sights.iter().map(|sight| verdict(sight.as_ref().unwrap_or(&unheard))).collect()
    }
}

fn verdict(sight: &Sight) -> Verdict {
    match sight {
        Ok(Some(one)) => Verdict::Refused { by: one.hold.clone(), ttl: one.left },
        Ok(None) => Verdict::Absent,
        Err(cause) => Verdict::Unknown(cause.clone()),
    }
}

#[cfg(test)]
#[path = "census_tests.rs"]
mod tests;
