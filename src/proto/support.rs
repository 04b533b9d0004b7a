//! Which voters a hold has, and which it had when they forgot.

use std::time::Duration;

use super::{KeptOut, Quorum, Terms, Votes};
use crate::proto::{Cause, Moment, Verdict};

/// What each voter last said to one hold.
#[derive(Clone, Debug)]
pub struct Support {
    voters: Vec<Backing>,
    /// How many rounds have begun; acquiring was the first.
    rounds: u64,
    /// The latest that a majority granted.
    confirmed: u64,
}

/// One exchange with a voter.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub round: RoundId,
    /// When the round was sent.
    pub sent: Moment,
    /// What it asked for.
    pub terms: Terms,
    /// When the answer came.
    pub heard: Moment,
}

/// Which round it is.
#[derive(Clone, Copy, Debug)]
pub struct RoundId {
    number: u64,
    /// The latest before it that a majority granted.
    confirmed: u64,
}

impl RoundId {
    /// That in which the hold was acquired.
    pub const FIRST: Self = Self { number: 0, confirmed: 0 };
}

#[derive(Clone, Debug, Default)]
struct Backing {
    /// It granted when it was last heard.
    granted: bool,
    /// Until when, by any clock that drifts as allowed, it keeps the vote that it last gave, if
    /// that one counted.
    keeps: Option<Moment>,
    /// When that vote was asked for.
    given: Moment,
    /// It has said that it has no vote of the hold, and given it none since that was heard of.
    is_gone: bool,
    /// The latest round that found a vote gone which it should have kept.
    forgot: Option<u64>,
}

impl Support {
    pub fn of(voters: usize) -> Self {
        Self { voters: vec![Backing::default(); voters], rounds: 0, confirmed: 0 }
    }

    /// How many voters are known to have the hold.
    pub fn votes(&self) -> usize {
        self.voters.iter().filter(|backing| backing.granted).count()
    }

    /// Those votes.
    pub fn granted(&self, quorum: Quorum) -> Votes {
        let mut votes = Votes::new(quorum);
        let voters = self.voters.iter().enumerate();
        for (voter, _) in voters.filter(|(_, backing)| backing.granted) {
            votes.record(voter, Verdict::Granted);
        }
        votes
    }

    /// Whether no round has begun since it was acquired.
    pub fn is_as_granted(&self) -> bool {
        self.rounds == 0
    }

    /// What a voter's answer counts for when the hold is renewed.
    ///
    /// In quarantine a voter counts only where it had given this hold its vote before it forgot, by
    /// an answer that counted: then it cannot have given it to another that still builds on it. One
    /// that was given in quarantine and did not count proves nothing.
    pub fn counted(&self, voter: usize, verdict: Verdict, kept_out: Option<KeptOut>) -> Verdict {
        let Some(kept_out) = kept_out else { return verdict };
        let had = self.voters[voter].keeps.is_some_and(|keeps| kept_out.forgot < keeps);
        match verdict {
            Verdict::Granted if !had => kept_out.verdict(),
            verdict => verdict,
        }
    }

    /// Takes note of what an answer counted for. A voter that has no vote of the hold, although the
    /// one that it gave should have stood, has forgotten the hold. So has one that has a vote again
    /// after that: it may have given it at any time since. One that never gave its vote, or whose
    /// vote may have ended in time, has forgotten nothing. Says when the vote was given that it has
    /// not got.
    pub fn heard(&mut self, voter: usize, verdict: &Verdict, asked: Asked) -> Option<Moment> {
        let Asked { round, sent, terms, heard } = asked;
        let backing = &mut self.voters[voter];
        let in_vain = matches!(verdict, Verdict::Unknown(Cause::Quarantined(_)));
        backing.granted = *verdict == Verdict::Granted
            || in_vain && crate::mutant!("grant_in_quarantine_is_proof");
        let lacks = *verdict == Verdict::Absent || verdict.obstacle().is_some();
        let is_broken = lacks || backing.granted && backing.is_gone;
        let has_forgotten = is_broken && backing.keeps.is_some_and(|keeps| heard < keeps);
        let lost = (has_forgotten && lacks).then_some(backing.given);
        if has_forgotten {
            backing.forgot = backing.forgot.max(Some(round.number));
        }
        backing.is_gone = lacks || backing.is_gone && !backing.granted;
        if *verdict == Verdict::Revoked {
            backing.keeps = None;
        }
        if backing.granted {
            backing.keeps = backing.keeps.max(Some(terms.deadline(sent)));
            backing.given = backing.given.max(sent);
        }
        lost
    }

    /// So much time passed while the client stood still: votes end sooner by its clock.
    pub fn shorten(&mut self, by: Duration) {
        for backing in &mut self.voters {
            backing.keeps = backing.keeps.map(|keeps| keeps - by);
        }
    }

    /// A round begins.
    pub fn begin(&mut self) -> RoundId {
        self.rounds += 1;
        RoundId { number: self.rounds, confirmed: self.confirmed }
    }

    /// A majority granted this round.
    pub fn confirm(&mut self, round: RoundId) {
        self.confirmed = self.confirmed.max(round.number);
    }

    /// Whether so many voters have forgotten the hold, in this round and those after the latest one
    /// before it that a majority granted, that another may have had a majority in between. Whatever
    /// they say now proves nothing against that. Fewer are healed by the round that finds it out.
    pub fn is_forgotten(&self, quorum: Quorum, round: RoundId) -> bool {
        let since = |forgot: u64| forgot > round.confirmed;
        quorum.reached_in_one(|voter| self.voters[voter].forgot.is_some_and(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{Drift, HoldId, Quarantine};

    const SECS: fn(u64) -> Duration = Duration::from_secs;

    /// 30 s of which 29 are trusted.
    fn terms() -> Terms {
        Terms::new(SECS(30), Drift { ppm: 0, fixed: SECS(1) })
    }

    fn at(secs: u64) -> Moment {
        Moment::BEGINNING + SECS(secs)
    }

    fn asked(sent: u64) -> Asked {
        Asked { round: RoundId::FIRST, sent: at(sent), terms: terms(), heard: at(sent) }
    }

    fn forgot(secs: u64) -> KeptOut {
        KeptOut::new(Quarantine::Restarted, SECS(20), at(secs))
    }

    fn counts(support: &Support, kept_out: Option<KeptOut>) -> bool {
        support.counted(0, Verdict::Granted, kept_out) == Verdict::Granted
    }

    #[test]
    fn a_voter_that_forgot_counts_for_whom_it_had_its_vote_from_and_only_while_that_stood() {
        let mut support = Support::of(1);
        assert!(counts(&support, None), "it has forgotten nothing");
        assert!(!counts(&support, Some(forgot(30))), "it never had the hold");
        support.heard(0, &Verdict::Granted, asked(1));
        assert!(counts(&support, Some(forgot(20))) && counts(&support, Some(forgot(29))));
        assert!(!counts(&support, Some(forgot(30))), "by a fast clock the vote had ended before");
        support.heard(0, &Verdict::Unknown(Cause::Unheard), asked(2));
        assert_eq!(support.votes(), 0);
        assert!(counts(&support, Some(forgot(29))), "silence does not take the proof");
        // Twelve seconds of that passed while the client stood still.
        support.shorten(SECS(12));
        assert!(counts(&support, Some(forgot(17))) && !counts(&support, Some(forgot(18))));
    }

    #[test]
    fn a_refusal_in_quarantine_stays_one() {
        let refused = Verdict::Refused { by: HoldId::parse("c:2"), ttl: None };
        let counted = Support::of(1).counted(0, refused.clone(), Some(forgot(40)));
        assert_eq!(counted, refused);
    }

    /// Three voters that granted at 1 s, so that their votes stand until 30 s.
    fn granted_by_three() -> Support {
        let mut support = Support::of(3);
        for voter in 0..3 {
            support.heard(voter, &Verdict::Granted, asked(1));
        }
        support
    }

    /// In this round a voter turns out to have lost the vote, and grants anew.
    fn anew(support: &mut Support, voter: usize, round: RoundId) {
        let asked = Asked { round, ..asked(10) };
        support.heard(voter, &Verdict::Absent, asked);
        support.heard(voter, &Verdict::Granted, asked);
    }

    fn is_forgotten(support: &Support, round: RoundId) -> bool {
        support.is_forgotten(Quorum::of(3), round)
    }

    #[test]
    fn a_majority_that_lost_the_vote_has_forgotten_the_hold() {
        let mut support = granted_by_three();
        let round = support.begin();
        anew(&mut support, 0, round);
        anew(&mut support, 0, round);
        assert!(!is_forgotten(&support, round), "one voter, however often it says so");
        let refused = Verdict::Refused { by: HoldId::parse("c:2"), ttl: None };
        support.heard(1, &refused, Asked { round, ..asked(11) });
        assert!(is_forgotten(&support, round), "it has given the vote to another");
    }

    #[test]
    fn what_was_found_out_in_a_round_that_succeeded_is_healed_for_the_rounds_after_it() {
        for succeeds in [true, false] {
            let mut support = granted_by_three();
            let round = support.begin();
            anew(&mut support, 0, round);
            if succeeds {
                support.confirm(round);
            }
            let next = support.begin();
            anew(&mut support, 1, next);
            assert_eq!(is_forgotten(&support, next), !succeeds);
            // A late answer belongs to the round that it answers.
            anew(&mut support, 2, round);
            assert!(is_forgotten(&support, round));
        }
    }

    // The voter has given the vote again, and that answer was lost: another may have had it before.
    #[test]
    fn a_vote_that_was_given_again_unheard_is_another_one() {
        for heard in [true, false] {
            let mut support = granted_by_three();
            let round = support.begin();
            support.heard(0, &Verdict::Absent, Asked { round, ..asked(10) });
            if heard {
                support.heard(0, &Verdict::Granted, Asked { round, ..asked(10) });
            }
            support.confirm(round);
            let next = support.begin();
            support.heard(0, &Verdict::Granted, Asked { round: next, ..asked(11) });
            support.heard(1, &Verdict::Absent, Asked { round: next, ..asked(11) });
            assert_eq!(is_forgotten(&support, next), !heard);
        }
    }

    #[test]
    fn who_never_had_the_vote_or_had_it_for_long_enough_has_forgotten_nothing() {
        let mut support = Support::of(3);
        let round = support.begin();
        (0..3).for_each(|voter| anew(&mut support, voter, round));
        assert!(!is_forgotten(&support, round), "none had it before");
        // The votes may have ended in time, and silence is no answer.
        for (verdict, sent) in [(Verdict::Absent, 39), (Verdict::Unknown(Cause::Unheard), 40)] {
            let round = support.begin();
            for voter in 0..3 {
                support.heard(voter, &verdict, Asked { round, ..asked(sent) });
            }
            assert!(!is_forgotten(&support, round), "{verdict}");
        }
    }
}
