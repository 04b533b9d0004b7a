//! Which voters a hold has, and which it had when they forgot.

use super::{KeptOut, Terms};
use crate::{
    clock::Moment,
    words::{Cause, Verdict},
};

/// What each voter last said to one hold.
#[derive(Clone, Debug)]
pub(crate) struct Support {
    voters: Vec<Backing>,
}

#[derive(Clone, Debug, Default)]
struct Backing {
    /// It granted when it was last heard.
    granted: bool,
    /// Until when, by any clock that drifts as allowed, it keeps the vote that it last gave, if
    /// that one counted.
    keeps: Option<Moment>,
}

impl Support {
    pub(crate) fn of(voters: usize) -> Self {
        Self { voters: vec![Backing::default(); voters] }
    }

    /// How many voters are known to have the hold.
    pub(crate) fn votes(&self) -> usize {
        self.voters.iter().filter(|backing| backing.granted).count()
    }

    /// What a voter's answer counts for when the hold is renewed.
    ///
    /// In quarantine a voter counts only where it had given this hold its vote before it forgot, by
    /// an answer that counted: then it cannot have given it to another that still builds on it. One
    /// that was given in quarantine and did not count proves nothing.
    pub(crate) fn counted(
        &self,
        voter: usize,
        verdict: Verdict,
        kept_out: Option<KeptOut>,
    ) -> Verdict {
        let Some(kept_out) = kept_out else { return verdict };
        let had = self.voters[voter].keeps.is_some_and(|keeps| kept_out.forgot < keeps);
        match verdict {
            Verdict::Granted if !had => kept_out.verdict(),
            verdict => verdict,
        }
    }

    /// Takes note of what an answer to a request of that moment counted for.
    pub(crate) fn heard(&mut self, voter: usize, verdict: &Verdict, sent: Moment, terms: Terms) {
        let backing = &mut self.voters[voter];
        backing.granted = *verdict == Verdict::Granted;
        if *verdict == Verdict::Revoked {
            backing.keeps = None;
        }
        if backing.granted {
            backing.keeps = backing.keeps.max(Some(terms.deadline(sent)));
        }
    }
}

impl KeptOut {
    /// What a grant counts for that does not count.
    pub(crate) fn verdict(self) -> Verdict {
        Verdict::Unknown(Cause::Quarantined(self.quarantined))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        engine::Drift,
        words::{HoldId, Quarantine, Quarantined},
    };

    const SECS: fn(u64) -> Duration = Duration::from_secs;

    /// 30 s of which 29 are trusted.
    fn terms() -> Terms {
        Terms::new(SECS(30), Drift { ppm: 0, fixed: SECS(1) })
    }

    fn at(secs: u64) -> Moment {
        Moment::BEGINNING + SECS(secs)
    }

    const REMEMBERS: Option<KeptOut> = None;

    fn forgot(secs: u64) -> KeptOut {
        let quarantined = Quarantined { why: Quarantine::Restarted, left: SECS(20) };
        KeptOut { quarantined, forgot: at(secs) }
    }

    fn counts(support: &Support, kept_out: impl Into<Option<KeptOut>>) -> bool {
        support.counted(0, Verdict::Granted, kept_out.into()) == Verdict::Granted
    }

    #[test]
    fn a_voter_that_forgot_counts_for_whom_it_had_its_vote_from_and_only_while_that_stood() {
        let mut support = Support::of(1);
        assert!(counts(&support, REMEMBERS), "it has forgotten nothing");
        assert!(!counts(&support, forgot(30)), "it never had the hold");
        support.heard(0, &Verdict::Granted, at(1), terms());
        assert!(counts(&support, forgot(20)) && counts(&support, forgot(29)));
        assert!(!counts(&support, forgot(30)), "by a fast clock the vote had ended before");
    }

    #[test]
    fn a_grant_that_did_not_count_proves_nothing() {
        let mut support = Support::of(1);
        let verdict = support.counted(0, Verdict::Granted, Some(forgot(40)));
        support.heard(0, &verdict, at(41), terms());
        assert_eq!(support.votes(), 0);
        assert!(!counts(&support, forgot(45)), "it forgot once more");
        assert!(counts(&support, REMEMBERS), "the quarantine has ended");
    }

    #[test]
    fn silence_takes_the_vote_from_the_count_and_not_the_proof() {
        let mut support = Support::of(1);
        support.heard(0, &Verdict::Granted, at(11), terms());
        assert_eq!(support.votes(), 1);
        support.heard(0, &Verdict::Unknown(Cause::Unheard), at(20), terms());
        assert_eq!(support.votes(), 0);
        assert!(counts(&support, forgot(39)));
    }

    #[test]
    fn a_refusal_stays_one_and_a_grant_that_does_not_count_says_why() {
        let support = Support::of(1);
        let refused = Verdict::Refused { by: HoldId::parse("c:2"), ttl: None };
        assert_eq!(support.counted(0, refused.clone(), Some(forgot(40))), refused);
        let granted = support.counted(0, Verdict::Granted, Some(forgot(40)));
        let text = "in quarantine for 20s more: restarted, perhaps without its data";
        assert_eq!(granted.to_string(), text);
    }
}
