//! Which firing of a job is done, by the answers of the voters.

use std::time::Duration;

use super::{Quorum, Verdict};

/// The mark of the latest firing that is done, as a voter stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Done {
    pub firing: u64,
    // A copy carries the moment of the first mark, so that all copies end at about the same time.
    /// When it was done, in milliseconds since 1970; `None` for when a voter stores it.
    pub when_ms: Option<u64>,
    /// How long after that voters remember it.
    pub memory_ms: u64,
}

impl Done {
    // Lua counts in doubles: above this, two firings could be equal.
    pub const MOST: u64 = 1 << 53;

    /// `None` for text that no script has written.
    pub fn parse(text: &str) -> Option<Self> {
        let (firing, rest) = text.split_once(' ')?;
        let (when, memory) = rest.split_once(' ')?;
        let (firing, when_ms) = (firing.parse().ok()?, Some(when.parse().ok()?));
        Some(Self { firing, when_ms, memory_ms: memory.parse().ok()? })
    }
}

/// The answer of one voter.
#[derive(Clone, Debug)]
pub struct DoneAnswer {
    /// A grant means that the hold that asks has the voter's vote, and that it counts.
    pub verdict: Verdict,
    pub done: Option<Done>,
    /// What its clock showed, since 1970.
    pub clock: Option<Duration>,
}

/// The answers of all voters to the hold that has the lock.
#[derive(Clone, Debug)]
pub struct DoneSurvey {
    quorum: Quorum,
    seen: Vec<DoneAnswer>,
}

impl DoneSurvey {
    pub fn new(quorum: Quorum, seen: Vec<DoneAnswer>) -> Self {
        Self { quorum, seen }
    }

    /// Whether a firing that no voter knows is not done.
    pub fn is_decided(&self) -> bool {
        // A majority of each set must have answered, with votes that count: each majority that
        // stores a mark shares a voter with it. A voter in quarantine may have forgotten the mark
        // (mutant `not_done_in_quarantine`).
        let counts = |voter: usize| self.seen[voter].verdict == Verdict::Granted;
        self.quorum.reached(counts)
    }

    /// The latest mark that any voter has.
    pub fn latest(&self) -> Option<Done> {
        // Also of a voter in quarantine: it may have forgotten a mark, but it made none up.
        self.seen.iter().filter_map(|seen| seen.done).max()
    }

    /// Whether a majority of each set stores this firing or a later one.
    pub fn stores(&self, firing: u64) -> bool {
        // With one set only, a client of the other set would do the firing again.
        let stored = |voter: usize| self.has(voter, firing);
        if crate::mutant!("done_in_one_set") {
            return self.quorum.reached_in_one(stored);
        }
        self.quorum.reached(stored)
    }

    /// Whether some voter does not store this firing, or has not answered.
    pub fn is_missing(&self, firing: u64) -> bool {
        // Any voter, not a majority: a mark that only a bare majority has is lost with one voter.
        (0..self.seen.len()).any(|voter| !self.has(voter, firing))
    }

    fn has(&self, voter: usize, firing: u64) -> bool {
        self.seen[voter].done.is_some_and(|done| done.firing >= firing)
    }

    /// The time by the voters' clocks: a majority shows no later one.
    pub fn clock(&self) -> Option<Duration> {
        // Not the latest of all, and not the client's: a single clock that is wrong must not decide
        // whether a firing lies in the future.
        self.quorum.lowest(|voter| self.seen[voter].clock)
    }

    pub fn verdicts(&self) -> Vec<Verdict> {
        self.seen.iter().map(|seen| seen.verdict.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{Cause, Verdict::Granted};

    fn survey(quorum: Quorum, said: &[(Verdict, Option<u64>)]) -> DoneSurvey {
        let seen = said.iter().map(|(verdict, firing)| DoneAnswer {
            verdict: verdict.clone(),
            done: firing.map(|firing| Done { firing, when_ms: Some(1), memory_ms: 9 }),
            clock: (*verdict != silent()).then_some(Duration::ZERO),
        });
        DoneSurvey::new(quorum, seen.collect())
    }

    fn silent() -> Verdict {
        Verdict::Unknown(Cause::Unheard)
    }

    #[test]
    fn one_says_that_it_is_done_and_a_majority_of_each_set_that_it_is_not() {
        let three = Quorum::of(3);
        let said = survey(three, &[(Granted, None), (silent(), Some(7)), (Granted, Some(6))]);
        // Two of three know of six or later.
        assert_eq!(said.latest().map(|done| done.firing), Some(7));
        assert!(said.is_decided() && !said.stores(7) && said.stores(6));
        assert!(said.is_missing(6) && said.is_missing(7));
        let said = survey(three, &[(Granted, Some(7)), (silent(), None), (Granted, Some(8))]);
        assert!(said.stores(7) && said.is_missing(7), "a later one will do");
        let said = survey(three, &[(Granted, Some(7)), (Granted, Some(7)), (Granted, Some(8))]);
        assert!(!said.is_missing(7) && said.is_missing(8));
        // One new voter, one in both sets, one old: a majority of each are two of two.
        let joint = Quorum::joint(1, 1, 1);
        let said = survey(joint, &[(Granted, Some(7)), (Granted, Some(7)), (silent(), None)]);
        assert!(!said.is_decided() && !said.stores(7));
        let said = survey(joint, &[(Granted, Some(7)), (Granted, Some(7)), (Granted, Some(7))]);
        assert!(said.is_decided() && said.stores(7));
    }

    #[test]
    fn what_no_script_has_written_is_none() {
        let done = |text| Done::parse(text).map(|done| (done.firing, done.when_ms));
        assert_eq!(done("7 1800000000000 9"), Some((7, Some(1_800_000_000_000))));
        assert_eq!(["", "7", "7 8", "x 8 9", "7 x 9", "7 8 x", "7 8 9 1"].map(done), [None; 7]);
    }
}
