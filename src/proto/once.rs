//! Which firing of a job is done, by what the voters say.

use std::time::Duration;

use super::{Quorum, Verdict};

/// The latest firing that is done, as a voter has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Done {
    pub firing: u64,
    /// When that was, in milliseconds since 1970; `None` for the moment at which a voter hears it.
    pub when_ms: Option<u64>,
    /// For how long after that voters remember it.
    pub memory_ms: u64,
}

impl Done {
    /// Scripts tell these numbers apart.
    pub const MOST: u64 = 1 << 53;

    /// `None` for what no script has written.
    pub fn parse(text: &str) -> Option<Self> {
        let (firing, rest) = text.split_once(' ')?;
        let (when, memory) = rest.split_once(' ')?;
        let (firing, when_ms) = (firing.parse().ok()?, Some(when.parse().ok()?));
        Some(Self { firing, when_ms, memory_ms: memory.parse().ok()? })
    }
}

/// What one voter says.
#[derive(Clone, Debug)]
pub struct DoneSeen {
    /// Granted: the hold that asks has its vote, which counts.
    pub verdict: Verdict,
    pub done: Option<Done>,
    /// Since 1970.
    pub clock: Option<Duration>,
}

/// What all voters say to the hold that has the lock.
#[derive(Clone, Debug)]
pub struct DoneSurvey {
    quorum: Quorum,
    seen: Vec<DoneSeen>,
}

impl DoneSurvey {
    pub fn new(quorum: Quorum, seen: Vec<DoneSeen>) -> Self {
        Self { quorum, seen }
    }

    /// Whether what nobody says is done is not done: a majority of each set has said so, with votes
    /// that count. One that is stored by a majority has a voter among them.
    pub fn is_decided(&self) -> bool {
        let counts = |voter: usize| self.seen[voter].verdict == Verdict::Granted;
        self.quorum.reached(counts)
    }

    /// The latest that any voter says is done, also one in quarantine: whoever has stored it was
    /// told so by one who knew.
    pub fn latest(&self) -> Option<Done> {
        self.seen.iter().filter_map(|seen| seen.done).max()
    }

    /// Whether a majority of each set has this firing stored, or a later one.
    pub fn stores(&self, firing: u64) -> bool {
        let stored = |voter: usize| self.has(voter, firing);
        if crate::mutant!("done_in_one_set") {
            return self.quorum.reached_in_one(stored);
        }
        self.quorum.reached(stored)
    }

    /// Whether some voter does not know of this firing, or has not said so.
    pub fn is_missing(&self, firing: u64) -> bool {
        (0..self.seen.len()).any(|voter| !self.has(voter, firing))
    }

    fn has(&self, voter: usize, firing: u64) -> bool {
        self.seen[voter].done.is_some_and(|done| done.firing >= firing)
    }

    /// The voters' clock: that of a majority at the latest.
    pub fn clock(&self) -> Option<Duration> {
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
        let seen = said.iter().map(|(verdict, firing)| DoneSeen {
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
